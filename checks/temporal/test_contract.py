"""The engine of Temporal passes the contract of engines."""

from __future__ import annotations

import pytest

from taoloop.testing import EngineContract


@pytest.mark.nightly  # processes that wait for heartbeats: nearly two minutes
class TestTemporalEngine(EngineContract):
    @pytest.fixture(autouse=True)
    def namespace(self, address: str) -> None:
        self.engine = address
