"""Files of the Higress plugin `ai-agent`."""
