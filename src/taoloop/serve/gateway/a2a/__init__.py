"""A2A at the gateway: agents as servers of the Agent2Agent protocol, for agents of others."""
