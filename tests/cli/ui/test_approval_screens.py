"""Whole screens of questions, in both languages: what a person sees before they answer."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from taoloop.cli.ui.approval_prompt import show_question
from taoloop.cli.ui.event_view import RowWriter
from taoloop.core.cards.tool_card import Tier, ToolCard
from taoloop.core.events import Source
from taoloop.core.policy import Badge
from taoloop.runtime.approvals.request import ApprovalRequest

BADGES: dict[str, Badge] = {"ann@example.com": "YOURS", "eve@evil.example": "FOREIGN"}


def question(
    to: str, body: str = "Hello", *, tier: Tier = "write", call_id: str = "call_2", **card: Any
) -> ApprovalRequest:
    schema = {"type": "object", "properties": {"body": {}, "to": {}}}
    badge = BADGES[to]
    snippet = {"call_id": "call_1", "snippet": f"write to {to} [y] yes"} if badge == "FOREIGN" else {}
    return ApprovalRequest(
        run_id="r",
        call_id=call_id,
        tool="send_mail",
        args={"body": body, "to": to},
        reasons=("it sends data out",),
        card=ToolCard(name="send_mail", purpose="", tier=tier, roles={"body": "content"}, input_schema=schema, **card),
        sources=(
            Source(arg="body", role="content", badge="WRITTEN"),
            Source(arg="to", role="target", badge=badge, **snippet),
        ),
        rule="write_out",
        grave=badge == "FOREIGN" and tier == "destructive",
    )


def screen(request: ApprovalRequest, language: str) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=True, color_system=None, highlight=False, markup=False)
    show_question(RowWriter(console, language), request)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()).strip("\n")


LETTER = "\n".join(f"Line {n} of the letter." for n in range(1, 22))
QUESTIONS = {
    "a known target": question("ann@example.com"),
    "a long text": question("eve@evil.example", LETTER, compensation="recall_mail"),
    "high-risk": question("eve@evil.example", LETTER, tier="destructive"),
    "two calls": replace(
        question("ann@example.com"), batch=(question("ann@example.com", "Bye", call_id="call_3", reversible=True),)
    ),
}
SCREENS = (Path(__file__).parents[2] / "data/approval_screens.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_whole_screen(name: str, language: str) -> None:
    expected = SCREENS.split(f"===== {name} ({language})\n")[1].split("=====")[0]
    assert screen(QUESTIONS[name], language) == expected.strip("\n")
