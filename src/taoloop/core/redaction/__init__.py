"""Taking secrets out of texts, data and events."""
