"""The engine of Temporal passes the contract of engines."""

from __future__ import annotations

import pytest

from taoloop.testing import EngineContract


class TestTemporalEngine(EngineContract):
    @pytest.fixture(autouse=True)
    def namespace(self, address: str) -> None:
        self.engine = address


for name in (  # each of these waits for some heartbeats that do not come
    "test_a_run_that_kills_its_workers_is_parked_until_somebody_releases_it",
    "test_a_stopped_worker_that_wakes_up_after_the_take_over_writes_nothing",
):
    setattr(TestTemporalEngine, name, pytest.mark.nightly(getattr(TestTemporalEngine, name)))
