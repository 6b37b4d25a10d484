"""Runs while they go on: as streams, and in the background with handles to which other processes attach."""
