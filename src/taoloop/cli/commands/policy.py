"""`tao policy`: try a changed policy on stored runs, explain a verdict, and suggest rules from what people approved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import ALL_RUNS, database, find_run, load_environment, load_run, query_database
from taoloop.cli.translation import interface_language, translate, view_language
from taoloop.cli.ui.approval_prompt import show_call
from taoloop.cli.ui.event_view import RowWriter, console_for, write_approval
from taoloop.cli.ui.stdio import OutputError, capture_stdout, one_line, print_stderr, write_json_lines
from taoloop.config.agent_file import load_policy
from taoloop.config.policy_text import policy_text, rule_text, suggestion_comment, unmet_texts, withheld_text
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.events import ActionRequested, Source, Verdict
from taoloop.core.policy import Policy, Rule, with_pin
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError
from taoloop.journals.addresses import DatabaseAddress
from taoloop.journals.base import Journal
from taoloop.policy.review.rule_suggestion import suggest_rules
from taoloop.policy.review.unmet_conditions import UnmetRule, unmet_rules
from taoloop.policy.review.verdict_changes import CHANGES, PolicyTrial, ReviewedCall, change_text, judged_calls
from taoloop.policy.texts import RULE_PREFIX, translate_reasons
from taoloop.policy.untrusted_index import argument_sources
from taoloop.runtime.approvals.request import ApprovalRequest
from taoloop.translation import mark, translate_error

_SHOWN = 10

_JUDGED = mark(
    "{n} call was judged; {same} with the same verdict.|{n} calls were judged; {same} with the same verdict."
)

ROWS = mark(
    {
        "read": "a read that is free",
        "draft": "a draft",
        "read_out": "a read that sends data out",
        "read_out_known": "a read from a known destination",
        "read_out_offered": "a read from an address that an observation offers",
        "wanted": "a write that the task asks for",
        "write": "a write",
        "write_out": "a write that sends data out",
        "destructive": "a destructive call",
        "undeclared": "a call of a tool without a tier",
        "no_target": "a call without a target",
        "foreign_destructive": "a destructive call that nobody asked for",
        "foreign_undeclared": "a call that nobody asked for, of a tool without a tier",
        "committed": "a call that was fixed in advance",
        "repeated": "a call that was made before",
        "operator": "a tier that the operator approved in advance",
        "question": "a question of the model to a person",
        "approval_required": "a tool that always requires approval",
    }
)
"""What decides where no rule does, by the code that the trace stores."""

runs_option = click.option(
    "--runs", metavar="RUN,…", multiple=True, help="The runs to look at; default: every run in the database."
)


@click.group("policy", no_args_is_help=True)
def policy_command() -> None:
    """Review a policy like code: try it on stored runs, and see why a call was allowed, asked about or denied.

    Nothing is run, and nothing in the database is changed.

      tao policy explain RUN_ID CALL_ID
      tao policy suggest RUN_ID -o policy.yaml
      tao policy test policy.yaml --runs RUN_ID,RUN_ID
    """


@policy_command.command("test", short_help=mark("Try a policy on stored runs."))
@click.argument("file", type=click.Path(dir_okay=False))
@runs_option
@options.db_option
@options.json_option("One JSON object per changed verdict and line.")
def test_command(file: str, runs: tuple[str, ...], db: str | None, as_json: bool) -> int:
    """Judge every call of stored runs again, under the policy in FILE, and list the verdicts that change.

    Nothing is run. Each call is judged at its place in its run, with what the model had seen and people had answered
    by then. Exit code 1: a call would newly run that the recorded policy or a person refused, or that still waits. A
    rule that no tool of these runs can meet is a warning.

      tao policy test policy.yaml
      tao policy test policy.yaml --runs 20261104-09,20261105-11 --json
    """
    policy, path = load_policy(Path(file)), database(db, load_environment())
    run_ids = options.split_repeated(runs)
    trial = PolicyTrial(policy)

    async def review(journal: Journal) -> None:
        async for trace in _traces(journal, path, run_ids):
            trial.add(trace)

    query_database(path, review)
    if (problem := trial.problem) is not None:
        print_stderr(translate("Warning: {warning}", warning=translate_error(str(problem))))
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, map(_record, trial.changed))
        else:
            _write_changes(RowWriter(console_for(stream), view_language("en", stream)), trial)
    return exits.FOUND if trial.counts["newly_runs"] else exits.OK


async def _traces(
    journal: Journal, path: DatabaseAddress, run_prefixes: tuple[str, ...] | None
) -> AsyncIterator[Trace]:
    """The runs, one at a time; by default all of them, the oldest first."""
    if run_prefixes is None:
        run_ids = [row.run_id for row in reversed(await journal.runs(limit=ALL_RUNS))]
    else:
        run_ids = [await find_run(journal, path, prefix) for prefix in run_prefixes]
    for run_id in dict.fromkeys(run_ids):
        yield Trace(run_id, await journal.load(run_id))


def _record(call: ReviewedCall) -> dict[str, Any]:
    requested = call.requested
    return {
        "run_id": call.run_id,
        "call_id": requested.call_id,
        "tool": requested.tool,
        "args": requested.args,
        "change": call.change,
        "before": requested.verdict,
        "answer": None if call.approval is None else call.approval.kind,
        "after": call.verdict.kind,
        "rule": call.verdict.rule,
        "reasons": list(call.verdict.reasons),
    }


def _write_changes(pen: RowWriter, trial: PolicyTrial) -> None:
    for change in CHANGES:
        calls = [call for call in trial.changed if call.change == change]
        if calls:
            text = pen.text("{what} ({n})", what=change_text(change, pen.language), n=len(calls))
            pen.line(text, "bold red" if change == "newly_runs" else "bold")
        for call in calls:
            arguments = one_line(str(call.requested.args))
            pen.line(f"  {call.run_id} {call.requested.call_id} {call.requested.tool} {arguments}")
            pen.line("    " + pen.text("; ").join(_reasons(pen, call.requested, call.verdict)), "dim")
    pen.line(pen.text(_JUDGED, n=trial.counts.total(), same=trial.counts["same"]))


def _reasons(pen: RowWriter, requested: ActionRequested, verdict: Verdict | ActionRequested) -> tuple[str, ...]:
    return translate_reasons(
        pen.language,
        verdict.reasons,
        verdict.reason_codes,
        tool=requested.tool,
        tier=requested.tier,
        rule=verdict.rule,
        sources=verdict.sources,
    )


@policy_command.command("explain", short_help=mark("Show which rule and which values decided about a call."))
@click.argument("run_id", shell_complete=complete_run_ids)
@click.argument("call_id")
@options.db_option
@options.json_option("The explanation as one JSON object.")
def explain_command(run_id: str, call_id: str, db: str | None, as_json: bool) -> int:
    """Show which rule decided about the call CALL_ID of the run RUN_ID, and where each of its values came from.

    For each rule about the tool that came first and did not apply: which condition failed, with which value. Also for
    calls that were allowed. `tao show RUN_ID --steps` lists the calls.

      tao policy explain last call_2
    """
    trace = load_run(database(db, load_environment()), run_id)
    before, requested, card = _find_call(trace, call_id.strip())
    recorded = {source.arg: source for source in requested.sources}
    sources = tuple(
        recorded.get(source.arg, source)  # a rule that allowed the call has recorded the origins that it accepted
        for source in argument_sources(before, requested.args, card, filled=requested.written is not None)
    )
    policy, unmet = before.agent.policy, []
    if not requested.rule.startswith(RULE_PREFIX) or _deciding_rule(policy, requested) is not None:
        unmet = unmet_rules(before, policy, card, requested.args, filled=requested.written is not None)
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [_explanation(trace, policy, requested, sources, unmet)])
        else:
            pen = RowWriter(console_for(stream), view_language(trace.agent.language, stream))
            _write_explanation(pen, trace, policy, requested, card, sources)
            _write_unmet(pen, unmet)
    return exits.OK


def _write_unmet(pen: RowWriter, unmet: list[UnmetRule]) -> None:
    """The rules that were asked first and did not apply, each with what failed."""
    for rule in unmet:
        for text in unmet_texts(rule, pen.language):
            pen.row("Not applied", one_line(text))


def _find_call(trace: Trace, call_id: str) -> tuple[Trace, ActionRequested, ToolCard]:
    for before, requested, card in judged_calls(trace):
        if requested.call_id == call_id:
            return before, requested, card
    if call_id in trace.calls:
        requested = trace.calls[call_id].requested
        message = translate(
            "The call {call_id} was refused before the policy was asked: {why}",
            call_id=call_id,
            why="; ".join(requested.reasons),
        )
        raise ConfigError(message)
    known = ", ".join(list(trace.calls)[:_SHOWN]) + (" …" if len(trace.calls) > _SHOWN else "")
    message = translate("The run {run_id} has no call {call_id!r}.", run_id=trace.run_id, call_id=call_id)
    raise ConfigError(message, hint=translate("Its calls are: {calls}.", calls=known or translate("none")))


def _explanation(
    trace: Trace, policy: Policy, requested: ActionRequested, sources: tuple[Source, ...], unmet: list[UnmetRule]
) -> dict[str, Any]:
    rule = _deciding_rule(policy, requested)
    return {
        "run_id": trace.run_id,
        "call_id": requested.call_id,
        "tool": requested.tool,
        "args": requested.args,
        "tier": requested.tier,
        "verdict": requested.verdict,
        "profile": policy.profile,
        "rule": requested.rule,
        "rule_index": None if rule is None else rule[0],
        "reasons": list(requested.reasons),
        "not_applied": [
            {"rule_index": rule.index, "rule": rule.rule.title, "conditions": list(map(asdict, rule.conditions))}
            for rule in unmet
        ],
        "sources": [asdict(source) for source in sources],
        "judged_again": _latest_judgement(trace, requested),
        "answer": None if (answer := trace.calls[requested.call_id].approval) is None else asdict(answer),
    }


def _latest_judgement(trace: Trace, requested: ActionRequested) -> dict[str, Any] | None:
    """What was decided when the call was judged again, under another card or policy; None if that says the same."""
    latest = trace.calls[requested.call_id].requested
    if (latest.verdict, latest.reasons) == (requested.verdict, requested.reasons):
        return None
    return {"verdict": latest.verdict, "rule": latest.rule, "reasons": list(latest.reasons)}


def _deciding_rule(policy: Policy, requested: ActionRequested) -> tuple[int, Rule] | None:
    """The rule of the policy that decided, and its position; None if none did, or a rule in Python."""
    titles = [f"{RULE_PREFIX}{rule.title}" for rule in policy.rules]
    index = titles.index(requested.rule) if requested.rule in titles else None
    return None if index is None else (index, policy.rules[index])


def _write_explanation(
    pen: RowWriter,
    trace: Trace,
    policy: Policy,
    requested: ActionRequested,
    card: ToolCard,
    sources: tuple[Source, ...],
) -> None:
    show_call(
        pen,
        ApprovalRequest(
            run_id=trace.run_id,
            call_id=requested.call_id,
            tool=requested.tool,
            args=requested.args,
            reasons=requested.reasons,
            card=card,
            sources=sources,
        ),
    )
    pen.row("Verdict", requested.verdict, style="bold")
    if (deciding := _deciding_rule(policy, requested)) is not None:
        index, rule = deciding
        pen.row("Rule", f"rules[{index}] {rule_text(rule)}")
    elif requested.rule.startswith(RULE_PREFIX):
        pen.row("Rule", pen.text("{title}, a rule in Python", title=requested.rule.removeprefix(RULE_PREFIX)))
    else:
        row = pen.text(ROWS.get(requested.rule, requested.rule))
        pen.row("Rule", pen.text("none of yours; the profile {profile} on {row}", profile=policy.profile, row=row))
    if requested.reasons:
        pen.row("Why", pen.text("; ").join(_reasons(pen, requested, requested)))
    if _latest_judgement(trace, requested) is not None:
        latest = trace.calls[requested.call_id].requested
        reasons = pen.text("; ").join(_reasons(pen, requested, latest))
        pen.row("Judged again", f"{latest.verdict}{pen.text(': ')}{reasons}" if reasons else latest.verdict)
    if (answer := trace.calls[requested.call_id].approval) is not None:
        write_approval(pen, trace, answer)


@policy_command.command("suggest", short_help=mark("Suggest rules from what people approved."))
@click.argument("run_ids", metavar="RUN_ID...", nargs=-1, required=True, shell_complete=complete_run_ids)
@options.policy_option
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="A new file for the policy.")
@options.db_option
def suggest_command(run_ids: tuple[str, ...], policy: str | None, output: str | None, db: str | None) -> int:
    """Write a policy file that would have allowed exactly what people approved in these runs, for you to review.

    For each argument the narrowest condition is taken that all approved calls meet: where its value came from, else
    the approved values. A rule that would also allow a call that somebody refused is not written. The rules are added
    to the policy of --policy, else to that of the first run.

      tao policy suggest last
      tao policy suggest RUN_ID RUN_ID -o policy.yaml
      tao policy test policy.yaml
    """
    path = database(db, load_environment())
    base = None if policy is None else load_policy(Path(policy))
    traces = query_database(path, lambda journal: _load_all(journal, path, run_ids))
    base = with_pin(traces[0].agent.policy, "auto") if base is None else base
    extended, suggestions, withheld = suggest_rules(traces, base)
    language = interface_language()
    comments = {
        extended.rules.index(suggestion.rule): [suggestion_comment(suggestion, language)] for suggestion in suggestions
    }
    text = policy_text(extended, comments)
    if output is not None:
        _write_new(Path(output), text)
    else:
        with capture_stdout() as stream:
            stream.write(text)
    for item in withheld:
        print_stderr(withheld_text(item, language))
    if not suggestions:
        print_stderr(translate("No rule is suggested: people approved no call of these runs that a rule can cover."))
    return exits.OK


async def _load_all(journal: Journal, path: DatabaseAddress, run_prefixes: tuple[str, ...]) -> list[Trace]:
    return [trace async for trace in _traces(journal, path, run_prefixes)]


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(translate("{path}: it cannot be written ({reason}).", path=path, reason=reason)) from error
