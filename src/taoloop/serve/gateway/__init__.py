"""The gateway: agents behind an endpoint that any OpenAI client speaks to."""
