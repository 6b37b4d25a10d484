"""Structured answers: the schema that a run's final answer must fit, and the value that its caller gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taoloop.core.cards.coercion import coerce_value
from taoloop.core.decision import Answer, Problem, excerpt
from taoloop.dialects.parsing.strict_json import answer_values, dumps, loads
from taoloop.errors import ConfigError
from taoloop.runtime.texts import TEXTS
from taoloop.tools.json_schema import compile_schema, findings, listed, plain, type_hint, without_titles

if TYPE_CHECKING:
    from pydantic import TypeAdapter

BAD_ANSWER = "bad_answer"
"""The code of a reply whose answer does not fit the run's output schema."""


class OutputValidator:
    """Checks the answers of a run against a JSON Schema, and converts them to the caller's own type.

    The type's `adapter` may refuse an answer for reasons that no schema can state. An answer is stored in the trace as
    JSON on one line; if the schema allows it without a change of meaning (`"5"` for 5), it is corrected first.

    Raises:
        ConfigError: the schema is invalid.
    """

    def __init__(self, schema: Mapping[str, Any], adapter: TypeAdapter[Any] | None = None) -> None:
        self._validator = compile_schema(schema, "The output schema")  # first: it bounds what the rest walks
        self.schema: dict[str, Any] = plain(schema)
        self._adapter = adapter

    @classmethod
    def of(cls, output_type: Any) -> OutputValidator:
        """The validator for a type or a schema.

        A mapping is a JSON Schema. Anything else is a type for pydantic: a model, a dataclass, a TypedDict,
        `list[int]`, `Literal["yes", "no"]`, `int` …

        Raises:
            ConfigError: pydantic cannot describe the type as JSON, or the schema is invalid.
        """
        if isinstance(output_type, Mapping):
            return cls(output_type)
        from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter  # noqa: PLC0415  # heavy

        try:
            adapter: TypeAdapter[Any] = TypeAdapter(output_type)
            schema = without_titles(adapter.json_schema())
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise ConfigError(
                f"The output type {output_type!r} cannot be described as JSON: {str(error).splitlines()[0]}",
                hint=type_hint(
                    error,
                    "Give a pydantic model, a dataclass, a TypedDict, a JSON-like type, or a JSON Schema as a dict.",
                ),
            ) from error
        return cls(schema, adapter)

    def check(self, answer: Answer) -> Answer | Problem:
        """The answer as canonical JSON, or what is wrong with it, each violation by its path."""
        values, before, error = answer_values(answer.text)
        first: list[str] = []
        for value in values:
            fitting, problems = self._fit(value)
            if problems:
                first = first or problems
                continue
            problems = self._convert(fitting)[1]  # of the value that the schema chose: a replay has no type
            if problems:
                return _problem(answer, "answer_refused", listed(problems))
            reason = "\n".join(part for part in (answer.reason, before) if part)
            return replace(answer, text=dumps(fitting), reason=reason)
        return _problem(answer, "answer_no_json", error) if error else _problem(answer, "answer_misfit", listed(first))

    def value(self, text: str) -> Any:
        """An accepted answer as the caller gets it: a value of the type, or plain JSON.

        Plain JSON also where the type would not take it any more: it was accepted when the run ended.
        """
        value, problems = self._convert(loads(text))
        return loads(text) if problems else value

    def _fit(self, value: Any) -> tuple[Any, list[str]]:
        """The value as it fits the schema, or what is wrong with it as it came."""
        problems = findings(self._validator, value)
        if not problems:
            return value, []
        corrected = coerce_value(value, self.schema)
        return (value, problems) if findings(self._validator, corrected) else (corrected, [])

    def _convert(self, value: Any) -> tuple[Any, list[str]]:
        """A value that fits the schema as one of the type, or why the type refuses it: whatever a validator raises."""
        if self._adapter is None:
            return value, []
        from pydantic import ValidationError  # noqa: PLC0415  # loaded with the adapter

        try:
            return self._adapter.validate_json(dumps(value)), []
        except ValidationError as error:
            return value, [
                f"{'.'.join(map(str, detail['loc'])) or 'the whole'!r}: {detail['msg']}"
                for detail in error.errors(include_url=False, include_context=False, include_input=False)
            ]
        except Exception as error:  # noqa: BLE001  # a validator may raise anything
            return value, [f"{type(error).__name__}: {error}"[:200]]


def _problem(answer: Answer, name: str, why: str) -> Problem:
    return Problem(code=BAD_ANSWER, message=TEXTS.run_text(name, why=why), excerpt=excerpt(answer.text))


def validator_for(schema: Mapping[str, Any], own: OutputValidator | None = None) -> OutputValidator:
    """The validator of a stored run: `own` if it has the run's schema, else one made from the schema alone."""
    return own if own is not None and own.schema == plain(schema) else OutputValidator(schema)
