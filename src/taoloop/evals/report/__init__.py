"""Results as people see them: figures and sentences, plots, and one page that needs nothing else."""
