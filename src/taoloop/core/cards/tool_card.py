"""Tool cards: the contract of a tool, separate from the code behind it; and what a transactional tool writes with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, cast

from taoloop.core.text import is_number
from taoloop.core.value_origins import is_field
from taoloop.core.words import name_words
from taoloop.errors import ToolDefinitionError

Tier = Literal["read", "draft", "write", "destructive"]
"""What a call can do to the world: nothing, prepare something, change something, change it in a way hard to undo."""

TIERS: tuple[Tier, ...] = ("read", "draft", "write", "destructive")

Approval = Literal["required"]
"""Whether a person must approve each call, whatever its tier and the policy's profile."""

Performer = Literal["agent", "caller"]
"""Who performs the calls: the agent's process, or the client that started the run, which sends the results later."""

Describer = Literal["operator", "third_party"]
"""Who wrote the texts of a card: the operator, or a server, a document or a client that the operator only uses."""

ROLES = ("target", "value", "content", "minor")
"""What an argument is to a call; in addition, `ref:KIND` for the id of a thing of that kind, and `value:KIND` for a
value that a record may give, such as an address."""

_ADDRESS_WORDS = frozenset(
    re.findall(r"\w+", "url urls uri uris link links href endpoint webhook host hostname domain website")
)
_MAX_SCHEMA_DEPTH = 8  # levels of a schema that are looked at

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_INPUT_BYTES = 64 * 1024
DEFAULT_MAX_PREVIEW_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCard:
    """One error that a tool can report."""

    code: str
    """The code of the error, stable."""
    retryable: bool = False
    """Whether the same call may succeed later."""
    advice: str = ""
    """What to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCard:
    """One call that works."""

    args: Mapping[str, Any]
    """The arguments."""
    output: Any = None
    """The output, where it is known."""
    note: str = ""
    """A remark for the reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentCard:
    """A document or folder of the operator's machine that calls of a tool read, named by their argument `name`."""

    name: str
    """The value of the argument `name`."""
    digest: str
    """The SHA-256 of all of it, as `sha256:…`. Another one is a change of the card, and voids earlier approvals."""
    trusted: bool = False
    """Whether the operator approved exactly this content, so that what a call returns of it is the operator's own text.
    The tool must return nothing else, and nothing at all once the content is another."""
    tools: tuple[str, ...] | None = None
    """The only tools that it says it needs. Once it is loaded, a call of any other that does more than read needs a
    person's approval: it can narrow what the policy allows, and widens nothing. None: it does not say."""


