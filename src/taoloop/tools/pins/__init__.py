"""What a person approved of a source of tools: files outside of the source, which it cannot change."""
