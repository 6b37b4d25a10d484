"""The statistics of evaluations, by the standard library alone: intervals, paired tests, corrections, case numbers."""
