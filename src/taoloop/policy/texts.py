"""Why a verdict is what it is, in words for people: a code for each reason, and its text in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from taoloop.core.events import Source
from taoloop.core.text import TextCatalog

TEXTS = TextCatalog(
    "policy",
    {
        "read": "it only reads",
        "draft": "it only prepares a draft",
        "read_out": "neither the task nor the operator named the address that it sends data to, or all that it sends",
        "read_out_known": "it reads from a destination that the task or the operator named",
        "read_out_offered": "it follows a link of a page or a search result of this run",
        "wanted": "the task asks for this call and contains its target and values",
        "committed": "exactly this call was fixed before any untrusted text was read",
        "write": "{tool!r} is a {tier} tool and needs a person's approval",
        "write_out": "{tool!r} is a {tier} tool that sends data out and needs a person's approval",
        "destructive": "{tool!r} is a {tier} tool and needs a person's approval",
        "undeclared": "{tool!r} declares no tier, counts as destructive and needs a person's approval",
        "no_target": "{tool!r} is a {tier} tool, and the call names nothing in particular that it acts on, or leaves"
        " an argument for that empty, so it may act on everything",
        "foreign_destructive": "it cannot be undone, the task does not ask for it, and its target does not appear in"
        " the task",
        "foreign_undeclared": "{tool!r} declares no tier, the task does not ask for it, and its target does not appear"
        " in the task",
        "if_wanted": "if it is wanted, name the act and its target in the task, or allow it with a rule of the policy",
        "tainted": "the model has read untrusted text",
        "filled": "it takes values from untrusted output",
        "not_pinned": "the task does not ask for {tool!r}",
        "excluded": "one of its values is named where the task or the operator says what is not wanted",
        "authority": "the user may not authorise it; the operator decides",
        "on_input": "its target is named only as what something is read or taken from, and not as what is changed",
        "overwrites": "it overwrites what exists, which the task does not ask to be changed",
        "strict": "the profile strict asks about every effect, even if the task asks for it",
        "headless": "nobody can be asked (profile headless)",
        "read-only": "the profile read-only allows only reads",
        "locked": "the profile locked allows only what a rule of the operator allows",
        "autonomous": "the profile autonomous asks nobody",
        "question": "the agent asks a person something",
        "approval_required": "every call of {tool!r} needs a person's approval",
        "operator_tier": "the operator approved the tier {tier!r} in advance",
        "granted": "a person approved further calls of {tool!r} in this run",
        "planned": "a person approved exactly this call as part of the plan",
        "plan": "it makes the plan of the run, or carries out a step of it, whose calls are judged one by one",
        "plan_calls": "approving the plan allows exactly the calls that it lists, each of them once, and nothing else",
        "plan_always": "every plan of this agent is shown to a person",
        "plan_denied": "some of its calls are denied by the policy, and stay denied even if the plan is approved",
        "rule": "the rule {title!r} applies",
        "FOREIGN": "found only in untrusted output: {args}",
        "UNKNOWN": "found in no text of this run, or only as a bare number or where it is excluded: {args}",
        "LINKS": "contains links that no trusted text contains: {args}",
        "repeated": "this run has made exactly this call of {tool!r} before, and its effect may happen twice",
        "skill_tools": "a loaded skill names the tools that it needs (`allowed-tools`), and {tool!r} is none of them",
        # what "always" allows
        "grant_exact": "From now on in this run: {tool} with exactly {values}.",
        "grant_bare": "From now on in this run: {tool}, with nothing else than here.",
        "grant_limits": " At most, in one call: {limits}.",
        "grant_unchecked": " Not checked any more: {names}.",
        "grant_rest": " Anything else is still asked about, and so are new links.",
        "grant_links": " Anything else is still asked about; links are not.",
        "separator": ", ",
        "broken_rule": "the rule {title!r} could not be evaluated ({error}), so the call is denied",
        # what another policy changes for a recorded call
        "change_same": "the same",
        "change_newly_runs": "would newly run",
        "change_newly_denied": "would newly be denied",
        "change_newly_asked": "would newly be asked about",
        "change_question_vanishes": "would no longer be asked about",
        # rules that no call could meet
        "no_trusted_tool": "The policy's {field} name {pattern!r}, but the agent has no such tool.",
        "no_trusted_tool_hint": "Its tools are: {tools}.",
        "no_tool_of_rule": "The rule {rule!r} is about {tool!r}, but the agent has no such tool.",
        "no_tool_of_rule_hint": "Its tools are: {tools}.",
        "no_tier_of_rule": "The rule {rule!r} can never match: none of the tools that it names has the tier {tier}.",
        "no_tier_of_rule_hint": "They have: {tiers}.",
        "no_egress_of_rule": "The rule {rule!r} can never match: none of the tools that it names has egress {egress}.",
        "no_egress_of_rule_hint": "They are: {tools}.",
        "no_path_of_rule": "The rule {rule!r} can never match: no tool that it names takes a path.",
        "no_path_of_rule_hint": "{tool} takes: {arguments}.",
        "no_argument_of_rule": "The rule {rule!r} can never match: no tool that it names has the argument"
        " {argument!r}.",
        "no_argument_of_rule_hint": "{tool} takes: {arguments}.",
        "no_argument_of_origin": "The rule {rule!r} can never match: {tool} has no argument {argument!r}.",
        "no_argument_of_origin_hint": "{tool} takes: {arguments}.",
        "no_field": "{owner!r} can never match: the output of {tool} has no value at {field!r}.",
        "no_field_hint": "It is {form}.",
        "no_tools": "none",
        "no_arguments": "nothing",
    },
)

RULE_PREFIX = "rule:"
"""What stands before the title of a rule in the `rule` of a verdict."""


def reason_text(
    language: str, code: str, *, tool: str = "", tier: str | None = None, rule: str = "", sources: Iterable[Source] = ()
) -> str:
    """The text of a reason. All that it names is in the verdict and its call.

    `code` is the name of a text; `tool` and `tier` are those of the call, `rule` and `sources` those of the verdict.
    """
    args = ", ".join(source.arg for source in sources if source.badge == code and source.role != "minor")
    return TEXTS.text(
        language, code, tool=tool, tier=tier or "destructive", title=rule.removeprefix(RULE_PREFIX), args=args
    )


def translate_reasons(
    language: str,
    reasons: Sequence[str],
    codes: Sequence[str],
    *,
    tool: str,
    tier: str | None,
    rule: str,
    sources: Iterable[Source],
) -> tuple[str, ...]:
    """The reasons of a verdict in another language than the run's, such as that of a terminal.

    `codes` are those that are stored beside the reasons. A reason without one, in the operator's own words or from a
    run that stored none, stays as it is.
    """
    if len(codes) != len(reasons):
        return tuple(reasons)
    kept_sources = tuple(sources)
    return tuple(
        reason_text(language, code, tool=tool, tier=tier, rule=rule, sources=kept_sources) if code in TEXTS else text
        for text, code in zip(reasons, codes, strict=True)
    )
