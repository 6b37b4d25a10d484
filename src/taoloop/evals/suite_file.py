"""Suites from YAML: every mistake with its file, line and field, before anything is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Required, TypedDict

from taoloop.config.agent_file import load_agent, load_policy
from taoloop.config.document import ConfigDocument, is_config_file, read_document
from taoloop.config.import_attribute import error_context, load_attribute
from taoloop.config.settings_reader import SettingsReader, Span, checked, expected
from taoloop.config.tool_entries import ToolReader
from taoloop.core.agent_spec import Limits
from taoloop.core.policy import PROFILES, EvidenceMode, Policy
from taoloop.core.text import is_number, lazy_pattern
from taoloop.dialects import get_dialect
from taoloop.errors import AgentFileError, ConfigError, UnknownName
from taoloop.evals.cases import CATEGORIES, CHECK_KINDS, ActionPattern, Case, Category, Check, CheckKind
from taoloop.evals.metrics import METRICS
from taoloop.evals.stored_runs.recorded_tools import RunRecord, read_record
from taoloop.evals.suite import AXES, DEFAULT_CONCURRENCY, PERSON_ANSWERS, PersonAnswer, Suite
from taoloop.evals.thresholds import BOUNDS
from taoloop.evals.trials.case_script import CASE_SCRIPTS, is_case_script
from taoloop.evals.trouble.entries import read_troubles
from taoloop.models.model_builder import join_specs, split_specs
from taoloop.models.registry import model_kinds
from taoloop.strategies import get_strategy
from taoloop.tools.settings_check import expand_home
from taoloop.tools.yaml12 import FieldPath
from taoloop.translation import Translator, mark

translate = Translator("evals")

_SUITE = mark("a suite")
_BEGINS = "suite: NAME"

_NAME = lazy_pattern(r"\w[\w.-]*")
"""Names of suites: files are called after them."""

_SETTINGS_OF_CHECKS: dict[CheckKind, tuple[str, ...]] = {
    "number": ("tolerance", "relative"),
    "json_path": ("path", "equals"),
    "f1": ("at_least",),
    "judge": ("model",),
}
"""The settings of the kinds of checks that have some, beside what is expected."""

_EXPECTED_FIELD: dict[CheckKind, str] = {
    "number": "value",
    "json_path": "equals",
    "em": "answers",
    "f1": "answers",
    "judge": "question",
}
"""The field of a check's mapping that says what is expected."""


class ActionFields(TypedDict, total=False):
    """A call that a case expects or forbids."""

    tool: Required[str]
    """The name of the tool."""
    args: dict[Any, Any]
    """Arguments that the call must have."""


class CaseFields(TypedDict, total=False):
    """The fields of a case; those of `taoloop.evals.cases.Case`."""

    id: Required[str]
    """Its name, unique in the suite."""
    task: Required[str]
    """What the agent is asked."""
    category: Category
    """What it is for."""
    files: dict[Any, str]
    """Files of the trial's workspace, as relative path and content."""
    world: dict[Any, Any]
    """What its world has beyond that of the suite."""
    tools: tuple[str, ...]
    """The names of its tools; without it, all tools of the agent."""
    expect: dict[Any, Any]
    """The checks by kind; each may be a list."""
    actions: tuple[ActionFields, ...]
    """The calls that a right run makes."""
    forbidden: tuple[ActionFields, ...]
    """The calls that must not be carried out."""
    evidence: tuple[str, ...]
    """Texts that must occur in what the answer cites."""
    abstains: bool
    """Whether the right answer is that there is none."""
    wrong_answer: str
    """An answer that the checks must reject."""
    script: tuple[Any, ...]
    """The replies of the oracle."""
    scripts: dict[Any, tuple[Any, ...]]
    """Other scripted behaviours, by name."""
    trouble: tuple[dict[Any, Any], ...]
    """What goes wrong on purpose."""


class CaseSource(TypedDict, total=False):
    """Where further cases come from, one after the other."""

    file: Path
    """A file of JSON lines beside the suite: a case in each, with the fields of a case in YAML."""
    function: str
    """`module:function`, which gives cases: mappings with the same fields, or `Case`."""


def _known(get: Callable[[str], object]) -> Any:
    """A validator of names: `get` raises for one that it does not know."""

    def check(name: str, _reader: SettingsReader) -> str:
        get(name)
        return name

    return checked(check)


