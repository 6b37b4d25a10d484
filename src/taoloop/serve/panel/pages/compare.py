"""Two or more runs side by side: what each took, where each first differs from the first one, and every step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from string import ascii_uppercase
from typing import Any, Final

from aiohttp import web

from taoloop.core.trace import Trace
from taoloop.core.views.difference_text import (
    decision_text,
    difference_headline,
    difference_lines,
    difference_name,
    value_text,
)
from taoloop.core.views.run_diff import Comparison, Difference, StepRow, compare
from taoloop.errors import ConfigError, RunNotFound
from taoloop.journals.base import RunRow
from taoloop.journals.queries import RunQuery
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.rendering import count, duration, usd
from taoloop.translation import mark

MOST_RUNS: Final = 8
"""How many runs are compared at most."""

QUICK_EVENTS: Final = 40_000
"""How many events of all runs together are compared unless the address asks for the whole: about a second."""

MOST_EVENTS: Final = 400_000
"""How many events of all runs together are compared at most, some 100,000 steps."""

ROWS_PER_PAGE: Final = 100
"""How many rows of steps a page shows."""

_CANDIDATES = 30
_TEXT_CHARS, _ROW_CHARS, _FIRST_CHARS = 400, 2_000, 8_000
_FIGURES: Final = {
    "steps": mark("Steps"),
    "tool_calls": mark("Tool calls"),
    "errors": mark("Errors"),
    "tokens": mark("Tokens"),
    "cost_usd": mark("Cost"),
    "active_s": mark("Active time"),
    "elapsed_s": mark("Time with waiting"),
}
"""What is compared in sums, by the field of `RunFigures`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run that is compared."""

    name: str
    """The letter by which the page calls it."""
    trace: Trace
    """The run, or its beginning."""
    is_whole: bool
    """Whether that is all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """A row of the table of steps: steps that correspond, or a stretch of rows in which nothing differs."""

    index: int
    """Its position among all rows of the comparison, from 0."""
    row: StepRow
    """The row; the first one of a stretch."""
    differences: Sequence[Sequence[Difference]]
    """For each run, in what it differs from the first."""
    equal: int = 0
    """How many rows are left out here, for they are equal; 0: this is a row."""


async def compare_page(context: PanelContext) -> web.StreamResponse:
    """`GET /compare?runs=A,B`: the comparison; with fewer than two runs, the form that picks them."""
    picked = [*context.query("runs").split(","), *context.request.query.getall("run", [])]
    run_ids = list(dict.fromkeys(run_id for text in picked if (run_id := text.strip())))
    if "run" in context.request.query:  # from the form; the address then names them
        return context.redirect(context.here(run=None, runs=",".join(run_ids), q=None))
    problem = ""
    if len(run_ids) > MOST_RUNS:
        problem = context.say("At most {n} runs can be compared.", n=MOST_RUNS)
    elif len(run_ids) > 1:
        try:
            return await _comparison_page(context, run_ids)
        except RunNotFound as error:
            problem = context.without_path(error.message)
    return await _picker(context, run_ids, problem)


async def _picker(context: PanelContext, run_ids: Sequence[str], problem: str) -> web.StreamResponse:
    """The form that picks runs: those of the search, or of the same task as the one that is there already."""
    text, chosen = context.query("q").strip(), list[RunRow]()
    for run_id in run_ids[:MOST_RUNS]:
        matches = (await context.queries.find(RunQuery(prefix=run_id), limit=MOST_RUNS)).rows
        chosen += [row for row in matches if row.run_id == run_id]
    candidates = (await context.queries.find(RunQuery(text=text, only_outermost=True), limit=_CANDIDATES)).rows
    if chosen and not text:
        alike = await context.queries.find(RunQuery(text=chosen[0].task[:200]), limit=_CANDIDATES)
        candidates = (*alike.rows, *candidates)
    rows = {row.run_id: row for row in (*chosen, *candidates)}
    return context.page(
        "compare_picker.html",
        status=404 if problem else 200,
        rows=tuple(rows.values())[:_CANDIDATES],
        run_ids=[row.run_id for row in chosen],
        text=text,
        problem=problem,
        most=MOST_RUNS,
    )


