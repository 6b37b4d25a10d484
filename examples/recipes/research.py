"""Research in a folder of documents: a typed report whose every finding quotes a passage that was looked up.

Run: python examples/recipes/research.py ["QUESTION"] [--library FOLDER] [--model openai:gpt-4o-mini]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pydantic import BaseModel

from taoloop import Agent, AnswerRefused, Result, RunContext, ToolError, Trace
from taoloop.models import FunctionModel, Reply
from taoloop.tools import DocumentFolder, document_tools, locate

LIBRARY = Path(__file__).parent / "library"
QUESTION = "How long does a home battery last, and what does one of 10 kWh cost?"


class Finding(BaseModel):
    """A statement of the report."""

    claim: str
    quote: str
    """Words of the passage, exactly as they stand there."""
    cite: str
    """The citation of the passage, such as `[doc:xyqyv9kwmfr1]`."""


class Report(BaseModel):
    """What the research gave."""

    findings: list[Finding]
    open_questions: list[str]
    """What the documents do not answer."""


def researcher(library: Path = LIBRARY, *, model: str | None = None) -> Agent[None, Report]:
    """The agent; without a model, a function plays it."""
    folder = DocumentFolder(path=library, about="home batteries")

    def check_quotes(_: RunContext, report: Report) -> Report:
        """Send a report back that says what no passage says."""
        for finding in report.findings:
            try:
                passage = locate(folder, finding.cite)
            except ToolError as error:
                raise AnswerRefused(f"{finding.cite} is no passage of the library: cite what you have read.") from error
            if " ".join(finding.quote.split()) not in " ".join(passage.text.split()):
                raise AnswerRefused(f"{finding.cite} does not say {finding.quote!r}: quote it word for word.")
        return report

    return Agent(
        name="researcher",
        model=model or FunctionModel(play, dialect="native"),
        tools=[*document_tools(folder).tools],
        instructions="Search before you answer. Quote one passage for each finding. Say what is not found.",
        output_type=Report,
        output_validators=[check_quotes],
        evidence="require",
    )


def play(_: str, trace: Trace) -> Reply:
    """The model of the demonstration: two searches, then a report from the best passage of each."""
    queries = ("battery lifetime cycles", "battery price 10 kWh")
    passages = [json.loads(call.observed.output)[0] for call in trace.calls.values() if call.observed]
    if len(passages) < len(queries):
        return {"tool_calls": [{"name": "search_documents", "args": {"query": queries[len(passages)], "limit": 1}}]}
    lifetime, price = passages
    report = Report(
        findings=[
            Finding(
                claim="After 6,000 full cycles a battery keeps 80 % of its capacity.",
                quote="keeps 80 % of its capacity after 6,000 full cycles",
                cite=lifetime["cite"],
            ),
            Finding(
                claim="A battery of 10 kWh costs 4,800 EUR in 2026.",
                quote="In 2026 a battery of 10 kWh costs 4,800 EUR",
                cite=price["cite"],
            ),
        ],
        open_questions=["What does the recycling of a battery cost?"],
    )
    return report.model_dump_json()


def print_report(result: Result[Report], library: Path = LIBRARY) -> None:
    """Each finding with the file and the line that it comes from."""
    if result.output is None:
        print(result.status, "-", result.reason)
        return
    for finding in result.output.findings:
        passage = locate(DocumentFolder(path=library), finding.cite)
        print(f"- {finding.claim}\n  “{finding.quote}” ({passage.file}:{passage.line})")
    for question in result.output.open_questions:
        print(f"? {question}")


def main() -> None:
    """Answer the question of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--library", type=Path, default=LIBRARY, help="a folder of documents")
    parser.add_argument("--model", help="a real model, such as openai:gpt-4o-mini; default: a function plays it")
    options = parser.parse_args()
    print_report(researcher(options.library, model=options.model).run_sync(options.question), options.library)


if __name__ == "__main__":
    main()
