"""Structured answers: what the final answer of a run must be, and what it is to its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taoloop.core.cards.coercion import coerce_value
from taoloop.core.decision import Answer, Problem, excerpt
from taoloop.dialects.parsing.strict_json import answer_values, dumps, loads
from taoloop.errors import ConfigError
from taoloop.tools.json_schema import compile_schema, findings, listed, plain, without_titles

if TYPE_CHECKING:
    from pydantic import TypeAdapter

BAD_ANSWER = "bad_answer"
"""The code of a reply whose answer does not fit the run's output schema."""


class OutputValidator:
    """The judge of the answers of a run.

    `schema` is JSON Schema; `adapter` makes the caller's own type of an answer that fits, and may refuse it for
    reasons that no schema can tell. An answer stands in the trace as JSON on one line; where the schema allows it
    without a change of meaning (`"5"` for 5), it is corrected first.

    Raises:
        ConfigError: it is no valid schema.
    """

    def __init__(self, schema: Mapping[str, Any], adapter: TypeAdapter[Any] | None = None) -> None:
        self.schema: dict[str, Any] = plain(schema)
        self._adapter = adapter
        self._validator = compile_schema(self.schema, "The output schema")

    @classmethod
    def of(cls, output_type: Any) -> OutputValidator | None:
        """The judge for a type or a schema; None for None and `str`, whose answers are texts.

        A mapping is a JSON Schema. Anything else is a type for pydantic: a model, a dataclass, a TypedDict,
        `list[int]`, `Literal["yes", "no"]`, `int` …

        Raises:
            ConfigError: pydantic cannot describe the type as JSON, or the schema is invalid.
        """
        if output_type is None or output_type is str:
            return None
        if isinstance(output_type, Mapping):
            return cls(output_type)
        from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter  # noqa: PLC0415  # heavy

        try:
            adapter: TypeAdapter[Any] = TypeAdapter(output_type)
            schema = without_titles(adapter.json_schema())
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise ConfigError(
                f"The output type {output_type!r} cannot be described as JSON: {str(error).splitlines()[0]}",
                hint="Give a pydantic model, a dataclass, a TypedDict, a JSON-like type, or a JSON Schema as a dict.",
            ) from error
        return cls(schema, adapter)

    def check(self, answer: Answer) -> Answer | Problem:
        """The answer as canonical JSON, or what is wrong with it, each violation by its path."""
        values, before, error = answer_values(answer.text)
        first: list[str] = []
        for value in values:
            fitting, wrong = self._fitting(value)
            if wrong:
                first = first or wrong
                continue
            refused = self._typed(fitting)[1]  # of the value that the schema chose: a replay has no type to choose by
            if refused:
                return _problem(f"was refused: {listed(refused)}", answer)
            reason = "\n".join(part for part in (answer.reason, before) if part)
            return replace(answer, text=dumps(fitting), reason=reason)
        what = f"is not one JSON value: {error}" if error else f"does not fit the output schema: {listed(first)}"
        return _problem(what, answer)

    def value(self, text: str) -> Any:
        """What an answer that was accepted is to the caller: a value of the type, or plain JSON.

        Plain JSON also where the type would not take it any more: it was accepted when the run ended.
        """
        value, refused = self._typed(loads(text))
        return loads(text) if refused else value

    def _fitting(self, value: Any) -> tuple[Any, list[str]]:
        """The value as it fits the schema, or what is wrong with it as it came."""
        wrong = findings(self._validator, value)
        if not wrong:
            return value, []
        corrected = coerce_value(value, self.schema)
        return (value, wrong) if findings(self._validator, corrected) else (corrected, [])

    def _typed(self, value: Any) -> tuple[Any, list[str]]:
        """A value that fits the schema as one of the type, or what the type says against it.

        Whatever a validator raises is a refusal.
        """
        if self._adapter is None:
            return value, []
        from pydantic import ValidationError  # noqa: PLC0415  # loaded with the adapter

        try:
            return self._adapter.validate_json(dumps(value)), []
        except ValidationError as error:
            return value, [
                f"{'.'.join(map(str, found['loc'])) or 'the whole'!r}: {found['msg']}"
                for found in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        except Exception as error:  # noqa: BLE001  # a validator may raise anything
            return value, [f"{type(error).__name__}: {error}"[:200]]


def _problem(what: str, answer: Answer) -> Problem:
    return Problem(code=BAD_ANSWER, message=f"The final answer {what}.", excerpt=excerpt(answer.text))


def answers_for(schema: Mapping[str, Any], own: OutputValidator | None = None) -> OutputValidator:
    """The judge for a stored run: `own` where it asks for the same, else one from the run's schema alone."""
    return own if own is not None and own.schema == plain(schema) else OutputValidator(schema)
