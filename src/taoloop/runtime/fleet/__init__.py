"""Runs that workers drive: submitted to an engine, advanced by any worker, handed over between them."""
