"""The answer in a reply that is still being written."""
