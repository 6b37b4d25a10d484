"""The policy of an agent as plain data: a profile, the operator's own rules, and what the operator trusts.

What follows from it for one call is `taoloop.policy.judge`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Any, Literal, cast, get_args

from taoloop.core.cards.tool_card import TIERS, Tier
from taoloop.core.text import field_error, is_number
from taoloop.core.value_origins import FORMS, CallOrigin, can_parse, is_field, parse_call, parse_origin
from taoloop.errors import PolicyError

Profile = Literal["supervised", "strict", "headless", "autonomous", "read-only", "locked"]
"""The name of a profile: a set of defaults for what needs an approval and what is denied."""

PROFILES: tuple[Profile, ...] = get_args(Profile)
"""The names of all profiles."""

EvidenceMode = Literal["off", "warn", "require"]
"""What becomes of an answer whose citations do not hold: they are not checked, they are named, or it is held back."""

VerdictKind = Literal["allow", "ask", "deny"]

Badge = Literal["YOURS", "LOOKED UP", "WRITTEN", "LINKS", "UNKNOWN", "FOREIGN"]
"""The marks of `Source.badge`, which says what each means."""

Pin = Literal["auto", "keywords", "model"]

Observations = Literal["shown", "handles"]

TaskAuthority = Literal["none", "values", "full"]
"""What the words of a user may authorise, from the least."""

_ARG_TESTS = frozenset({"matches", "in", "min", "max", "from", "max_of", "min_of"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the value of one argument came from, as far as the executor can tell."""

    arg: str
    """The path of the argument, such as `to` or `customer.mail`."""
    role: str
    """What the argument is to the call, by the tool's card."""
    badge: Badge
    """`YOURS`: quoted from the task. `LOOKED UP`: in the output of a tool that the operator trusts. `WRITTEN`: content
    by the model. `LINKS`: content with links that no trusted text contains. `FOREIGN`: only in untrusted output.
    `UNKNOWN`: in no text of the run, so made up or decoded; or an id that the task has only as a bare number."""
    call_id: str | None = None
    """The call whose output has the value, for `FOREIGN` and for a value that a rule requires of an output."""
    snippet: str = ""
    """The text around the value in that output; where a rule required an origin, that origin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says about one action, with reasons that a person can read."""

    kind: VerdictKind
    """Whether the action is allowed, needs a person's answer, or is denied."""
    reasons: tuple[str, ...] = ()
    """Why, in the run's language."""
    rule: str = ""
    """What decided: a row of the profile's table, `rule:TITLE` for an operator's rule, or the name of an exception."""
    sources: tuple[Source, ...] = ()
    """Where the arguments came from, for a question or a denial."""
    reason_codes: tuple[str, ...] = ()
    """A stable code for each of the reasons, "" for one in the operator's own words; empty where all of them are."""
    replaces: str = ""
    """What exists and would be overwritten, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the operator: if all its conditions hold for a call, its verdict applies.

    To allow, `args`, `host` and `path` must fit exactly, each part of a list too, and the tool must declare all
    arguments of the call. To ask or deny, it is enough that one of them may be understood so (in other case, with
    invisible characters, as a text for a number), or cannot be judged (a path with `..`, a text too long to be
    matched).
    """

    verdict: VerdictKind
    """What applies to the calls that the rule matches."""
    name: str = ""
    """What the rule is called in reasons."""
    tool: str = "*"
    """A pattern of tool names (`*` and `?`)."""
    tier: Tier | None = None
    """The tier on the tool's card; None: any."""
    egress: bool | None = None
    """Whether the call sends data out; None: either."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """What arguments must be, by path (`to`, `customer.mail`, `payments[].id` for each member of a list). A text is a
    pattern for the whole value, null means that the argument is absent; a mapping takes `matches` (a regular expression
    for the whole value), `in` (a list), `min` and `max`, and by what was seen in the run: `from` (a list of origins,
    see `taoloop.core.value_origins`: the value equals one in a text or field there), `max_of` and `min_of` (the field
    of a tool that bounds it)."""
    host: str = ""
    """A pattern for the hosts of the addresses among the arguments."""
    path: str = ""
    """A pattern for the paths among the arguments."""
    calls_over: int | None = None
    """The run has made this many calls that the rule matches."""
    total_over: Mapping[str, float] = field(default_factory=dict)
    """The sum of a numeric argument over these calls, with this one, is above the number."""
    tainted: bool | None = None
    """Whether the model has seen untrusted text; None: either."""
    after: tuple[str, ...] = ()
    """Tools that were called before with success, such as `get_order`; `get_order(order_id)`: with the same `order_id`
    as this call."""
    repeated: bool | None = None
    """Whether the run has made this call, with the same arguments, before; None: either, but a call that the run may
    repeat needs a rule that says true."""
    requested: bool | None = None
    """Whether the task asks for the tool: a model that was asked names it (`pin`), or else the words of the task do; a
    destructive tool takes both. None: either."""
    user: str = ""
    """A pattern for the end user that the run was started for (`user` in a request to the gateway, which its client
    vouches for)."""
    reason: str = ""
    """Shown to people in place of the rule's name."""

    def __post_init__(self) -> None:
        """Reject a rule that says nothing, or that no call could ever match.

        Raises:
            PolicyError: names the rule, the condition and what it must be.
        """
        self._require(self.verdict in get_args(VerdictKind), "verdict", "allow, ask or deny")
        for name in ("name", "tool", "host", "path", "user", "reason"):
            self._require(isinstance(getattr(self, name), str), name, "a text")
        self._require(bool(self.tool), "tool", "a tool's name, or a pattern such as mail_*")
        self._require(self.tier is None or self.tier in TIERS, "tier", f"one of {', '.join(TIERS)}")
        self._require(self.egress is None or isinstance(self.egress, bool), "egress", "true or false")
        self._require(self.tainted is None or isinstance(self.tainted, bool), "tainted", "true or false")
        self._require(self.repeated is None or isinstance(self.repeated, bool), "repeated", "true or false")
        self._require(self.requested is None or isinstance(self.requested, bool), "requested", "true or false")
        after: object = self.after
        are_calls = isinstance(after, tuple | list) and all(can_parse(parse_call, call) for call in after)
        self._require(are_calls, "after", "a list of tools such as get_order or get_order(order_id)")
        calls: object = self.calls_over
        is_count = isinstance(calls, int) and calls >= 0 and calls is not True and calls is not False
        self._require(calls is None or is_count, "calls_over", "a whole number, 0 or more")
        self._require(isinstance(self.args, Mapping), "args", "a mapping from arguments to what they must be")
        self._require(isinstance(self.total_over, Mapping), "total_over", "a mapping from an argument to an amount")
        for name in (*self.args, *self.total_over):
            is_name = isinstance(cast("object", name), str) and bool(name)
            self._require(is_name, "args", "a mapping from names of arguments", name)
        bare = not re.search(r"[/:@\s]", self.host) or self.host.startswith("[")
        self._require(bare, "host", "a host, or a pattern such as *.example.com, without scheme, port and path")
        climbs = ".." in re.split(r"[/\\]", self.path)
        self._require(not climbs, "path", "a pattern without '..', for a path that climbs fits none")
        for amount in self.total_over.values():
            self._require(is_number(amount), "total_over", "a mapping from an argument to an amount")
        for path, test in self.args.items():
            self._check_test(path, test)

    def _check_test(self, path: str, test: Any) -> None:
        where = f"args.{path}"
        if not isinstance(test, Mapping):
            is_plain = test is None or isinstance(test, str | int | float | bool)
            self._require(is_plain, where, "a text, a number, a mapping, or null for an absent argument", test)
            return
        is_known = bool(test) and set(test) <= _ARG_TESTS
        self._require(is_known, where, f"a mapping with some of {', '.join(sorted(_ARG_TESTS))}", test)
        low, high = test.get("min", -math.inf), test.get("max", math.inf)
        are_numbers = is_number(low, infinite=True) and is_number(high, infinite=True)
        self._require(are_numbers, where, "a mapping with numbers as min and max", test)
        self._require(low <= high, where, "a range whose min is not above its max", test)
        options = test.get("in", [None])
        is_list = isinstance(options, list | tuple) and bool(options)
        self._require(is_list, where, "a mapping with a list of values as `in`", test)
        for origin in origins_in(test, "from"):
            self._require(can_parse(parse_origin, origin), where, f"a mapping with origins as `from`: {FORMS}", test)
        is_empty = "from" in test and not origins_in(test, "from")
        self._require(not is_empty, where, f"a mapping with origins as `from`: {FORMS}", test)
        for name in ("max_of", "min_of"):
            known = can_parse(parse_origin, test[name]) and parse_origin(test[name]) if name in test else None
            is_field = name not in test or isinstance(known, CallOrigin)
            form = "a mapping with the field of a tool as {name}, such as tool:get_order(order_id).total"
            self._require(is_field, where, form.format(name=name), test)
        try:
            re.compile(test.get("matches", ""))
        except (re.error, TypeError) as error:
            self._require(False, where, f"a mapping with a regular expression as `matches` ({error})", test)

    def _require(self, holds: bool, what: str, expected: str, value: Any = None) -> None:
        if holds:
            return
        actual = getattr(self, what, None) if value is None else value
        text = "named rule" if self.name else "rule"
        raise field_error(PolicyError, text, expected, owner=self.name, name=what, value=actual)

    @property
    def origins(self) -> tuple[CallOrigin, ...]:
        """The calls and fields of tools that the conditions name."""
        tests = [test for test in self.args.values() if isinstance(test, Mapping)]
        texts = [text for test in tests for name in ("from", "max_of", "min_of") for text in origins_in(test, name)]
        origins = (*map(parse_origin, texts), *map(parse_call, self.after))
        return tuple(inner for origin in origins if isinstance(origin, CallOrigin) for inner in origin.inner())

    @property
    def title(self) -> str:
        """What the rule is called in reasons."""
        return self.name or f"{self.verdict} {self.tool}"


