"""Conversations as they come in and go out: histories of other programs, exports, and sessions with ids."""
