"""Programs in a sandbox of bubblewrap."""