def origins_in(test: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """The origins in a test of an argument, by the name of the test; one alone needs no list."""
    value = test.get(name, ())
    return tuple(value) if isinstance(value, list | tuple) else (value,)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What an agent may do: the table of a profile, preceded by the operator's own rules."""

    profile: Profile = "supervised"
    """`supervised` (the default) asks a person where it must; `strict` asks more; `headless` is for unattended runs and
    denies what others would ask; `autonomous` does not ask, and keeps only the hard denials; `read-only` lets nothing
    above `read` run; `locked` only what a rule allows."""
    rules: tuple[Rule, ...] = ()
    """The operator's rules, in order: the first whose conditions hold decides."""
    pin: Pin = "auto"
    """How to find out which tools the task asks for: from the words of task and cards (`keywords`), or by asking the
    model once, over trusted text only (`model`), which also lets exact calls be fixed in advance. `auto` is `model` if
    a language model answers and the agent has a tool for which it matters, else `keywords`; a run starts with one of
    these two."""
    observations: Observations = "shown"
    """`shown` puts the outputs of tools before the model, framed as data. With `handles` the model sees only names for
    them (`$obs3`) and their declared shape, and the executor fills in the values (`taoloop.core.handles`)."""
    trusted_tools: tuple[str, ...] = ()
    """Patterns of tools whose output counts as trusted."""
    trusted_fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Maps such a pattern to fields of a JSON output and the kind that each holds (`{"search_files": {"id": "file"}}`):
    a name, wherever it is, or a path such as `items[].item_id` (`.total`: at the top; `*`: every key; `.`: the output
    itself). If the task, or what was looked up so before, contains what was searched for, these values count as looked
    up for arguments of the role `ref:file` or `value:file`; all else in the output stays untrusted."""
    allowed_hosts: tuple[str, ...] = ()
    """Patterns of hosts that reads may send data to."""
    followed_hosts: int | None = None
    """How many distinct hosts a run may follow links to without a question, and with that at most twice as many links.
    Only links that stand in pages and search results of the run, exactly as they are there, are followed so. None: 5
    under `supervised`, 0 under `headless`; the other profiles decide as without it."""
    approval_timeout_s: float | None = None
    """A question that nobody answers within this time is refused; None: it waits."""
    task_authority: TaskAuthority = "full"
    """What the words of the user (the task, messages of a conversation) may authorise. `full`: the calls that they ask
    for. `values`: they endorse values and call for tools where a rule allows the call, and nothing else; what no rule
    allows, nor an approval in advance or the profile `autonomous`, is the operator's to answer. `none`: they endorse
    nothing and call for nothing."""

    def __post_init__(self) -> None:
        """Reject a policy that cannot be enforced.

        Raises:
            PolicyError: names the field, or the rule that another one hides.
        """
        self._require("profile", self.profile in PROFILES, f"one of {', '.join(PROFILES)}")
        self._require("pin", self.pin in get_args(Pin), "auto, keywords or model")
        self._require("task_authority", self.task_authority in get_args(TaskAuthority), "none, values or full")
        self._require("observations", self.observations in get_args(Observations), "shown or handles")
        rules: object = self.rules
        all_rules = isinstance(rules, tuple) and all(isinstance(rule, Rule) for rule in rules)
        self._require("rules", all_rules, "a tuple of Rule")
        for name in ("trusted_tools", "allowed_hosts"):
            value = getattr(self, name)
            self._require(name, isinstance(value, tuple) and all(isinstance(item, str) for item in value), "texts")
        bare = not any(re.search(r"[/:@\s]", host) and not host.startswith("[") for host in self.allowed_hosts)
        self._require("allowed_hosts", bare, "hosts or patterns such as *.example.com, without scheme, port and path")
        hosts: object = self.followed_hosts
        is_count = isinstance(hosts, int) and not isinstance(hosts, bool) and hosts >= 0
        self._require("followed_hosts", hosts is None or is_count, "a whole number, 0 or more, or None")
        fields: object = self.trusted_fields
        holds = isinstance(fields, Mapping) and all(
            isinstance(kinds, Mapping) and all(isinstance(kind, str) and kind for kind in kinds.values())
            for kinds in fields.values()
        )
        holds = holds and all(is_field(name) for kinds in self.trusted_fields.values() for name in kinds)
        self._require("trusted_fields", holds, "a mapping from tools to fields and the kinds of their ids")
        timeout: object = self.approval_timeout_s
        self._require("approval_timeout_s", timeout is None or (is_number(timeout) and timeout > 0), "above 0, or None")
        for number, rule in enumerate(self.rules):
            if earlier := next((item for item in self.rules[:number] if _decides_before(item, rule)), None):
                raise PolicyError(
                    f"rules[{number}]: the rule {rule.title!r} can never match: {earlier.title!r} before it decides "
                    "the same calls.",
                    hint="Put the special rule before the general one.",
                )

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise field_error(PolicyError, "policy", expected, name=name, value=getattr(self, name))

    @cached_property
    def version(self) -> str:
        """The name of exactly this policy: approvals are bound to it."""
        plain = asdict(self)
        if self.followed_hosts is None:  # a policy from before there was such a bound keeps its name
            del plain["followed_hosts"]
        if self.task_authority == "full":
            del plain["task_authority"]  # as it was before there was this field
        if self.approval_timeout_s is not None:
            plain["approval_timeout_s"] = float(self.approval_timeout_s)  # as it is read back from a journal
        for rule, own in zip(plain["rules"], self.rules, strict=True):
            for name in unused_fields(own):  # a policy without them keeps its name
                del rule[name]
            rule["total_over"] = {path: float(most) for path, most in rule["total_over"].items()}
        text = json.dumps(plain, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def unused_fields(rule: Rule) -> set[str]:
    """The fields of a rule that came later and say nothing: it is stored as earlier versions wrote it."""
    values = {"after": rule.after, "repeated": rule.repeated, "requested": rule.requested, "user": rule.user}
    return {name for name, value in values.items() if not value and value is not False}


@lru_cache(maxsize=32)
def plain_policy(profile: Profile, pin: Pin = "auto") -> Policy:
    """The policy that is a profile and nothing else.

    Raises:
        PolicyError: there is no such profile.
    """
    return Policy(profile=profile, pin=pin)


def with_pin(policy: Policy, pin: Pin) -> Policy:
    """The policy with this way to find out what the task asks for."""
    if policy.pin == pin:
        return policy
    is_plain = policy is plain_policy(policy.profile)
    return plain_policy(policy.profile, pin) if is_plain else replace(policy, pin=pin)


def lesser_authority(first: TaskAuthority, second: TaskAuthority) -> TaskAuthority:
    """The authority that two give together."""
    return min(first, second, key=get_args(TaskAuthority).index)


def stricter(own: Policy, outer: Policy) -> Policy:
    """The policy of an inner run: its own, under the outer run's profile if that is stricter, with its denials.

    The user has the lesser authority of the two.
    """
    profile = max(own.profile, outer.profile, key=_STRICTNESS.index)
    denials = tuple(rule for rule in outer.rules if rule.verdict == "deny" and rule not in own.rules)
    remaining = tuple(rule for rule in own.rules if not any(_decides_before(denial, rule) for denial in denials))
    authority = lesser_authority(own.task_authority, outer.task_authority)
    return replace(own, profile=profile, rules=(*denials, *remaining), task_authority=authority)


_STRICTNESS: tuple[Profile, ...] = ("autonomous", "supervised", "strict", "headless", "read-only", "locked")


def _decides_before(first: Rule, later: Rule) -> bool:
    """Whether every call that `later` matches is decided by `first`, as far as patterns can show."""
    if first.total_over or first.calls_over is not None:
        return False
    strict = first.verdict == "allow" and later.verdict != "allow"  # a rule that denies matches more values
    for name in ("args", "host", "path", "after", "user"):
        test = getattr(first, name)
        if test and (strict or test != getattr(later, name)):
            return False
    covers = set("?[").isdisjoint(first.tool) and "[" not in later.tool and fnmatchcase(later.tool, first.tool)
    return (
        (covers or first.tool == later.tool)
        and first.tier in (None, later.tier)
        and first.egress in (None, later.egress)
        and first.tainted in (None, later.tainted)
        and first.repeated in (None, later.repeated)
        and first.requested in (None, later.requested)
    )
