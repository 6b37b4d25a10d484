"""Trials: what one is made of, how it is run and recorded, and all of a suite."""
