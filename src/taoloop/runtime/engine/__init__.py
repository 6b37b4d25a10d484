"""What the runner uses to perform effects."""
