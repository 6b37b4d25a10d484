from __future__ import annotations

from datetime import UTC, datetime

import pytest

from taoloop.errors import ToolError
from taoloop.tools.builtin.time_now import time_now, time_now_tool

NOON = time_now_tool(lambda: datetime(2025, 6, 1, 12, 0, 0, 987654, tzinfo=UTC))


def refused(zone: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        NOON(zone)
    assert caught.value.code == "unknown_zone"
    return caught.value


@pytest.mark.parametrize(
    ("zone", "time"),
    [
        ("Asia/Shanghai", "2025-06-01T20:00:00+08:00"),
        ("Asia/Singapore", "2025-06-01T20:00:00+08:00"),
        ("America/New_York", "2025-06-01T08:00:00-04:00"),
        ("UTC", "2025-06-01T12:00:00+00:00"),
    ],
)
def test_an_iana_zone_gives_iso_8601_with_offset(zone: str, time: str) -> None:
    """S3-15, S3-40."""
    assert NOON(zone) == time


def test_without_a_zone_it_is_the_local_time() -> None:
    """S3-16."""
    told = datetime.fromisoformat(NOON())
    assert told == datetime(2025, 6, 1, 12, tzinfo=UTC)
    assert told.utcoffset() == datetime(2025, 6, 1, 12, tzinfo=UTC).astimezone().utcoffset()
    assert NOON.prepare({"zone": None}).values.get("zone") is None


@pytest.mark.parametrize("zone", ["", "  "])
def test_an_empty_zone_is_local_time(zone: str) -> None:
    """S3-16: models send one for `no zone`."""
    assert NOON(zone) == NOON()


@pytest.mark.parametrize(
    ("zone", "time"),
    [
        ("GMT+8", "2025-06-01T20:00:00+08:00"),
        ("UTC+8", "2025-06-01T20:00:00+08:00"),
        ("utc +08:00", "2025-06-01T20:00:00+08:00"),
        ("+0530", "2025-06-01T17:30:00+05:30"),
        ("UTC-3", "2025-06-01T09:00:00-03:00"),
        ("GMT\u22125", "2025-06-01T07:00:00-05:00"),
        ("Etc/GMT+8", "2025-06-01T04:00:00-08:00"),  # the name of the tz database counts the other way round
        ("GMT", "2025-06-01T12:00:00+00:00"),
    ],
)
def test_an_offset_means_what_people_mean(zone: str, time: str) -> None:
    assert NOON(zone) == time


def test_the_default_clock_is_the_real_one() -> None:
    assert abs((datetime.fromisoformat(time_now("UTC")) - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.parametrize(
    "zone",
    [
        "Mars/Olympus",
        "../etc/passwd",
        "UTC+15",
        "UTC+8:75",
        "CST",
        "+",
        "/etc/localtime",
        "localtime",
        "posix/UTC",
        "x" * 300,
        "\0",
        "Asia",
        "\ud800",
    ],
)
def test_what_is_no_iana_name_is_an_error_text(zone: str) -> None:
    """S3-17."""
    assert len(str(refused(zone))) < 400


@pytest.mark.parametrize(
    ("zone", "meant"),
    [
        ("上海", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        ("新加坡", "Asia/Singapore"),
        ("Beijing", "Asia/Shanghai"),
        ("new york", "America/New_York"),
        ("asia/shanghai", "Asia/Shanghai"),
        ("Asia/Shangai", "Asia/Shanghai"),
        ("paris", "Europe/Paris"),
    ],
)
def test_a_near_name_is_suggested_but_never_taken(zone: str, meant: str) -> None:
    """S3-40."""
    assert meant in refused(zone).hint
