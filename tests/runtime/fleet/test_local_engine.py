"""The engine of one machine passes the contract of engines."""

from __future__ import annotations

from taoloop.testing import EngineContract


class TestLocalEngine(EngineContract):
    engine = "local"
