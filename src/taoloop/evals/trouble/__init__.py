"""Trouble on purpose: tools that time out, lie, flood and change, drifted replies, injected text, and `kill -9`."""
