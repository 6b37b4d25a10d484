"""Whether an answer says only what the observations that it cites contain. Pure, and without a model."""
