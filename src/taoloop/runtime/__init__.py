"""What drives agents: the runner, approvals, recovery and what follows a run."""
