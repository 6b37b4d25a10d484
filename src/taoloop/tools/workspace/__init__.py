"""Files of a workspace: confined, changed atomically, walked and searched."""
