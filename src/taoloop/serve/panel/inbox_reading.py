"""What the pages of the inbox show: calls in the words of the person, and which questions go together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from taoloop.core.events import Badge, Source
from taoloop.core.views.plans import readable_args, step_notes, step_title
from taoloop.policy.grants import target_provenance
from taoloop.policy.review.argument_origins import ArgumentOrigin
from taoloop.policy.targets import is_target_role, leaves
from taoloop.policy.texts import translate_reasons
from taoloop.runtime.approvals.inbox import is_one_question
from taoloop.runtime.approvals.inbox_items import InboxCall, InboxItem, InboxKind, ProbeReport
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.translation import mark

MOST_SHOWN_CHARS: Final = 4_000
"""The most characters of one value on a page; the whole is a link away."""

LISTED_CHARS: Final = 300
"""The most characters of one value where several calls are listed."""

MOST_EDITED_CHARS: Final = 200_000
"""The most characters of arguments that can be edited in a page."""

KIND_NAMES: Final[dict[InboxKind, str]] = mark(  # type: ignore[assignment]  # the texts as they are
    {
        "approval": "Approvals",
        "question": "Questions",
        "doubt": "Calls in doubt",
        "undo": "Failed undos",
        "blocked": "Blocked runs",
        "dead": "Given up by recovery",
    }
)
"""What the kinds are called."""

RUN_TITLES: Final[dict[InboxKind, str]] = mark(  # type: ignore[assignment]  # the texts as they are
    {"undo": "Failed undo", "blocked": "Blocked run", "dead": "Run given up by recovery"}
)
"""The titles of items that are not about one question."""

KIND_QUESTIONS: Final[dict[InboxKind, str]] = mark(  # type: ignore[assignment]  # the texts as they are
    {
        "approval": "May this call run?",
        "question": "The model asks a person something.",
        "doubt": "Did this call happen?",
        "undo": "This effect could not be undone.",
        "blocked": "The answer may rest on calls that were denied, because nobody could be asked.",
        "dead": "The process of this run died again and again at the same place.",
    }
)
"""What each kind asks of the person."""

BADGE_NAMES: Final[dict[Badge, str]] = mark(  # type: ignore[assignment]  # the texts as they are
    {
        "YOURS": "in the task",
        "LOOKED UP": "looked up by a trusted tool",
        "WRITTEN": "written by the model",
        "LINKS": "with links that no trusted text has",
        "UNKNOWN": "appears nowhere in this run",
        "FOREIGN": "only in untrusted output",
    }
)
"""Where a value came from, in words."""

BADGE_LABELS: Final[dict[Badge, str]] = mark(  # type: ignore[assignment]  # the texts as they are
    {
        "YOURS": "YOURS",
        "LOOKED UP": "LOOKED UP",
        "WRITTEN": "WRITTEN",
        "LINKS": "LINKS",
        "UNKNOWN": "UNKNOWN",
        "FOREIGN": "FOREIGN",
    }
)
"""The badges themselves, as people read them."""

PROBE_NAMES: Final[dict[ProbeReport, str]] = mark(  # type: ignore[assignment]  # the texts as they are
    {
        "": "The tool was not asked yet.",
        "happened": "The tool itself says: it happened.",
        "not_happened": "The tool itself says: it did not happen.",
        "unclear": "The tool was asked, and nobody can tell.",
        "no_probe": "The tool cannot be asked whether it happened.",
    }
)
"""What the tool's probe said."""