async def _comparison_page(context: PanelContext, run_ids: Sequence[str]) -> web.StreamResponse:
    is_whole = context.query("whole") == "1"
    most = (MOST_EVENTS if is_whole else QUICK_EVENTS) // len(run_ids)
    named = zip(ascii_uppercase, run_ids, strict=False)
    runs = [await _read(context, name, run_id, most) for name, run_id in named]
    first, second, *more = (run.trace for run in runs)
    thoughts, decisions = context.query("thoughts") == "1", context.query("decisions") == "1"
    comparison = await asyncio.to_thread(compare, first, second, *more, decisions_only=decisions, thoughts=thoughts)
    names = [run.name for run in runs]
    shown = list(_shown_rows(comparison, len(runs), every=context.query("rows") == "all"))
    start = _start(context, shown)
    language = context.language
    return context.page(
        "compare.html",
        runs=runs,
        comparison=comparison,
        figures=_figures(context, comparison),
        firsts=[
            (name, difference, difference and difference_headline(difference, names, language))
            for name, difference in ((names[run], comparison.first_of(run)) for run in range(1, len(runs)))
        ],
        forks=[
            (run.name, other.name, run.trace.started.forked_at)
            for run in runs
            for other in runs
            if run.trace.started is not None and run.trace.started.forked_from == other.trace.run_id
        ],
        shown=shown[start : start + ROWS_PER_PAGE],
        can_be_whole=not is_whole,
        start=start,
        previous=max(0, start - ROWS_PER_PAGE) if start else None,
        following=start + ROWS_PER_PAGE if start + ROWS_PER_PAGE < len(shown) else None,
        show_all=context.query("rows") == "all",
        thoughts=thoughts,
        decisions=decisions,
        decision=lambda text: _cut(decision_text(text, language)),
        part=lambda difference: _part(context, difference, names),
        value=lambda value: _cut(value_text(value, language)),
        row_lines=lambda difference: difference_lines(difference, names, language, max_chars=_ROW_CHARS),
        first_lines=lambda difference: difference_lines(difference, names, language, max_chars=_FIRST_CHARS),
    )


ROUTES: Final = (Route("GET", "/compare", compare_page),)


async def _read(context: PanelContext, name: str, run_id: str, most: int) -> ComparedRun:
    """A run, up to so many events.

    Raises:
        RunNotFound: there is no such run, or it never began.
    """
    events = await context.queries.read(run_id, limit=most + 1)
    if not events:
        raise RunNotFound(f"The run {run_id} ended before its first event was written; it is empty.")
    trace = await asyncio.to_thread(Trace, run_id, events[:most])  # so that other pages are answered meanwhile
    return ComparedRun(name=name, trace=trace, is_whole=len(events) <= most)


def _start(context: PanelContext, shown: Sequence[ShownRow]) -> int:
    """The first row to show.

    Raises:
        ConfigError: the address has none there.
    """
    text = context.query("from", "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ConfigError(f"{text[:40]!r} is not the number of a row.", hint="Leave out `from` in the address.")
    return int(text) if int(text) < len(shown) else 0


def _figures(context: PanelContext, comparison: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each sum of each run as a text, with how far it is above or below the first run's."""
    in_words: Callable[[float], str] = partial(duration, language=context.language)
    forms: dict[str, Callable[[Any], str]] = {
        "cost_usd": partial(usd, language=context.language),
        "active_s": in_words,
        "elapsed_s": in_words,
    }
    rows = []
    for field, label in _FIGURES.items():
        form, base = forms.get(field, count), getattr(comparison.runs[0], field)
        cells = []
        for run in comparison.runs:
            value, delta = getattr(run, field), ""
            if None not in (value, base) and form(value) != form(base):
                delta = f"{'+' if value > base else '−'}{form(abs(value - base))}"
            cells.append((form(value), delta))
        rows.append((context.say(label), cells))
    return rows


def _shown_rows(comparison: Comparison, run_count: int, *, every: bool) -> Iterator[ShownRow]:
    """The rows to show; unless `every` is asked for, a stretch of equal ones is one, but for its ends."""
    by_step: dict[tuple[int, int | None, int | None], list[Difference]] = {}
    for difference in comparison.differences:
        by_step.setdefault((difference.run, difference.step, difference.other_step), []).append(difference)
    rows = comparison.rows
    index = 0
    while index < len(rows):
        row, stop = rows[index], index
        while not every and stop < len(rows) and rows[stop].same:
            stop += 1
        if stop - index > 2:
            yield ShownRow(index=index, row=row, differences=(), equal=stop - index)
            index = stop
            continue
        numbers = [None if cell is None else cell.number for cell in row.cells]
        differences = [by_step.get((run, numbers[0], numbers[run]), []) if run else [] for run in range(run_count)]
        yield ShownRow(index=index, row=row, differences=differences)
        index += 1


def _part(context: PanelContext, difference: Difference, names: Sequence[str]) -> str:
    """What differs, in a word or two."""
    if difference.part == "step":
        return context.say("only {run} has it", run=names[0] if difference.b is None else names[difference.run])
    return difference_name(difference.what, context.language)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_CHARS else f"{text[: _TEXT_CHARS - 1]}…"
