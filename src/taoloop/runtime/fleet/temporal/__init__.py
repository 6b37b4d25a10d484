"""The engine of large fleets: one Temporal workflow per run. Needs the extra `temporal`; imported only where it is used."""