_BAD_BADGES: Final = frozenset({"FOREIGN", "UNKNOWN", "LINKS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownValue:
    """One plain value among the arguments of a call."""

    path: str
    """Where it is in the arguments."""

    text: str
    """The value: a text as it is, anything else as JSON; cut to `MOST_SHOWN_CHARS`."""

    size: int
    """How many characters it has."""

    badge: Badge | None = None
    """How far it can be trusted; None where the policy recorded nothing."""

    is_target: bool = False
    """Whether it says whom or what the call acts on."""

    origin: ArgumentOrigin | None = None
    """Where it came from, on the page of the item."""

    @property
    def is_cut(self) -> bool:
        """Whether it is longer than what is shown."""
        return self.size > len(self.text)

    @property
    def look(self) -> str:
        """How its badge looks: `bad`, `warn` or `good`."""
        return "bad" if self.badge in _BAD_BADGES else "warn" if self.badge == "WRITTEN" else "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """One step of a plan that a question is about."""

    title: str
    """Its number and goal, and what it comes after."""

    notes: tuple[str, ...]
    """What it expects, or that its calls are open."""

    calls: tuple[ShownCall, ...]
    """The calls that it lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call in the language of the person."""

    call: InboxCall
    """The call."""

    values: tuple[ShownValue, ...]
    """Its arguments, what it acts on first."""

    reasons: tuple[str, ...]
    """Why it is asked about, or was denied."""

    undo: str
    """Whether and how it can be undone."""

    always: str
    """What an answer for further calls would allow; empty where there is none."""

    steps: tuple[ShownStep, ...] = ()
    """The steps of the plan, where the call makes one."""

    @property
    def request(self) -> ApprovalRequest:
        """The question about it."""
        return self.call.request


def shown_call(
    call: InboxCall, language: str, origins: Sequence[ArgumentOrigin] = (), *, most_chars: int = MOST_SHOWN_CHARS
) -> ShownCall:
    """A call as a page shows it; `origins` are those of its arguments, where the page has them."""
    request = call.request
    reasons = translate_reasons(
        language,
        request.reasons,
        request.reason_codes,
        tool=request.tool,
        tier=None if request.card is None else request.card.tier,
        rule=request.rule,
        sources=request.sources,
    )
    sources = {source.arg: source for source in request.sources}
    by_path = {origin.path: origin for origin in origins}
    values = [
        _shown_value(path, value, sources.get(path), by_path.get(path), most_chars)
        for path, value in leaves(request.args)
    ]
    return ShownCall(
        call=call,
        values=tuple(sorted(values, key=lambda value: not value.is_target)),
        reasons=reasons,
        undo=request.undo_text(language),
        always=request.always_text(language),
        steps=_shown_steps(call, language, most_chars),
    )


def _shown_steps(call: InboxCall, language: str, most_chars: int) -> tuple[ShownStep, ...]:
    """The steps of a plan with their calls, each as the question about it alone would show it."""
    request = call.request
    plan = request.plan
    if plan is None:
        return ()
    steps = []
    for step in plan.steps:
        planned = [
            replace(each, args=readable_args(language, own))
            for each, own in zip(request.planned(step), step.calls, strict=True)
        ]
        calls = (shown_call(InboxCall(request=each), language, most_chars=most_chars) for each in planned)
        notes = tuple(step_notes(language, step))
        steps.append(ShownStep(title=step_title(language, step), notes=notes, calls=tuple(calls)))
    return tuple(steps)


def _shown_value(
    path: str, value: Any, source: Source | None, origin: ArgumentOrigin | None, most_chars: int
) -> ShownValue:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if value == "":
        text = '""'
    return ShownValue(
        path=path,
        text=text[:most_chars],
        size=len(text),
        badge=origin.badge if origin is not None else None if source is None else source.badge,
        is_target=origin.is_target if origin is not None else source is not None and is_target_role(source.role),
        origin=origin,
    )


def editable_json(args: Any) -> str:
    """Arguments as indented JSON for a form: characters that would not show as themselves are written as escapes."""
    text = json.dumps(args, ensure_ascii=False, indent=2, default=str)
    return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return json.dumps(char)[1:-1]


def question_groups(items: Sequence[InboxItem]) -> list[tuple[InboxItem, ...]]:
    """The approvals, those together that one answer may be for, also of several runs; the oldest question first."""
    groups: dict[object, list[InboxItem]] = {}
    for item in items:
        request = item.calls[0].request
        kind: object = item.key
        if is_one_question(request, request):  # not high-risk
            provenance = target_provenance(list(leaves(request.args)), request.sources)
            kind = (request.tool, request.rule, repr(request.card), provenance)
        groups.setdefault(kind, []).append(item)
    return [tuple(group) for group in groups.values()]