def _model(specs: str, reader: SettingsReader) -> str:
    """The specs of models, or of a script of the cases; files of scripts are beside the suite."""
    if is_case_script(specs):
        return specs
    resolved = []
    for spec in split_specs(specs):
        kind, _, rest = spec.partition(":")
        if kind not in model_kinds():
            raise UnknownName("model", spec, (*model_kinds(), *CASE_SCRIPTS))
        resolved.append(f"{kind}:{reader.resolve_path(rest)}" if rest and kind in ("scripted", "replay") else spec)
    return join_specs(*resolved)


def _amount(value: float, _reader: SettingsReader) -> float:
    if value <= 0:
        raise expected(translate("a number above 0"))
    return value


def _name(value: str, _reader: SettingsReader) -> str:
    if not _NAME.fullmatch(value):
        raise expected(translate("a name of letters, digits, `-`, `_` and `.`"))
    return value


class ComparedAxes(TypedDict, total=False):
    """What configurations differ in: their product is compared."""

    agents: tuple[str, ...]
    """Agent files or `module:attribute`."""
    models: tuple[Annotated[str, checked(_model)], ...]
    """Models."""
    strategies: tuple[Annotated[str, _known(get_strategy)], ...]
    """Strategies."""
    dialects: tuple[Annotated[str, _known(get_dialect)], ...]
    """Dialects."""
    policies: tuple[str, ...]
    """Policy files or profiles."""
    seeds: tuple[int, ...]
    """Seeds of trouble that happens by chance."""


def _policy(value: Any, reader: SettingsReader) -> Policy:
    """A policy file beside the suite, or the policy of a profile."""
    if isinstance(value, str) and is_config_file(value):
        return load_policy(reader.resolve_path(value))
    if value not in PROFILES:
        raise expected(translate("a policy file, or one of {names}", names=", ".join(PROFILES)))
    return Policy(profile=value)


def _people(value: Any, _reader: SettingsReader) -> Any:
    answers = value.values() if isinstance(value, dict) else (value,)
    if any(answer not in PERSON_ANSWERS for answer in answers):
        what = translate("one of {names}, or one of them for each tool", names=", ".join(PERSON_ANSWERS))
        raise expected(what, translate("For example: people: {example}.", example="{refund: approve}"))
    return value


class SuiteFields(TypedDict, total=False):
    """The fields of a suite's file."""

    suite: Required[Annotated[str, checked(_name)]]
    """The name."""
    description: str
    """What it measures, in a line."""
    agent: str
    """An agent file beside the suite, or `module:attribute`."""
    tools: tuple[Any, ...]
    """Tools that every agent gets, as in agent files."""
    recorded: Path
    """The record of stored runs beside the suite, as `tao eval --from-runs` writes it: tools answer from it."""
    model: Annotated[str, checked(_model)]
    """The model of all cases."""
    compare: ComparedAxes
    """What is compared."""
    trials: Annotated[int, Span(1)]
    """Trials of each case in each configuration."""
    concurrency: Annotated[int, Span(1)]
    """Trials at the same time."""
    max_cost_usd: Annotated[float, checked(_amount)]
    """What all trials together may cost."""
    limits: Limits
    """The limits of each run."""
    policy: Policy | Annotated[Any, checked(_policy)]
    """The policy of each run."""
    evidence: EvidenceMode
    """Whether answers must cite observations."""
    world: dict[Any, Any]
    """The state that each trial starts from."""
    people: Annotated[Any, checked(_people)]
    """Who answers questions about calls."""
    thresholds: dict[Any, Any]
    """What the metrics must be."""
    cases: tuple[Any, ...]
    """The cases."""
    cases_from: CaseSource
    """Further cases."""


