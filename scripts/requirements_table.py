"""Which test shows which requirement: a Markdown table, and exit code 1 if a line that is due has none.

Usage: requirements_table.py [--check]     --check: print only what is wrong

The lines are in tests/data/requirements.txt. A test names a line anywhere in its text, decorators included: `S0-5`,
`S4-4 to S4-8`. Two more things are wrong: an id that there is not, and a line that is decided otherwise
("Differs (TOPIC): …") whose topic has no row in docs/examples.md, which says why.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINES = ROOT / "tests" / "data" / "requirements.txt"
DECISIONS = ROOT / "docs" / "examples.md"

NOT_YET_DUE: dict[str, str] = {}
"""Lines that belong to parts that are still to be built. A line leaves this block with the part that it belongs to."""

_IDS = re.compile(r"\bS([0-4])-(\d+)(?: to S\1-(\d+))?\b")


def find_ids(text: str) -> Iterator[str]:
    """The ids that a text names, ranges written out."""
    for match in _IDS.finditer(text):
        group, first, last = match.groups()
        yield from (f"S{group}-{number}" for number in range(int(first), int(last or first) + 1))


def read_requirements() -> dict[str, str]:
    """The sentence of each id, in order."""
    lines = LINES.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if line.startswith("S"))


def find_tests() -> dict[str, list[str]]:
    """The tests that name each id, as `path::name`."""
    tests: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if not _IDS.search(source):
            continue
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                start = min((decorator.lineno for decorator in node.decorator_list), default=node.lineno)
                name = f"{path.relative_to(ROOT).as_posix()}::{node.name}"
                for requirement in dict.fromkeys(find_ids("\n".join(lines[start - 1 : node.end_lineno]))):
                    tests.setdefault(requirement, []).append(name)
    return tests


def find_problems(requirements: dict[str, str], tests: dict[str, list[str]], later: dict[str, str]) -> list[str]:
    """Unknown ids, due lines without a test, and decisions that the documentation does not give."""
    unknown = {requirement: names[0] for requirement, names in tests.items() if requirement not in requirements}
    problems = [f"{requirement}: there is no such line, but {name} names it" for requirement, name in unknown.items()]
    problems += [
        f"{requirement}: there is no such line, but it is to come" for requirement in later.keys() - requirements
    ]
    problems += [
        f"{requirement}: no test names it: {sentence}"
        for requirement, sentence in requirements.items()
        if requirement not in tests and requirement not in later
    ]
    explained = set(re.findall(r"^\| ([^|]+) \|", DECISIONS.read_text(encoding="utf-8"), re.MULTILINE))
    topics = {requirement: re.findall(r"Differs \(([^)]+)\): ", line) for requirement, line in requirements.items()}
    problems += [
        f"{requirement}: {DECISIONS.name} has no row '{topic}' that says why it differs"
        for requirement, names in topics.items()
        for topic in names
        if topic not in explained
    ]
    return problems


def table(requirements: dict[str, str], tests: dict[str, list[str]], later: dict[str, str]) -> str:
    """The Markdown table: id, sentence, tests."""
    rows = ["| id | line | shown by |", "|---|---|---|"]
    for requirement, sentence in requirements.items():
        notes = [f"not yet due: {later[requirement]}"] if requirement in later else []
        cells = [*notes, *(f"`{name}`" for name in tests.get(requirement, []))] or ["**no test**"]
        rows.append(f"| {requirement} | {sentence.replace('|', chr(92) + '|')} | {'<br>'.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    requirements, tests = read_requirements(), find_tests()
    later = {requirement: part for part, ids in NOT_YET_DUE.items() for requirement in find_ids(ids)}
    if "--check" not in sys.argv[1:]:
        sys.stdout.write(table(requirements, tests, later))
        due = requirements.keys() - later
        shown = len(due & tests.keys())
        sys.stdout.write(f"\n\n{len(requirements)} lines, {len(due)} due, {shown} of them shown by a test.\n")
    sys.exit("\n".join(find_problems(requirements, tests, later)) or 0)
