"""What the task asks for."""
