"""The engine of large fleets: one Temporal workflow per run. Needs the extra `temporal`; imported where it is used."""
