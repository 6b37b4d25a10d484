"""Reading replies: µs for a typical reply of each dialect, drifted ones too, and seconds for a megabyte of anything.

Run: python benchmarks/reading.py [--json]
Target: at most 50 µs for a typical reply in each dialect; no megabyte takes longer than a second.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import Act, Answer, Call, Problem
from taoloop.core.message import ModelReply, ToolCallText
from taoloop.dialects import DIALECTS, Dialect, get_dialect

TARGET_US, TARGET_S = 50.0, 1.0
ROUNDS = 2_000
MEGABYTE = 1_000_000

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
CARDS = tuple(
    ToolCard(name=name, purpose="A tool.", input_schema=SCHEMA, tier="read")
    for name in ("search", "read_page", "calculate", "get_weather", "now")
)
REASON = "The user wants to know whether to take an umbrella to Lyon tomorrow, so I look at the forecast."
ACT = Act(calls=(Call(tool="get_weather", args={"city": "Lyon", "days": 2}),), reason=REASON)
ANSWER = Answer(text="Yes, take an umbrella: rain is forecast in Lyon from two in the afternoon.")
DRIFTED = {
    "text": "**Thought:** rain?\n**Action:** `Get Weather`\n**Action Input:** {'city': 'Lyon', 'days': 2,}<|im_end|>",
    "json": "Here it is:\n```json\n{thought: 'rain?', tool: \"get_weather\", args: {city: 'Lyon', days: 2}}\n```",
    "json_final": "Here it is:\n```json\n{thought: 'rain?', tool: \"get_weather\", args: {city: 'Lyon', days: 2}}\n```",
    "fenced": "Thought: rain?\nAction:\n```\n{'action': 'get_weather', 'action_input': {'city': 'Lyon', 'days': 2}}\n",
    "native": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lyon", "days": "2"}}\n</tool_call>',
}
PIECES = [
    *("{", "[", "(", "}", '"', "'", "“", "\\", "`", "<", "：", " ", "\n", "**", "{}", '{"a":', '{"a":1}', "a.", "_"),
    *("Action: ", "Action: now\n", "Action: lookup(", "Thought:", "Thought: a\n", "Observation:\n", "Final: a\n```\n"),
    *(
        "<think>",
        "</think>",
        "<think>\n",
        "```",
        "```\n",
        "```\nThought: a\n```\n",
        "<tool_call>",
        "<|",
        "<|im_end|>\n",
    ),
    *("/*", "#", '" ', "now(", "Action: now\nAction Input: {}\n", "<parameter=a>", "Finish["),
]
STARTS = [
    "",
    "Final Answer: ",
    "Thought: ",
    'Action: search\nAction Input: {"city": ',
    "Action: now\nAction Input: {}\n",
]


def microseconds(work: Callable[[], object]) -> float:
    """The median of five runs."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(ROUNDS):
            work()
        times.append((time.perf_counter() - began) / ROUNDS * 1e6)
    return sorted(times)[2]


def reply_of(dialect: Dialect, name: str) -> ModelReply:
    if name == "action":
        return dialect.write(ACT)
    return dialect.write(ANSWER) if name == "answer" else ModelReply(text=DRIFTED[dialect.name])


def slowest_megabyte(dialect: Dialect) -> tuple[float, str]:
    worst = (0.0, "")
    for piece in PIECES:
        long = piece * (MEGABYTE // len(piece))
        replies = [ModelReply(text=start + long) for start in STARTS]
        if dialect.native:
            replies.append(ModelReply(tool_calls=(ToolCallText(name="now", arguments=long),)))
        for reply in replies:
            began = time.perf_counter()
            dialect.read(reply, CARDS)
            worst = max(worst, (time.perf_counter() - began, f"{reply.text[:12]!r}… of {piece!r}"))
    return worst


def main() -> int:
    figures: dict[str, dict[str, object]] = {}
    for name in sorted(DIALECTS):
        dialect = get_dialect(name)
        row: dict[str, object] = {}
        for which in ("action", "answer", "drifted"):
            reply = reply_of(dialect, which)
            assert not isinstance(dialect.read(reply, CARDS), Problem)
            row[f"{which}_us"] = round(microseconds(lambda d=dialect, r=reply: d.read(r, CARDS)), 1)  # type: ignore[misc]
        seconds, what = slowest_megabyte(dialect)
        row |= {"megabyte_s": round(seconds, 2), "slowest": what}
        figures[name] = row
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return 0
    for name, row in figures.items():
        times = "   ".join(f"{which} {row[f'{which}_us']:6} µs" for which in ("action", "answer", "drifted"))
        print(f"{name:7} {times}   slowest megabyte {row['megabyte_s']:5} s ({row['slowest']})")
    met = all(
        max(float(str(row["action_us"])), float(str(row["answer_us"]))) <= TARGET_US
        and float(str(row["megabyte_s"])) <= TARGET_S
        for row in figures.values()
    )
    print(f"target {TARGET_US:g} µs and {TARGET_S:g} s: {'met' if met else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
