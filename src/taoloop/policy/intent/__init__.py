"""What the task calls for."""
