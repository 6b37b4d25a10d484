"""Requests and responses of the OpenAI APIs as types."""
