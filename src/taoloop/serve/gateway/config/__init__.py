"""The files that configure a gateway."""
