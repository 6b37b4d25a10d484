"""HotpotQA in the distractor setting (Yang et al. 2018), with the tools of the ReAct paper over each question's pages.

`search` opens a page and `lookup` finds a string in it; the paper's `finish` is the final answer. A right answer is
scored by exact match, and must cite both pages with its supporting facts: precision and recall of citations are
measured over these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from taoloop.core.search import suggest_names
from taoloop.errors import ToolError
from taoloop.evals.suites.data_files import read_records
from taoloop.evals.worlds import current_world
from taoloop.tools.function import tool
from taoloop.tools.tool import RunContext

_SIMILAR = 5  # titles, as in the paper


@tool(tier="read", inline=True)
def search(entity: str) -> str:
    """Open the page of an entity. If there is none, similar titles are named.

    Args:
        entity: The title of the page.
    """
    title = _title(entity)
    if title is None:
        similar = ", ".join(suggest_names(entity, tuple(_pages()), at_most=_SIMILAR)) or "none"
        raise ToolError(f"There is no page {entity!r}. Similar: {similar}.")
    return f"{page_mark(title)}: {''.join(_pages()[title]).strip()}"


@tool(tier="read", inline=True)
def lookup(string: str, *, call: RunContext) -> str:
    """Find the next sentence with a string in the page that was opened last.

    Args:
        string: What to find.
        call: The call, which says what was opened and found before.
    """
    title, found_before = None, 0
    for view in call.calls():
        if view.requested.call_id == call.call_id:
            break
        args = view.args if isinstance(view.args, dict) else {}
        if view.requested.tool == "search" and (opened := _title(str(args.get("entity", "")))) is not None:
            title, found_before = opened, 0
        elif view.requested.tool == "lookup" and args.get("string") == string:
            found_before += 1
    if title is None:
        raise ToolError("No page is open. Open one by search.")
    sentences = [sentence for sentence in _pages()[title] if string.casefold() in sentence.casefold()]
    if found_before >= len(sentences):
        return f"No more results in {page_mark(title)}."
    return f"(Result {found_before + 1} / {len(sentences)} in {page_mark(title)}) {sentences[found_before].strip()}"


def page_mark(title: str) -> str:
    """How outputs name a page, which is the evidence that a citation of them has."""
    return f'Page "{title}"'


def _pages() -> dict[str, list[str]]:
    pages: dict[str, list[str]] = current_world().state["pages"]
    return pages


def _title(entity: str) -> str | None:
    return next((title for title in _pages() if title.casefold() == entity.strip().casefold()), None)


def hotpotqa_cases() -> Iterator[dict[str, Any]]:
    """A case for each question.

    The oracle opens the two pages with the supporting facts and cites both. The script `half` opens one of them and a
    page that has nothing to do with the question, and cites both.
    """
    for record in read_records("hotpotqa_sample.jsonl", "hotpotqa*.jsonl"):
        titles, sentences = record["context"]["title"], record["context"]["sentences"]
        gold = list(dict.fromkeys(record["supporting_facts"]["title"]))
        distractor = next(title for title in titles if title not in gold)
        yield {
            "id": record["id"],
            "task": record["question"],
            "world": {"pages": dict(zip(titles, sentences, strict=True))},
            "expect": {"em": [record["answer"]]},
            "wrong_answer": "I would rather not say.",
            "evidence": [page_mark(title) for title in gold],
            "script": _script(record["answer"], gold),
            "scripts": {"half": _script(record["answer"], [gold[0], distractor])},
        }


def _script(answer: str, titles: list[str]) -> list[Any]:
    """Open the pages, and answer with a citation of each."""
    cited = ", ".join(f"obs:call_{number}" for number, _ in enumerate(titles, 1))
    return [
        *({"tool_calls": [{"name": "search", "args": {"entity": title}}]} for title in titles),
        f"{answer} [{cited}]",
    ]
