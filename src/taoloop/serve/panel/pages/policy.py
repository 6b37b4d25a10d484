"""A policy tried on a stored run: which verdicts change and why, and the rules that people's answers suggest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web

from taoloop.config.agent_file import parse_policy
from taoloop.config.policy_text import policy_text, suggestion_comment, unmet_texts, withheld_text
from taoloop.core.events import ActionRequested, Verdict
from taoloop.core.policy import PROFILES, Policy, with_pin
from taoloop.core.trace import Trace
from taoloop.errors import TaoError
from taoloop.policy.review.rule_suggestion import suggest_rules
from taoloop.policy.review.verdict_changes import CHANGES, PolicyTrial, ReviewedCall, change_text
from taoloop.policy.texts import translate_reasons
from taoloop.serve.panel.context import PanelContext, Route
from taoloop.serve.panel.stored_run import command_line, load_trace
from taoloop.translation import error_texts, mark

MOST_CALLS: Final = 200
"""How many of the changed verdicts a page shows."""


_VERDICTS: Final = {"allow": mark("allowed"), "ask": mark("asked about"), "deny": mark("denied")}
_ANSWERS: Final = {"approval_given": mark("a person allowed it"), "approval_refused": mark("a person refused it")}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleProposal:
    """A policy that would have allowed what people approved in the run."""

    text: str
    """The policy file; empty: no rule can be suggested."""
    withheld: tuple[str, ...]
    """Why no rule is suggested for some tools."""


async def policy_page(context: PanelContext) -> web.StreamResponse:
    """`GET /runs/{run_id}/policy`: the form; with `profile` also what that profile changes."""
    trace, profile = await load_trace(context), context.query("profile")
    if profile not in PROFILES:
        return await _page(context, trace, policy_text(with_pin(trace.agent.policy, "auto")))
    policy = replace(with_pin(trace.agent.policy, "auto"), profile=profile)
    return await _page(context, trace, policy_text(policy), policy=policy)


async def try_policy(context: PanelContext) -> web.StreamResponse:
    """`POST /runs/{run_id}/policy`: what the policy in the form changes. Nothing is run or stored."""
    trace, form = await load_trace(context), await context.form()
    text = str(form.get("policy", "")).replace("\r\n", "\n")
    try:
        policy = parse_policy(text)
    except TaoError as error:
        return await _page(context, trace, text, problem=error, status=422)
    return await _page(context, trace, text, policy=policy)


ROUTES: Final = (
    Route("GET", "/runs/{run_id}/policy", policy_page),
    Route("POST", "/runs/{run_id}/policy", try_policy),
)


async def _page(
    context: PanelContext,
    trace: Trace,
    text: str,
    *,
    policy: Policy | None = None,
    problem: TaoError | None = None,
    status: int = 200,
) -> web.StreamResponse:
    trial = None if policy is None else await asyncio.to_thread(_try, trace, policy)
    warning = None if trial is None else trial.problem
    base = with_pin(trace.agent.policy, "auto") if policy is None else policy
    return context.page(
        "policy.html",
        status=status,
        trace=trace,
        text=text,
        profiles=PROFILES,
        problem=None if problem is None else error_texts(problem, context.language),
        warning=None if warning is None else error_texts(warning, context.language),
        trial=trial,
        changes=[] if trial is None else [(change, change_text(change, context.language)) for change in CHANGES],
        calls=[] if trial is None else trial.changed[:MOST_CALLS],
        change=lambda call: change_text(call.change, context.language),
        reasons=lambda call, verdict: _reasons(context, call, verdict),
        unmet=lambda rule: unmet_texts(rule, context.language),
        recorded=lambda call: _recorded(context, call),
        verdict=lambda call: context.say(_VERDICTS[call.verdict.kind]),
        proposal=await asyncio.to_thread(_propose, trace, base, context.language),
        command=command_line(context, "tao", "policy", "test", "policy.yaml", "--runs", trace.run_id),
    )


def _try(trace: Trace, policy: Policy) -> PolicyTrial:
    trial = PolicyTrial(policy, explain=MOST_CALLS)
    trial.add(trace)
    return trial


def _propose(trace: Trace, policy: Policy, language: str) -> RuleProposal:
    extended, suggestions, withheld = suggest_rules([trace], policy)
    comments = {
        extended.rules.index(suggestion.rule): [suggestion_comment(suggestion, language)] for suggestion in suggestions
    }
    return RuleProposal(
        text=policy_text(extended, comments) if suggestions else "",
        withheld=tuple(withheld_text(item, language) for item in withheld),
    )


def _reasons(context: PanelContext, call: ReviewedCall, verdict: Verdict | ActionRequested) -> tuple[str, ...]:
    """Why a verdict is what it is."""
    return translate_reasons(
        context.language,
        verdict.reasons,
        verdict.reason_codes,
        tool=call.requested.tool,
        tier=call.requested.tier,
        rule=verdict.rule,
        sources=verdict.sources,
    )


def _recorded(context: PanelContext, call: ReviewedCall) -> str:
    """What became of the call in the run: its verdict, and what a person answered."""
    verdict = context.say(_VERDICTS[call.requested.verdict])
    if call.approval is None:
        return verdict
    return context.say("{verdict}, {answer}", verdict=verdict, answer=context.say(_ANSWERS[call.approval.kind]))
