"""Tool cards: the contract of a tool, apart from the code behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from taoloop.errors import ToolDefinitionError

Tier = Literal["read", "draft", "write", "destructive"]
"""What a call can do to the world: nothing, something that nobody sees yet, a change, a change hard to undo."""

TIERS: tuple[Tier, ...] = ("read", "draft", "write", "destructive")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCard:
    """The contract of one tool: what the model is told, and what the executor holds the tool to.

    `input_schema` and `output_schema` are JSON Schema 2020-12; without an output schema any result is taken.
    `tier` None means that nobody declared it: the linter says so, and the executor treats every call as one
    that may have changed the world (never repeated on a guess after a crash).
    `max_input_bytes` bounds the arguments as JSON in UTF-8 (64 KB by default), `max_preview_chars` what the
    model sees of one result; the whole is kept as an artifact.
    `idempotent`: a repeated call under the same idempotency key has no second effect.
    `parallel`: may run at the same time as other calls of the same decision; None means "if it only reads".
    `compensation` names the tool that undoes a call.
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

    def __post_init__(self) -> None:
        """Refuse a card that no executor could hold a tool to.

        Raises:
            ToolDefinitionError: names the field and what it must be.
        """
        if self.tier is not None and self.tier not in TIERS:
            raise ToolDefinitionError(
                f"The tool {self.name!r} has the tier {self.tier!r}.", hint=f"Tiers are: {', '.join(TIERS)}."
            )
        for name in ("timeout_s", "max_input_bytes", "max_preview_chars"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ToolDefinitionError(
                    f"The tool {self.name!r} has {name} = {value!r}.", hint="It must be a number above 0."
                )

    @property
    def reads_only(self) -> bool:
        """True when the tool declares that a call changes nothing."""
        return self.tier == "read"

    @property
    def runs_beside_others(self) -> bool:
        """True when calls may run at the same time as others of the same decision."""
        return self.reads_only if self.parallel is None else self.parallel

    @property
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
