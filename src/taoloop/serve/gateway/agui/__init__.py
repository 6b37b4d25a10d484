"""AG-UI 1.0 at the gateway: agents for front ends that speak the Agent User Interaction Protocol."""