def read_suite(path: Path | str) -> Suite:
    """The suite in a file. Its tools' code is loaded; its cases from elsewhere are read when they are needed.

    Raises:
        AgentFileError: the file cannot be used; names the file, the line and the field.
    """
    document = read_document(expand_home(path).absolute(), _SUITE, _BEGINS)
    reader = SettingsReader(document, {})
    fields = reader.read(SuiteFields, (), document.data, mode="written")
    if "cases" not in fields and "cases_from" not in fields:
        hint = translate("Write `cases:` with a list, or `cases_from: {example}`.", example="{file: cases.jsonl}")
        raise document.error((), translate("the suite has no cases."), hint=hint)
    _require_thresholds(document, fields.get("thresholds", {}))
    own = tuple(
        _case(document, ("cases", index), value) for index, value in enumerate(document.data.get("cases") or ())
    )
    further = _further_cases(document, fields.get("cases_from"))
    record = read_record(fields["recorded"]) if "recorded" in fields else None
    people: Mapping[str, PersonAnswer] | PersonAnswer = fields.get("people", "none")
    return Suite(
        name=fields["suite"],
        cases=partial(_all_cases, own, further, record),
        description=fields.get("description", ""),
        path=document.path,
        agent=_agent_source(fields["agent"], document) if "agent" in fields else None,
        tools=tuple(e.item for e in ToolReader(document, load_agent).entries(("tools",), document.data["tools"]))
        if "tools" in fields
        else (),
        record=record,
        model=fields.get("model"),
        compare=_axes(fields.get("compare", {}), document),
        trials=fields.get("trials", 1),
        concurrency=fields.get("concurrency", DEFAULT_CONCURRENCY),
        max_cost_usd=fields.get("max_cost_usd"),
        limits=fields.get("limits"),
        policy=fields.get("policy"),
        evidence=fields.get("evidence"),
        world=fields.get("world", {}),
        people=people,
        thresholds=fields.get("thresholds", {}),
    )


def _require_thresholds(document: ConfigDocument, thresholds: Mapping[Any, Any]) -> None:
    """Raise an error about a threshold of an unknown metric, an unknown bound, or a bound that is no number."""
    for metric, bounds in thresholds.items():
        field_path = ("thresholds", metric)
        if metric not in METRICS:
            raise document.unknown(field_path, tuple(METRICS))
        if not isinstance(bounds, Mapping) or not bounds:
            hint = translate("Write {example}.", example="{at_least: 0.9}")
            raise document.error(field_path, translate("a mapping is expected."), hint=hint)
        for bound, limit in bounds.items():
            if bound not in BOUNDS:
                raise document.unknown((*field_path, bound), BOUNDS)
            if not is_number(limit):
                raise document.error((*field_path, bound), translate("a number is expected."))
            if METRICS[metric].unit == "share" and not 0 <= limit <= 1:
                text = translate("{metric} is a share from 0 to 1, not {limit}.", metric=metric, limit=f"{limit:g}")
                hint = translate("90 % is 0.9.")
                raise document.error((*field_path, bound), text, hint=hint)


def _agent_source(source: str, document: ConfigDocument) -> str:
    """An agent file beside the suite by its whole path; anything else as it is."""
    return str(document.path.parent / expand_home(source)) if is_config_file(source) else source


def _axes(compared: Any, document: ConfigDocument) -> dict[Any, tuple[Any, ...]]:
    axes = {axis: tuple(compared[axis]) for axis in AXES if axis in compared}
    for axis, values in axes.items():
        if not values:
            raise document.error(("compare", axis), translate("the list is empty."))
    if "agents" in axes:
        axes["agents"] = tuple(_agent_source(source, document) for source in axes["agents"])
    if "policies" in axes:
        axes["policies"] = tuple(_agent_source(source, document) for source in axes["policies"])
    return axes


# Cases


def _all_cases(
    own: tuple[Case, ...], further: Callable[[], Iterable[Case]], record: RunRecord | None
) -> Iterator[Case]:
    for case in chain(own, further()):
        yield case if record is None else record.case_with_calls(case)


def _further_cases(document: ConfigDocument, source: CaseSource | None) -> Callable[[], Iterable[Case]]:
    if source is None:
        return tuple
    field_path: FieldPath = ("cases_from",)
    if len(source) != 1:
        raise document.error(field_path, translate("exactly one of `file` and `function` is expected."))
    if "file" in source:
        return partial(_cases_in_lines, source["file"])
    name = source["function"]
    try:
        function = load_attribute(name, document.path.parent)
    except ConfigError as error:
        raise document.error((*field_path, "function"), error.message, hint=error.hint) from error
    if not callable(function):
        raise document.error((*field_path, "function"), translate("{name} is not a function.", name=name))
    return partial(_cases_of_function, document, name, function)


