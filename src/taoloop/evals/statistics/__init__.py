"""The statistics of evaluations, by the standard library alone: intervals, tests of pairs, rates behind judges."""
