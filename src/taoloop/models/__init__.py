"""Models: the protocol, the registry of providers, and models around models."""
