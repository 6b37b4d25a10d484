"""The child process by itself: its protocol and its limits."""

from __future__ import annotations

import io
import json
import resource
from typing import Any

import pytest
from tests.tools.documents.conftest import pdf

from taoloop.tools.parsers.parser_process import limit_memory, limit_time, serve


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """Records the limits instead of setting them; the hard limit of memory is 1 GB."""
    recorded: dict[int, tuple[int, int]] = {}
    hard = {resource.RLIMIT_AS: 1 << 30}
    monkeypatch.setattr("resource.getrlimit", lambda kind: (-1, hard.get(kind, resource.RLIM_INFINITY)))
    monkeypatch.setattr("resource.setrlimit", recorded.__setitem__)
    return recorded


def replies(*requests: tuple[dict[str, Any], bytes]) -> list[dict[str, Any]]:
    sent = b"".join(
        json.dumps({"bytes": len(data), "seconds": 9, **head}).encode() + b"\n" + data for head, data in requests
    )
    written = io.BytesIO()
    serve(io.BytesIO(sent), written, 1 << 34)
    return [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.usefixtures("limits")
def test_each_request_ends_with_an_end_or_an_error() -> None:
    options = {"max_pages": 1, "max_chars": 10}
    assert replies(
        ({"kind": "pdf", "options": options}, pdf("Hi")), ({"kind": "pdf", "options": options}, b"no pdf")
    ) == [
        {"page": 1, "text": "Hi"},
        {"notes": []},
        {"end": True},
        {"error": "it is not a PDF", "hint": "Correct its suffix, or save it as PDF.", "is_transient": False},
    ]


@pytest.mark.usefixtures("limits")
def test_a_missing_library_is_reported_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pypdf", None)
    (error,) = replies(({"kind": "pdf", "options": {"max_pages": 1, "max_chars": 10}}, b"%PDF-"))
    assert error["hint"] == "pip install 'taoloop[documents]'."
    assert error["is_transient"]


@pytest.mark.usefixtures("limits")
def test_running_out_of_memory_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("taoloop.tools.parsers.pdf.read_pdf", exhaust)
    (error,) = replies(({"kind": "pdf", "options": {}}, b"x"))
    assert error["error"] == "parsing it takes too much memory"


def test_memory_is_limited_at_most_to_what_is_allowed_already(limits: dict[int, tuple[int, int]]) -> None:
    limit_memory(1 << 20)
    assert limits == {resource.RLIMIT_AS: (1 << 20, 1 << 20), resource.RLIMIT_CORE: (0, 0)}
    limit_memory(1 << 40)
    assert limits[resource.RLIMIT_AS] == (1 << 30, 1 << 30)


def test_processor_time_is_limited_for_each_file(limits: dict[int, tuple[int, int]]) -> None:
    limit_time(10)
    soft, hard = limits[resource.RLIMIT_CPU]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    assert 11 <= soft <= usage.ru_utime + usage.ru_stime + 12
    assert hard == resource.RLIM_INFINITY, "so that the next file gets time, too"


@pytest.mark.parametrize("error", [ValueError("current limit exceeds maximum limit"), OSError(22, "Invalid argument")])
def test_a_system_that_refuses_a_limit_is_tolerated(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_kind: int, _limits: tuple[int, int]) -> None:
        raise error

    monkeypatch.setattr("resource.setrlimit", refuse)
    limit_memory(1 << 30)
    limit_time(10)


def test_a_system_without_limits_is_tolerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "resource", None)
    limit_memory(1 << 30)
    limit_time(10)
