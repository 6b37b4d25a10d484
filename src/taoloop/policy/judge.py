"""The verdict on one call: the operator's rules, then the table of the profile. Pure.

The order is always the same: rules of the operator (the first that matches the call decides); the table of the profile,
which distinguishes what the model decided before and after it had seen untrusted text; and where the table does not
allow a call, what was fixed or approved in advance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol, get_args

from taoloop.core.cards.questions import is_question
from taoloop.core.cards.tool_card import ToolCard
from taoloop.core.decision import call_digest
from taoloop.core.events import Source, Verdict
from taoloop.core.policy import Policy, VerdictKind
from taoloop.core.trace import Trace
from taoloop.core.views.loaded_contents import loaded_contents
from taoloop.core.views.plans import PLAN_RULE
from taoloop.policy.call_history import past_calls, repetitions
from taoloop.policy.destinations import FOLLOWED, follows_links, goes_to_known_hosts, names_known_addresses
from taoloop.policy.judged_call import JudgedCall
from taoloop.policy.plan_grants import plan_grant, step_of
from taoloop.policy.profiles import FOREIGN_ROWS, CallFeatures, Row, profile_verdict, risk_class
from taoloop.policy.provenance import Provenance, sources_of, trusted_texts
from taoloop.policy.request_terms import times_requested
from taoloop.policy.rules import deciding_rule
from taoloop.policy.targets import is_target_role
from taoloop.policy.texts import RULE_PREFIX, TEXTS, reason_text
from taoloop.policy.untrusted_index import argument_sources

_READ_AND_DRAFT = frozenset({"read", "draft"})
_FREE_TIERS = {
    "supervised": _READ_AND_DRAFT,
    "strict": _READ_AND_DRAFT,
    "headless": _READ_AND_DRAFT,
    "autonomous": _READ_AND_DRAFT,
    "read-only": frozenset({"read"}),
}
"""The tiers that are judged without a look at the trace, by profile, unless they send data out."""

_HARMLESS_VERDICTS: dict[tuple[str | None, str], Verdict] = {
    (tier, language): Verdict(kind="allow", reasons=(reason_text(language, tier),), rule=tier, reason_codes=(tier,))
    for tier in ("read", "draft")
    for language in ("en", "zh")
}
_ALLOWED_ROWS: frozenset[Row] = frozenset({"read", "draft", "wanted", "read_out_known", FOLLOWED})
"""What can be allowed for its own sake; anything else is allowed because the profile asks nobody."""
_MAX_ERROR_CHARS = 300  # of what a rule in Python raised or returned
_REPORTED_BADGES = ("FOREIGN", "UNKNOWN", "LINKS")


class Action(Protocol):
    """What is judged: a tool and its arguments, such as a `Call` or an `ActionRequested`."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
        ...

    @property
    def args(self) -> Any:
        """Its arguments, as JSON values that fit the tool's schema."""
        ...


CodeRule = Callable[[Trace, Action, ToolCard], Verdict | None]
"""A rule in Python: its verdict on a call, or None for no opinion. It must be a pure function."""


def judge(
    trace: Trace,
    action: Action,
    card: ToolCard,
    policy: Policy | None = None,
    *,
    rules: tuple[CodeRule, ...] = (),
    filled: bool = False,
    replaces: str = "",
) -> Verdict:
    """The verdict on `action`, a call of the tool of `card`, as the next step of the run of `trace`.

    `policy` is the run's own unless another one is passed; `rules` are rules in Python, asked before those of the
    policy. `filled`: values of the call came in by handles, from outputs that the model itself has not seen; the call
    is then judged as tainted even if the model has seen nothing untrusted. `replaces`: what exists and the call would
    overwrite, which is another act than creating it; empty: nothing, or that is not known.

    The arguments must have been validated before. Nothing is changed, and the same trace gives the same verdict: a
    policy can be tried without a runner.

    A call of a tool that requires a person's approval (`approval`) is never simply allowed: what would allow it asks
    instead, or denies if nobody can be asked (`headless`). Only a rule of the policy that allows exactly this tool, by
    its full name, lifts that.

    The same goes for a call that has been made before in this run, with the same arguments and an effect: only a rule
    that allows `repeated` calls, a card that is `repeatable` and the task ("twice") lift that.

    And for a call that does more than read, of a tool that a loaded skill does not name among those that it needs
    (`ContentCard.tools`): a rule that allows exactly this tool, or a person's grant, lifts that. What a skill names is
    judged as without it.

    A call that a person approved as part of a plan is not asked about again (`plan_grants`), unless it would overwrite
    something, or takes values by handles: that is more than the plan said. It never lifts a denial, nor does it answer
    a question to the person.
    """
    policy = policy if policy is not None else trace.agent.policy
    verdict = _judge(trace, action, card, policy, rules, filled=filled, replaces=replaces)
    if replaces:
        return replace(verdict, replaces=replaces)
    if verdict.kind != "ask" or filled or step_of(trace) is None or is_question(card):
        return verdict
    if plan_grant(trace).covers(action.tool, action.args):
        return _verdict(trace, card, "allow", PLAN_RULE, ("planned",), verdict.sources)
    return verdict