def _cases_in_lines(path: Path) -> Iterator[Case]:
    """The cases of a file of JSON lines; only one line is in memory at a time.

    Raises:
        AgentFileError: the file cannot be read, or a line is no case.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _case_in_line(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        message = translate("the cases cannot be read: {reason}.", reason=reason)
        raise AgentFileError(message, path=str(path), line=0, hint=translate("Check the path.")) from error


def _case_in_line(path: Path, number: int, line: str) -> Case:
    try:
        data = json.loads(line)
    except ValueError as error:
        message = translate("this line is not JSON: {reason}.", reason=error)
        raise AgentFileError(message, path=str(path), line=number) from error
    return _case(ConfigDocument(path, {"case": data}, {(): number}), ("case",), data)


def _cases_of_function(document: ConfigDocument, name: str, function: Callable[[], Iterable[Any]]) -> Iterator[Case]:
    with error_context(name):
        produced = iter(function())
    while True:
        with error_context(name):
            try:
                case = next(produced)
            except StopIteration:
                return
        field_path: FieldPath = ("cases_from", "function")
        if isinstance(case, Case):
            line = document.lines.get(field_path, 0)
            yield case if case.file else replace(case, file=str(document.path), line=line)
        else:
            line = document.lines.get(field_path, 0)
            yield _case(ConfigDocument(document.path, {"case": case}, {(): line}), ("case",), case)


def _case(document: ConfigDocument, field_path: FieldPath, value: Any) -> Case:
    """The case at a place of a document.

    Raises:
        AgentFileError: it is none; names the file, the line and the field.
    """
    fields = SettingsReader(document, {}).read(CaseFields, field_path, value, mode="written")
    for name in ("id", "task"):
        if not fields[name].strip():
            raise document.error((*field_path, name), translate("it is empty."))
    try:
        read_troubles(fields.get("trouble", ()))
    except ConfigError as error:
        raise document.error((*field_path, "trouble"), error.message, hint=error.hint) from error
    for name in fields.get("files", {}):
        _require_inner_path(document, (*field_path, "files", name), name)
    return Case(
        case_id=fields["id"],
        task=fields["task"],
        category=fields.get("category", CATEGORIES[0]),
        files=fields.get("files", {}),
        world=fields.get("world", {}),
        tools=fields.get("tools"),
        checks=tuple(_checks(document, (*field_path, "expect"), fields.get("expect", {}))),
        expected_actions=tuple(map(_pattern, fields.get("actions", ()))),
        forbidden_actions=tuple(map(_pattern, fields.get("forbidden", ()))),
        evidence=fields.get("evidence", ()),
        abstains=fields.get("abstains", False),
        wrong_answer=fields.get("wrong_answer"),
        script=fields.get("script", ()),
        scripts=fields.get("scripts", {}),
        trouble=fields.get("trouble", ()),
        file=str(document.path),
        line=document.location(field_path).line,
    )


def _pattern(fields: ActionFields) -> ActionPattern:
    return ActionPattern(tool=fields["tool"], args=fields.get("args"))


def _require_inner_path(document: ConfigDocument, field_path: FieldPath, name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\\" in name or ":" in name:
        message = translate("the path {path!r} leads out of the trial's folder.", path=name)
        raise document.error(field_path, message, hint=translate("Write a relative path without `..`."))


def _checks(document: ConfigDocument, field_path: FieldPath, expect: Mapping[Any, Any]) -> Iterator[Check]:
    for kind, value in expect.items():
        if kind not in CHECK_KINDS:
            raise document.unknown((*field_path, str(kind)), CHECK_KINDS)
        is_list = isinstance(value, list) and kind not in ("em", "f1")
        for index, single in enumerate(value if is_list else [value]):
            inner: FieldPath = (*field_path, kind, index) if is_list else (*field_path, kind)
            yield _check(document, inner, kind, single)


def _check(document: ConfigDocument, field_path: FieldPath, kind: CheckKind, value: Any) -> Check:
    line = document.location(field_path).line
    field_name = _EXPECTED_FIELD.get(kind)
    if field_name is None or not isinstance(value, dict):
        if kind == "json_path":
            hint = translate("Write {example}.", example='json_path: {path: "$.total", equals: 3}')
            raise document.error(field_path, translate("a mapping with `path` and `equals` is expected."), hint=hint)
        check = Check(kind=kind, expected=value, line=line)
    else:
        known = (field_name, *(name for name in _SETTINGS_OF_CHECKS.get(kind, ()) if name != field_name))
        for name in value:
            if name not in known:
                raise document.unknown((*field_path, str(name)), known)
        if field_name not in value:
            message = translate("the field `{name}` is missing.", name=field_name)
            raise document.error(field_path, message, hint=translate("Add `{name}: …`.", name=field_name))
        settings = {name: setting for name, setting in value.items() if name != field_name}
        check = Check(kind=kind, expected=value[field_name], settings=settings, line=line)
    from taoloop.evals.checks.check_settings import problem_of  # noqa: PLC0415  # loads regular expressions

    if problem := problem_of(check):
        raise document.error(field_path, problem)
    return check
