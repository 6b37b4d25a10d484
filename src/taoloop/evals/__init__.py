"""Evaluation: suites of cases, trials, metrics with intervals, comparisons in pairs, and what they are shown in."""
