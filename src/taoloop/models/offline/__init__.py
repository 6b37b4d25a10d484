"""The model `offline`: a demo planner without a network and without a language model, in English and Chinese."""
