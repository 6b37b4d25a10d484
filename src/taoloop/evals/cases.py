"""A case of a suite: a task, the world it starts in, and what a right run does and answers. Pure data.

`taoloop.evals.suite_file` reads cases from YAML; suites in Python and from stored runs make them directly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Category = Literal["normal", "edge", "failure", "safety", "regression"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

CheckKind = Literal["exact", "number", "regex", "json_path", "em", "f1", "function", "world", "judge", "status"]
CHECK_KINDS: tuple[CheckKind, ...] = get_args(CheckKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold of a finished trial. A case passes if all of its checks do."""

    kind: CheckKind
    """How the answer or the world is compared."""
    expected: Any = None
    """What is compared with: a text or list of texts, a number, a pattern, a final world, the name of a function, the
    question to a judge."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the kind, such as `tolerance` of a number, `path` of a JSON path, `at_least` of F1."""
    line: int = 0
    """Where the check is in the suite's file, counted from 1; 0 if the suite is no file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPattern:
    """A call that a right run makes, or must not make."""

    tool: str
    """The name of the tool."""
    args: Mapping[str, Any] | None = None
    """The arguments that the call must have; others may be there, too. None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of a suite."""

    case_id: str
    """Unique in its suite; the case is the cluster of all statistics."""
    task: str
    """What the agent is asked."""
    category: Category = "normal"
    """What the case is for."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the trial's workspace, as relative path and content."""
    world: Mapping[str, Any] = field(default_factory=dict)
    """The state that the suite's tools start from (`taoloop.evals.worlds`)."""
    tools: tuple[str, ...] | None = None
    """The tools of the case; None: those of the suite or of the agent."""
    checks: tuple[Check, ...] = ()
    """What must hold at the end."""
    expected_actions: tuple[ActionPattern, ...] = ()
    """The calls that a right run makes, in any order. Metrics of selection and arguments are counted over these."""
    forbidden_actions: tuple[ActionPattern, ...] = ()
    """The calls that no run of this case may carry out; one that is carried out fails the case."""
    evidence: tuple[str, ...] = ()
    """What a right answer must cite: texts (such as titles) that occur in the observations to be cited."""
    abstains: bool = False
    """Whether the right answer is that there is none (the question cannot be answered)."""
    wrong_answer: str | None = None
    """An answer that the checks must reject; None: one is made up. A check that accepts it can never fail."""
    script: tuple[Any, ...] = ()
    """The replies of the oracle: what a right model says, as `ScriptedModel` takes them."""
    scripts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Other scripted behaviours of the case, by name: the model `script:NAME` gives their replies."""
    trouble: tuple[Mapping[str, Any], ...] = ()
    """What goes wrong on purpose (`taoloop.evals.trouble`)."""
    file: str = ""
    """The file that the case is in; empty if it is in none."""
    line: int = 0
    """Where the case begins in its file, counted from 1; 0 if it is in none."""

    def location(self, line: int = 0) -> str:
        """Where the case is, or a line of it, for people: file and line, or its id."""
        return f"{self.file}:{line or self.line}" if self.file else f"case {self.case_id}"


_MEASURED = ("category", "checks", "expected_actions", "forbidden_actions", "evidence", "abstains", "wrong_answer")
"""The fields of a case by which a trial is measured once it has ended."""


def case_digest(case: Case) -> str:
    """The digest of everything in a case but its place in a file (SHA-256, 16 hexadecimal digits)."""
    return _digest(_fields(case))


def run_digest(case: Case) -> str:
    """The digest of what decides how a trial goes: cases that only measure it in another way have the same."""
    return _digest({name: value for name, value in _fields(case).items() if name not in _MEASURED})


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=_fields)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fields(value: Any) -> Any:
    """The fields of a part of a case; anything that JSON does not know by its text."""
    names = getattr(value, "__dataclass_fields__", None)
    if names is None:
        return repr(value)
    return {name: getattr(value, name) for name in names if name not in ("file", "line")}
