"""Shared fixtures. Everything here is a shipped double or plain data; nothing is patched."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the benchmark of the policy has an environment of its own, without it
    pass
else:  # no test may fail because the machine is busy, or for an example that no change of today has to do with
    settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("steady", settings.get_profile("search"), derandomize=True)
    settings.register_profile("small", settings.get_profile("steady"), max_examples=25)  # see `tests/sizes.py`
    settings.load_profile(os.environ.get("TAOLOOP_TEST_EXAMPLES", "small"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell, and programs inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["TAOLOOP_LANG"] = "en"  # the tests read what the command line says, whatever the locale is

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


def pytest_collection() -> None:
    """Let no collection of garbage walk through thousands of tests while they are collected: they live to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor while they run."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def shared() -> Path:
    """The folder of test data beside the project; tests that need it skip where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the shared test data does not lie beside this checkout")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is cached (folders, documents of APIs) or kept (approved tools) lies beside the other files of the tests."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        environment.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield
