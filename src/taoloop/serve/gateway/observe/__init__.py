"""What the gateway reports of itself: the log of requests, metrics, and OpenTelemetry."""