def _judge(
    trace: Trace,
    action: Action,
    card: ToolCard,
    policy: Policy,
    rules: tuple[CodeRule, ...],
    *,
    filled: bool,
    replaces: str,
) -> Verdict:
    verdict = _judge_by_tier(trace, action, card, policy, rules, filled=filled, replaces=replaces)
    if verdict.kind == "deny":
        return verdict
    is_granted = verdict.reason_codes == ("granted",)  # a person allowed further calls such as this one
    if (
        card.tier not in _READ_AND_DRAFT
        and not is_granted
        and _is_unwanted_repetition(trace, policy, card, action, filled=filled)
    ):
        verdict = _require_person(trace, policy, action, card, verdict, "repeated", filled=filled)
    if not is_granted and verdict.kind != "deny" and _is_beyond_skills(trace, policy, card, action, filled=filled):
        verdict = _require_person(trace, policy, action, card, verdict, "skill_tools", filled=filled)
    if card.approval is None or verdict.kind == "deny":
        return verdict
    if is_question(card):
        return _require_person(trace, policy, action, card, verdict, "question", filled=filled)
    if verdict.kind == "allow" and _is_lifted(trace, policy, card, action.args, filled):
        return verdict
    return _require_person(trace, policy, action, card, verdict, "approval_required", filled=filled)


def _is_lifted(trace: Trace, policy: Policy, card: ToolCard, args: Any, filled: bool) -> bool:
    """Whether a rule of the operator allows exactly this tool; a pattern that happens to cover it does not count."""
    deciding = deciding_rule(trace, policy, card, args, filled=filled) if policy.rules else None
    return deciding is not None and deciding.verdict == "allow" and deciding.tool == card.name


def _is_unwanted_repetition(trace: Trace, policy: Policy, card: ToolCard, action: Action, *, filled: bool) -> bool:
    """Whether a call with an effect has been made before, and nothing says that it may be made again."""
    started = trace.started
    if card.repeatable or started is None or started.undoes is not None:
        return False
    count = repetitions(trace).count(card, action.args)
    if not count:
        return False
    provenance = sources_of(trace, policy)
    if provenance.authority == "full" and count < times_requested(trusted_texts(trace), card):
        return False
    sources = argument_sources(trace, action.args, card, filled=filled)
    if provenance.is_granted(action.tool, "repeated", action.args, sources):
        return False
    deciding = deciding_rule(trace, policy, card, action.args, filled=filled) if policy.rules else None
    return deciding is None or deciding.repeated is not True


def _is_beyond_skills(trace: Trace, policy: Policy, card: ToolCard, action: Action, *, filled: bool) -> bool:
    """Whether a loaded skill says which tools it needs, this is none of them, and a call does more than read."""
    if card.tier in _READ_AND_DRAFT and not card.sends_out(action.args):
        return False
    loaded = loaded_contents(trace).contents
    if all(content.tools is None or card.name in content.tools for content, *_ in loaded):
        return False
    if _is_lifted(trace, policy, card, action.args, filled):
        return False
    sources = argument_sources(trace, action.args, card, filled=filled)
    return not sources_of(trace, policy).is_granted(action.tool, "skill_tools", action.args, sources)


def _require_person(
    trace: Trace, policy: Policy, action: Action, card: ToolCard, verdict: Verdict, name: str, *, filled: bool
) -> Verdict:
    """The verdict on a call that requires a person's approval, for the reason `name`, and that nothing denies."""
    if verdict.kind == "ask":
        first = reason_text(trace.agent.language, name, tool=card.name)
        codes = verdict.reason_codes or ("",) * len(verdict.reasons)
        return replace(verdict, reasons=(first, *verdict.reasons), reason_codes=(name, *codes))
    sources = argument_sources(trace, action.args, card, filled=filled)
    if policy.profile == "headless":
        return _verdict(trace, card, "deny", name, (name, "headless"), sources)
    return _verdict(trace, card, "ask", name, (name,), sources)