@dataclass(frozen=True, kw_only=True)
class ToolCard:
    """The contract of one tool: what the model reads about it, and what the executor holds the tool to."""

    name: str
    """The name that the model calls it by."""
    purpose: str
    """What a call does, in one sentence."""
    use_when: str = ""
    """When to use the tool."""
    avoid_when: str = ""
    """When not to use it, and what it cannot do."""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    """The arguments, as a JSON Schema (2020-12) of an object."""
    output_schema: Mapping[str, Any] | None = None
    """The result, as a JSON Schema (2020-12); None: any result is accepted."""
    errors: tuple[ErrorCard, ...] = ()
    """The errors that the tool reports."""
    examples: tuple[ExampleCard, ...] = ()
    """Calls that work, for the model."""
    tier: Tier | None = None
    """What a call can do to the world. None: nobody declared it; the linter says so, and the executor treats every call
    as one that may have changed the world (never repeated on a guess after a crash)."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """How long a call may take; 30 s by default."""
    max_input_bytes: int = DEFAULT_MAX_INPUT_BYTES
    """The bound of the arguments as JSON in UTF-8; 64 KB by default."""
    max_preview_chars: int = DEFAULT_MAX_PREVIEW_CHARS
    """How much of one result the model sees, 4,000 characters by default; the whole is kept as an artifact."""
    idempotent: bool = False
    """A repeated call under the same idempotency key has no second effect."""
    parallel: bool | None = None
    """Calls may run at the same time as other calls of the same decision; None: if the tool only reads."""
    compensation: str | None = None
    """The tool that undoes a call."""
    compensation_args: Mapping[str, str] = field(default_factory=dict)
    """What each parameter of the compensation gets: `args.NAME` of the call that is undone, `output` or `output.NAME`
    of its result, or `call_id`."""
    egress: bool | tuple[str, ...] | None = None
    """Whether a call sends data out of the operator's reach. Names of arguments: it does if one of them is given. None:
    a call that changes something may, and so may one that takes an address."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """What each argument is to the call: `target` (whom or what it acts on, and the default), `ref:KIND` (an id of that
    kind), `value`, or `value:KIND` where a record may give it (`ids`), `content` (text that others will read) or
    `minor` (nothing depends on it)."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Fields of the output with ids or values that the service itself makes, so that nobody who only writes data there
    can choose them, and the kind of each (`{"id": "file"}`): a name, wherever it is, or a path such as
    `items[].item_id` (`.total`: at the top; `*`: every key; `.`: the output itself). If the task, or what was looked up
    so before, contains everything that was searched for, they count as looked up for arguments of the role `ref:file`
    or `value:file`; all else in an output stays untrusted. The author of the card vouches for this, never a server."""
    reversible: bool | None = None
    """Whether a call can be undone; None: if there is a compensation."""
    probes: bool = False
    """The tool can tell whether a call that lost its outcome had happened."""
    transactional: bool = False
    """The handler writes in the journal's own transaction, so that no call can lose its outcome."""
    listed: bool = True
    """False: the prompt does not list the tool; a model finds it with `find_tool`, and can call it all the same."""
    repeatable: bool = False
    """The same call may be made again in a run without a question: its effect is the same however often it happens
    (setting a value), or is meant to add up (rolling dice)."""
    approval: Approval | None = None
    """`required`: no call runs without a person's approval, whatever the tier and the policy's profile; only a rule of
    the operator that allows exactly this tool lifts that."""
    described_by: Describer = field(default="operator", metadata={"in_files": False})
    """`third_party`: a server, a document or a client wrote the texts, so they decide nothing: the question what a task
    calls for shows of the card no more than its name, its tier and the names of its arguments. No file says so: whoever
    reads the card from there does."""
    contents: tuple[ContentCard, ...] = field(default=(), metadata={"in_files": False})
    """What the calls read, where that is fixed while the tool is offered. No file says so, only the tool's own code."""
    performed_by: Performer = field(default="agent", metadata={"in_files": False})
    """`caller`: the client that started the run carries out the calls, and the run waits for the results. No file says
    so: it is for the tools that come with a request."""

    def __post_init__(self) -> None:
        """Reject a card that no executor could hold a tool to.

        Raises:
            ToolDefinitionError: names the field and what it must be.
        """
        self._require(self.tier is None or self.tier in TIERS, "tier", f"Tiers are: {', '.join(TIERS)}.")
        omitted = "It is `required`, or omitted if the policy decides which calls a person is asked about."
        self._require(self.approval in (None, "required"), "approval", omitted)
        for name in ("timeout_s", "max_input_bytes", "max_preview_chars"):
            value = getattr(self, name)
            self._require(is_number(value, infinite=True) and value > 0, name, "It must be a number above 0.")
        if self.roles or self.egress is not None:
            self._check_roles()
        if self.ids:
            self._check_ids()
        if self.examples:
            self._check_examples()

    def _require(self, holds: bool, name: str, hint: str) -> None:
        if not holds:
            raise ToolDefinitionError(f"The tool {self.name!r} has {name} = {getattr(self, name)!r}.", hint=hint)

    def _check_examples(self) -> None:
        examples: object = self.examples
        hint = 'Give a list of ExampleCard, such as ExampleCard(args=dict(city="Bern")).'
        for example in examples if isinstance(examples, list | tuple) else (examples,):
            fits = isinstance(example, ExampleCard) and isinstance(example.args, Mapping)
            if not fits:
                message = f"The tool {self.name!r} has an example that is no ExampleCard: {str(example)[:80]!r}."
                raise ToolDefinitionError(message, hint=hint)

    def _check_ids(self) -> None:
        ids: object = self.ids
        kinds = list(ids.items()) if isinstance(ids, Mapping) else [(ids, None)]
        hint = 'Give a mapping from fields of its output to kinds of ids, such as {"id": "file"}.'
        for name, kind in kinds:
            are_texts = isinstance(name, str) and name and isinstance(kind, str) and kind
            is_kind = bool(are_texts) and not str(kind).startswith(("ref:", "value:"))
            self._require(is_kind and is_field(name), "ids", hint)

    def _check_roles(self) -> None:
        known, roles = self.parameters, cast("object", self.roles)
        hint = 'Give a mapping from its arguments to their roles, such as {"to": "target"}.'
        self._require(isinstance(roles, Mapping), "roles", hint)
        for name, role in self.roles.items():
            if name not in known:
                raise ToolDefinitionError(
                    f"The tool {self.name!r} gives a role to {name!r}, which is not one of its arguments.",
                    hint=f"Its arguments are: {', '.join(known) or 'none'}.",
                )
            kind = str(role).partition(":")
            if role not in ROLES and not (kind[0] in ("ref", "value") and kind[2]):
                raise ToolDefinitionError(
                    f"The tool {self.name!r} gives {name!r} the role {role!r}.",
                    hint=f"Roles are: {', '.join(ROLES)}, or ref:KIND such as ref:file, or value:KIND.",
                )
        egress: object = self.egress
        are_known = isinstance(egress, tuple) and all(isinstance(name, str) and name in known for name in egress)
        hint = "Give True, False, or a tuple of those of its arguments that send data out."
        self._require(are_known or isinstance(egress, bool | None), "egress", hint)

    def translated(self, texts: Mapping[str, str]) -> ToolCard:
        """The card with each of its texts that `texts` has replaced by what `texts` gives for it.

        Its texts are the purpose, when to use it and when not, the advice of its errors, the notes and arguments of its
        examples, and the descriptions in its schema of arguments. Names, codes and rules stay.
        """

        def text(original: str) -> str:
            return texts.get(original, original)

        return replace(
            self,
            purpose=text(self.purpose),
            use_when=text(self.use_when),
            avoid_when=text(self.avoid_when),
            input_schema=_with_descriptions(self.input_schema, texts),
            errors=tuple(replace(error, advice=text(error.advice)) for error in self.errors),
            examples=tuple(
                replace(example, args=_with_texts(example.args, texts), note=text(example.note))
                for example in self.examples
            ),
        )

    @property
    def requires_approval(self) -> bool:
        """True if no call may run without a person's approval."""
        return self.approval is not None

    @cached_property
    def reads_only(self) -> bool:
        """True if the tool declares that a call changes nothing."""
        return self.tier == "read"

    def role(self, arg: str) -> str:
        """What an argument is to the call; `target` if nothing is declared."""
        return self.roles.get(arg, "target")

    def sends_out(self, args: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments sends data out, or may do so as far as the card says."""
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
        """Whether an argument takes a network address, by its format or its name."""
        return _is_address(arg, self.parameters.get(arg))

    @property
    def can_be_undone(self) -> bool:
        """Whether a call can be undone afterwards."""
        return self.compensation is not None if self.reversible is None else self.reversible

    @property
    def runs_in_parallel(self) -> bool:
        """True if calls may run at the same time as others of the same decision."""
        return self.reads_only if self.parallel is None else self.parallel

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The schema of each argument by name."""
        properties: Mapping[str, Any] = self.input_schema.get("properties", {})
        return properties

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments that are required."""
        return tuple(self.input_schema.get("required", ()))

    @property
    def sole_parameter(self) -> str | None:
        """The name of the only argument, if there is exactly one: then a bare text can be its value."""
        names = tuple(self.parameters)
        return names[0] if len(names) == 1 else None


def _with_texts(value: Any, texts: Mapping[str, str]) -> Any:
    """A value of JSON with its texts replaced by those of `texts`."""
    if isinstance(value, Mapping):
        return {key: _with_texts(inner, texts) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, texts) for item in value]
    return texts.get(value, value) if isinstance(value, str) else value


def _with_descriptions(rule: Any, texts: Mapping[str, str]) -> Any:
    """A schema, or a part of it, whose descriptions are those of `texts`."""
    if isinstance(rule, Mapping):
        return {
            key: _with_texts(value, texts)
            if key == "description" and isinstance(value, str)
            else _with_descriptions(value, texts)
            for key, value in rule.items()
        }
    return [_with_descriptions(item, texts) for item in rule] if isinstance(rule, list) else rule


def _is_address(name: str, rule: Any, depth: int = 0) -> bool:
    """Whether a parameter, or a part of it, takes a network address, by its format or its name."""
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


class ResultRows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed; -1 where it changed none."""
        ...

    @property
    def lastrowid(self) -> int | None:
        """The row that it inserted last."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """The remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """The remaining rows, one by one."""
        ...


class JournalConnection(Protocol):
    """A connection to the journal's own database, inside the transaction that stores the outcome of the call.

    What is written through it exists exactly if the outcome does. The transaction is the journal's: it cannot be ended
    from here, and the journal's own tables cannot be changed. It blocks every other run, so be quick.
    """

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> ResultRows:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any] | Mapping[str, Any]]) -> ResultRows:
        """Run one statement with each of the parameters."""
        ...
