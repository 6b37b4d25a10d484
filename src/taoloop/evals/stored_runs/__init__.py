"""Evaluations over stored runs: what another model, prompt or policy would have decided, and cases made of runs."""
