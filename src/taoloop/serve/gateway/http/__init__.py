"""HTTP requests, CORS and broken connections."""
