"""Tool cards: the contract of a tool, apart from the code behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

from taoloop.core.words import name_words
from taoloop.errors import ToolDefinitionError

Tier = Literal["read", "draft", "write", "destructive"]
"""What a call can do to the world: nothing, something that nobody sees yet, a change, a change hard to undo."""

TIERS: tuple[Tier, ...] = ("read", "draft", "write", "destructive")

Approval = Literal["required"]
"""Who must say yes to each call, whatever its tier and the policy's profile: a person."""

Performer = Literal["agent", "caller"]
"""Who performs the calls: the agent's process, or whoever asked for the run, who brings the results later."""

ROLES = ("target", "value", "content", "minor")
"""What an argument is to a call; beside these, `ref:KIND` for the id of a thing of that kind."""

_ADDRESS_WORDS = frozenset(
    re.findall(r"\w+", "url urls uri uris link links href endpoint webhook host hostname domain website")
)
_MAX_SCHEMA_DEPTH = 8  # levels of a schema that are looked at

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_INPUT_BYTES = 64 * 1024
DEFAULT_MAX_PREVIEW_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCard:
    """One error that a tool can report: its code, whether the same call may succeed later, what to do instead."""

    code: str
    retryable: bool = False
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCard:
    """One call that works: its arguments, and the output where it is known."""

    args: Mapping[str, Any]
    output: Any = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolCard:
    """The contract of one tool: what the model is told, and what the executor holds the tool to.

    `input_schema` and `output_schema` are JSON Schema 2020-12; without an output schema any result is taken.
    `tier` None means that nobody declared it: the linter says so, and the executor treats every call as one
    that may have changed the world (never repeated on a guess after a crash).
    `max_input_bytes` bounds the arguments as JSON in UTF-8 (64 KB by default), `max_preview_chars` what the
    model sees of one result; the whole is kept as an artifact.
    `approval` `required`: no call runs without a person's yes, whatever its tier and the policy's profile; only a rule
    of the operator that allows exactly this tool lifts it.
    `idempotent`: a repeated call under the same idempotency key has no second effect.
    `parallel`: may run at the same time as other calls of the same decision; None means "if it only reads".
    `compensation` names the tool that undoes a call, `compensation_args` which of its parameters gets what:
    `args.NAME` of the call that is undone, `output` or `output.NAME` of its result, or `call_id`.
    `egress`: whether a call sends data out of the operator's reach; the names of arguments mean that it does where
    one of them is given. None: a call that changes something may, and so may one that takes an address.
    `roles` says what each argument is to the call: `target` (whom or what it acts on, and the default), `ref:KIND`
    (an id of that kind), `value`, `content` (text that others will read) or `minor` (nothing depends on it).
    `ids` names fields of the output that hold ids which the service behind the tool makes itself, so that nobody who
    only writes data there can choose them, and the kind of each (`{"id": "file"}`). Where the task gives everything
    that was looked up, they count as looked up for arguments of the role `ref:file`; all else of an output stays
    untrusted. It is the word of whoever writes the card, never that of a server.
    `reversible`: whether a call can be undone; None: if there is a compensation.
    `probes`: the tool can tell whether a call that lost its outcome had happened. `transactional`: its handler
    writes in the journal's own transaction, so that no call can lose its outcome.
    `performed_by` `caller`: whoever asked for the run does what is called for, and the run waits for the result.
    `listed` False: the prompt does not tell of the tool; a model finds it with `find_tool`, and calls it all the same.
    """

    name: str
    purpose: str
    use_when: str = ""
    avoid_when: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    output_schema: Mapping[str, Any] | None = None
    errors: tuple[ErrorCard, ...] = ()
    examples: tuple[ExampleCard, ...] = ()
    tier: Tier | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_input_bytes: int = DEFAULT_MAX_INPUT_BYTES
    max_preview_chars: int = DEFAULT_MAX_PREVIEW_CHARS
    idempotent: bool = False
    parallel: bool | None = None
    compensation: str | None = None
    compensation_args: Mapping[str, str] = field(default_factory=dict)
    egress: bool | tuple[str, ...] | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    reversible: bool | None = None
    probes: bool = False
    transactional: bool = False
    listed: bool = True
    approval: Approval | None = None
    performed_by: Performer = "agent"

    def __post_init__(self) -> None:
        """Refuse a card that no executor could hold a tool to.

        Raises:
            ToolDefinitionError: names the field and what it must be.
        """
        if self.tier is not None and self.tier not in TIERS:
            raise ToolDefinitionError(
                f"The tool {self.name!r} has the tier {self.tier!r}.", hint=f"Tiers are: {', '.join(TIERS)}."
            )
        if self.approval not in (None, "required"):
            raise ToolDefinitionError(
                f"The tool {self.name!r} has approval = {self.approval!r}.",
                hint="It is `required`, or left away where the policy says which calls a person is asked about.",
            )
        for name in ("timeout_s", "max_input_bytes", "max_preview_chars"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ToolDefinitionError(
                    f"The tool {self.name!r} has {name} = {value!r}.", hint="It must be a number above 0."
                )
        if self.roles or self.egress is not None:
            self._check_roles()
        if self.ids:
            self._check_ids()

    def _check_ids(self) -> None:
        ids: object = self.ids
        kinds = list(ids.items()) if isinstance(ids, Mapping) else [(ids, None)]
        for name, kind in kinds:
            if not (isinstance(name, str) and name and isinstance(kind, str) and kind and not kind.startswith("ref:")):
                raise ToolDefinitionError(
                    f"The tool {self.name!r} has ids = {ids!r}.",
                    hint='Give a mapping from fields of its output to kinds of ids, such as {"id": "file"}.',
                )

    def _check_roles(self) -> None:
        known, roles = self.parameters, cast("object", self.roles)
        if not isinstance(roles, Mapping):
            raise ToolDefinitionError(
                f"The tool {self.name!r} has roles = {roles!r}.",
                hint='Give a mapping from its arguments to their roles, such as {"to": "target"}.',
            )
        for name, role in self.roles.items():
            if name not in known:
                raise ToolDefinitionError(
                    f"The tool {self.name!r} gives a role to {name!r}, which is none of its arguments.",
                    hint=f"Its arguments are: {', '.join(known) or 'none'}.",
                )
            if role not in ROLES and not (str(role).startswith("ref:") and len(role) > 4):
                raise ToolDefinitionError(
                    f"The tool {self.name!r} gives {name!r} the role {role!r}.",
                    hint=f"Roles are: {', '.join(ROLES)}, or ref:KIND such as ref:file.",
                )
        egress: object = self.egress
        names = egress if isinstance(egress, tuple) else ()
        if not isinstance(egress, bool | tuple | None) or any(
            not isinstance(name, str) or name not in known for name in names
        ):
            raise ToolDefinitionError(
                f"The tool {self.name!r} has egress = {egress!r}.",
                hint="Give True, False, or a tuple of those of its arguments that send data out.",
            )

    @property
    def requires_approval(self) -> bool:
        """True when no call may run without a person's yes."""
        return self.approval is not None

    @cached_property
    def reads_only(self) -> bool:
        """True when the tool declares that a call changes nothing."""
        return self.tier == "read"

    def role(self, arg: str) -> str:
        """What an argument is to the call; `target` where nobody said."""
        return self.roles.get(arg, "target")

    def sends_out(self, args: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments sends data out, or may do so as far as the card tells."""
        egress = self.egress
        if isinstance(egress, tuple):
            return any(args.get(name) not in (None, "", [], {}) for name in egress)
        if egress is not None:
            return egress
        if self.tier in ("write", "destructive", None):
            return True
        return self._takes_address

    @cached_property
    def _takes_address(self) -> bool:
        return any(_is_address(name, rule) for name, rule in self.parameters.items())

    def is_address(self, arg: str) -> bool:
        """Whether an argument takes a place on the network, by its format or its name."""
        return _is_address(arg, self.parameters.get(arg))

    @property
    def can_be_undone(self) -> bool:
        """Whether a call can be taken back afterwards."""
        return self.compensation is not None if self.reversible is None else self.reversible

    @property
    def runs_in_parallel(self) -> bool:
        """True when calls may run at the same time as others of the same decision."""
        return self.reads_only if self.parallel is None else self.parallel

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The schema of each argument by name."""
        properties: Mapping[str, Any] = self.input_schema.get("properties", {})
        return properties

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that must be given."""
        return tuple(self.input_schema.get("required", ()))

    @property
    def sole_parameter(self) -> str | None:
        """The name of the only argument, if there is exactly one: then a bare text can stand for it."""
        names = tuple(self.parameters)
        return names[0] if len(names) == 1 else None


def _is_address(name: str, rule: Any, depth: int = 0) -> bool:
    """Whether a parameter, or a part of it, takes a place on the network, by its format or its name."""
    if not _ADDRESS_WORDS.isdisjoint(name_words(name)):
        return True
    if not isinstance(rule, Mapping) or depth > _MAX_SCHEMA_DEPTH:
        return False
    if rule.get("format") in ("uri", "iri", "uri-reference", "iri-reference", "hostname", "idn-hostname"):
        return True
    parts = rule.get("properties")
    inner = list(parts.items()) if isinstance(parts, Mapping) else []
    inner += [("", rule[key]) for key in ("items", "additionalProperties") if isinstance(rule.get(key), Mapping)]
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner += [("", part) for part in rule[key]] if isinstance(rule.get(key), list) else []
    return any(_is_address(part, subrule, depth + 1) for part, subrule in inner)