def _judge_by_tier(
    trace: Trace,
    action: Action,
    card: ToolCard,
    policy: Policy,
    rules: tuple[CodeRule, ...],
    *,
    filled: bool,
    replaces: str,
) -> Verdict:
    """The verdict by rules and table, whether or not the tool itself requires more."""
    args = action.args
    for rule in rules:
        if (verdict := _apply_code_rule(rule, trace, action, card)) is not None:
            return verdict
    if not policy.rules and card.tier in _FREE_TIERS.get(policy.profile, ()) and not card.sends_out(args):
        return _HARMLESS_VERDICTS.get((card.tier, trace.agent.language)) or _HARMLESS_VERDICTS[card.tier, "en"]
    deciding = deciding_rule(trace, policy, card, args, filled=filled) if policy.rules else None
    if deciding is not None:
        by = f"{RULE_PREFIX}{deciding.title}"
        if deciding.verdict == "allow":
            sources = JudgedCall(trace, card, args, filled=filled).sources(deciding)
        else:
            sources = argument_sources(trace, args, card, filled=filled)
        if (
            deciding.verdict == "ask"
            and sources_of(trace).is_granted(action.tool, by, args, sources)
            and not is_high_risk(card, sources)
        ):
            return _verdict(trace, card, "allow", by, ("granted",))
        if deciding.reason:
            return Verdict(kind=deciding.verdict, reasons=(deciding.reason,), rule=by, sources=sources)
        return _verdict(trace, card, deciding.verdict, by, ("rule",), sources)
    return _judge_by_table(trace, policy, action, card, filled=filled, replaces=replaces)


def _apply_code_rule(rule: CodeRule, trace: Trace, action: Action, card: ToolCard) -> Verdict | None:
    """The verdict of a rule in Python; a rule that raises, or returns anything else, denies."""
    title = getattr(rule, "__name__", type(rule).__name__)
    try:
        verdict = rule(trace, action, card)
    except Exception as error:  # noqa: BLE001  # a rule that cannot be evaluated must not allow anything
        why = _describe(f"{type(error).__name__}: ", error, str)
    else:
        if verdict is None or (type(verdict) is Verdict and verdict.kind in get_args(VerdictKind)):
            return verdict
        why = _describe("it said ", verdict, repr)
    text = TEXTS.text(trace.agent.language, "broken_rule", title=title, error=why)
    return Verdict(kind="deny", reasons=(text,), rule=f"{RULE_PREFIX}{title}")


def _describe(start: str, value: object, render: Callable[[object], str]) -> str:
    """The description that an operator's object gives of itself, if it can."""
    try:
        return f"{start}{render(value)}"[:_MAX_ERROR_CHARS]
    except Exception:  # noqa: BLE001  # as above
        return f"{start}{type(value).__name__}"


def _judge_by_table(
    trace: Trace, policy: Policy, action: Action, card: ToolCard, *, filled: bool, replaces: str
) -> Verdict:
    args, provenance = action.args, sources_of(trace, policy)
    features = _features_of(trace, provenance, policy, card, args, tainted=provenance.tainted or filled)
    if replaces and not _may_replace(trace, provenance, card, args):
        features = replace(features, overwrites=True)
    row = risk_class(features)
    kind = profile_verdict(policy.profile, row)
    if kind == "allow":
        name = row if row in _ALLOWED_ROWS else "autonomous"
        return _verdict(trace, card, "allow", row, (name,))
    if policy.profile not in ("read-only", "locked"):
        if not features.overwrites and provenance.fixed_calls.has(call_digest(action.tool, args)):
            return _verdict(trace, card, "allow", "committed", ("committed",))
        if row not in FOREIGN_ROWS and (card.tier or "destructive") in trace.approved_tiers:
            return _verdict(trace, card, "allow", "operator", ("operator_tier",))
    sources = argument_sources(trace, args, card, filled=filled)
    granted = kind == "ask" and provenance.is_granted(action.tool, row, args, sources)
    if granted and not is_high_risk(card, sources):
        return _verdict(trace, card, "allow", row, ("granted",))
    codes = tuple(_reason_codes(policy, features, row, card, sources, filled=filled and not provenance.tainted))
    if provenance.authority != "full" and row != "foreign_destructive":
        codes = (codes[0], "authority", *codes[1:])
    if kind == "deny" and row in FOREIGN_ROWS and policy.profile not in ("read-only", "locked"):
        codes = (*codes, "if_wanted")
    return _verdict(trace, card, kind, row, codes, sources)


