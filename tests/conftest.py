"""Shared fixtures. Everything here is a shipped double or plain data; nothing is patched."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture
def shared() -> Path:
    """The folder of test data beside the project; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the shared test data does not lie beside this checkout")
    return SHARED
