"""A Temporal server for all tests of a process, with a namespace for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from checks.temporal.temporal_server import TemporalServer

_NAMESPACES = 40
_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[TemporalServer]:
    if TemporalServer.program() is None:
        pytest.skip("no Temporal server: run scripts/check-temporal, which installs locks/temporal.txt")
    with TemporalServer([f"n{number}" for number in range(_NAMESPACES)]) as started:
        yield started


@pytest.fixture
def address(server: TemporalServer) -> str:
    """The address of a namespace that no other test uses."""
    return server.address(f"n{next(_NUMBERS)}")