def _verdict(
    trace: Trace, card: ToolCard, kind: VerdictKind, rule: str, codes: tuple[str, ...], sources: tuple[Source, ...] = ()
) -> Verdict:
    """A verdict for the reasons of these codes, in words of the run's language."""
    language = trace.agent.language
    texts = (reason_text(language, code, tool=card.name, tier=card.tier, rule=rule, sources=sources) for code in codes)
    return Verdict(kind=kind, reasons=tuple(texts), rule=rule, sources=sources, reason_codes=codes)


def _features_of(
    trace: Trace, provenance: Provenance, policy: Policy, card: ToolCard, args: Any, *, tainted: bool
) -> CallFeatures:
    out = card.sends_out(args)
    if card.tier in ("read", "draft"):
        may_name = card.tier == "read" or provenance.authority == "full"
        known = out and may_name and names_known_addresses(provenance, policy, card, args)
        if tainted or card.tier == "draft":
            known = known and goes_to_known_hosts(provenance, policy, card, args)
        offered = out and not known and follows_links(trace, provenance, policy, card, args)
        return CallFeatures(
            tier=card.tier, out=out, tainted=tainted, known_destinations=known, offered_destinations=offered
        )
    arguments = {name: value for name, value in args.items() if value is not None} if isinstance(args, Mapping) else {}
    misplaced = provenance.fixed_calls.misplaced(card, arguments)
    unendorsed = [
        name for name, value in arguments.items() if name in misplaced or not provenance.is_endorsed(card, name, value)
    ]
    aim_names = [name for name in arguments if is_target_role(card.role(name))]
    untargeted = provenance.names_no_target(card, arguments)
    on_input = provenance.takes_input_for_target(card, arguments)
    misses_target = untargeted or on_input
    return CallFeatures(
        tier=card.tier,
        out=out,
        tainted=tainted,
        intended=provenance.is_intended(card, args),
        intent_fixed=provenance.pin_asked,
        may_be_meant=provenance.may_be_meant(card),
        endorsed=not on_input and all(card.role(name) == "content" for name in unendorsed),
        contents_endorsed=not unendorsed,
        untargeted=untargeted,
        excluded=any(provenance.is_excluded(value, card.role(name)) for name, value in arguments.items()),
        user_authorises=provenance.authority == "full",
        on_input=on_input,
        targets_endorsed=bool(aim_names) and not misses_target and not any(name in unendorsed for name in aim_names),
    )


def _may_replace(trace: Trace, provenance: Provenance, card: ToolCard, args: Any) -> bool:
    """Whether the task asks for what exists to be changed, or the run wrote it itself."""
    targets: dict[str, Any] = {name: value for name, value in args.items() if is_target_role(card.role(name))}
    earlier = (past.args for past in past_calls(trace).of(card.name))
    if any(all(past.get(name) == value for name, value in targets.items()) for past in earlier):
        return True
    return all(provenance.names_for_change(value) for value in targets.values())


def is_high_risk(card: ToolCard | None, sources: tuple[Source, ...]) -> bool:
    """Whether a call is hard to undo and its target is in no trusted text.

    A standing permission never covers such a call, and its question has no default answer.
    """
    destructive = card is None or card.tier in ("destructive", None)
    return destructive and any(
        source.badge in ("FOREIGN", "UNKNOWN") and is_target_role(source.role) for source in sources
    )


def _reason_codes(
    policy: Policy, features: CallFeatures, row: str, card: ToolCard, sources: tuple[Source, ...], *, filled: bool
) -> Iterator[str]:
    """Why the table asks about a call, or denies it."""
    yield "strict" if row in ("wanted", "read_out_known", FOLLOWED) and policy.profile == "strict" else row
    if policy.profile in ("headless", "read-only", "locked"):
        yield policy.profile
    if features.tainted and row not in FOREIGN_ROWS:
        yield "filled" if filled else "tainted"
    if not features.intended and card.tier not in ("read", "draft") and row not in FOREIGN_ROWS:
        yield "not_pinned"
    if features.excluded:
        yield "excluded"
    if features.on_input:
        yield "on_input"
    if features.overwrites:
        yield "overwrites"
    if features.tainted:
        badges = {source.badge for source in sources if source.role != "minor"}
        yield from (badge for badge in _REPORTED_BADGES if badge in badges)
