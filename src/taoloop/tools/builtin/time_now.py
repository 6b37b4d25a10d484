"""The time in a zone: IANA names and offsets from UTC, the clock is an argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

from taoloop.core.cards.tool_card import ErrorCard, ExampleCard
from taoloop.core.search import suggest_names
from taoloop.core.text import chinese_texts
from taoloop.tools.function import tool
from taoloop.tools.texts import TEXTS
from taoloop.tools.tool import Tool

_CITIES = {
    "上海": "Asia/Shanghai", "北京": "Asia/Shanghai", "中国": "Asia/Shanghai", "深圳": "Asia/Shanghai",
    "广州": "Asia/Shanghai", "杭州": "Asia/Shanghai", "香港": "Asia/Hong_Kong", "台北": "Asia/Taipei",
    "新加坡": "Asia/Singapore", "东京": "Asia/Tokyo", "首尔": "Asia/Seoul", "曼谷": "Asia/Bangkok",
    "迪拜": "Asia/Dubai", "孟买": "Asia/Kolkata", "伦敦": "Europe/London", "巴黎": "Europe/Paris",
    "柏林": "Europe/Berlin", "莫斯科": "Europe/Moscow", "纽约": "America/New_York",
    "洛杉矶": "America/Los_Angeles", "芝加哥": "America/Chicago", "多伦多": "America/Toronto",
    "悉尼": "Australia/Sydney", "奥克兰": "Pacific/Auckland",
    "beijing": "Asia/Shanghai", "china": "Asia/Shanghai",
    "shenzhen": "Asia/Shanghai", "guangzhou": "Asia/Shanghai", "hangzhou": "Asia/Shanghai",
    "new york": "America/New_York", "nyc": "America/New_York", "san francisco": "America/Los_Angeles",
    "seattle": "America/Los_Angeles", "washington": "America/New_York", "boston": "America/New_York",
    "mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata", "munich": "Europe/Berlin",
    "geneva": "Europe/Zurich", "abu dhabi": "Asia/Dubai", "osaka": "Asia/Tokyo",
}  # fmt: skip
_LONGEST_ZONE = 64
_OFFSET = re.compile(r"(?:utc|gmt)? ?([+\-\u2212])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)
_LARGEST_OFFSET = timedelta(hours=14)


def system_clock() -> datetime:
    """The present time with the machine's own offset."""
    return datetime.now().astimezone()


def time_now_tool(now: Callable[[], datetime] = system_clock) -> Tool:
    """The tool `time_now` on a clock of the caller's choice; a time without an offset counts as local."""

    @tool(
        name="time_now",
        tier="read",
        use_when="The present time or date is needed, here or in a zone.",
        avoid_when="A given time is to be converted, or only an abbreviation such as CST is known.",
        errors=(
            ErrorCard(code="unknown_zone", advice="Use a name such as Asia/Shanghai, or an offset such as UTC+8."),
        ),
        examples=(
            ExampleCard(args={"zone": "Asia/Shanghai"}, output="2025-06-01T09:30:00+08:00"),
            ExampleCard(args={}, note="the local time"),
        ),
        chinese=chinese_texts("tools"),
    )
    def time_now(zone: str | None = None) -> str:
        """Tell the present time, only as ISO 8601 with offset, in one IANA zone or as local time.

        Args:
            zone: An IANA time zone name such as Asia/Shanghai, or an offset such as UTC+8; without it, the local time.
        """
        moment = now().astimezone() if zone is None or not zone.strip() else now().astimezone(_zone(zone.strip()))
        return moment.isoformat(timespec="seconds")

    return time_now


def _zone(name: str) -> tzinfo:
    """The zone of an IANA name, or of an offset as people write it: `UTC+8` is east of Greenwich, `Etc/GMT+8` west."""
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        if offset <= _LARGEST_OFFSET:
            return timezone(offset if match[1] == "+" else -offset)
    if name in _zone_names():
        try:
            return ZoneInfo(name)
        except (OSError, ValueError):  # in the list but not on this machine
            pass
    near = _suggestions(name)
    zone_text = repr(name) if len(name) <= _LONGEST_ZONE else f"{name[:_LONGEST_ZONE]!r}…"
    hint = TEXTS.run_text("did_you_mean", names=", ".join(near)) if near else None
    raise TEXTS.error("unknown_zone", "unknown_zone", hint=hint, zone=zone_text)


@cache
def _zone_names() -> frozenset[str]:
    """The names of the tz database, from the tzdata package: the same on every machine."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return frozenset(listed) - {"Factory", "localtime"}


def _suggestions(name: str) -> tuple[str, ...]:
    query = name.strip()
    folded = " ".join(query.casefold().replace("_", " ").split())
    if not folded or len(query) > _LONGEST_ZONE:
        return ()
    if folded in _CITIES:
        return (_CITIES[folded],)
    inner_zones = tuple(dict.fromkeys(zone for city, zone in _CITIES.items() if not city.isascii() and city in query))
    if inner_zones:
        return inner_zones[:3]
    by_city = {zone.rpartition("/")[2].replace("_", " ").casefold(): zone for zone in sorted(_zone_names(), key=len)}
    if folded in by_city:
        return (by_city[folded],)
    cities = tuple(by_city[city] for city in suggest_names(folded, by_city, at_most=3))
    zones = suggest_names(query.replace(" ", "_"), sorted(_zone_names()), at_most=3)
    return tuple(dict.fromkeys((*zones, *cities)))[:3]


time_now = time_now_tool()
