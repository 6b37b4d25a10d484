"""Events as JSON and back: the stored form and the form of `--json`. Also a fast writer of small JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from typing import Any, cast

import pydantic_core
from pydantic import TypeAdapter, ValidationError

from taoloop.core.events import FACTS, Event, Fact
from taoloop.core.text import replace_surrogates
from taoloop.errors import JournalCorrupt

_BY_KIND: dict[str, type[Fact]] = {fact.kind: fact for fact in FACTS}


def encode_fact(fact: Fact) -> bytes:
    """The fields of a fact as one JSON object in UTF-8; its kind is stored separately."""
    try:
        return pydantic_core.to_json(fact, inf_nan_mode="strings")
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError):
        plain = asdict(fact)  # a text that UTF-8 cannot hold, or a value that JSON does not know: keep what can be kept
        return replace_surrogates(json.dumps(plain, ensure_ascii=False, default=repr)).encode()


def decode_fact(kind: str, body: bytes | str) -> Fact:
    """The fact that `encode_fact` wrote.

    Raises:
        JournalCorrupt: the kind is unknown or the body does not fit it.
    """
    if kind not in _BY_KIND:
        raise JournalCorrupt(
            f"There is no event of the kind {kind!r}.", hint="Was it written by a newer version of taoloop?"
        )
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as error:
        raise JournalCorrupt(f"An event of the kind {kind!r} cannot be read: {error}.") from error


def event_record(run_id: str, event: Event) -> dict[str, Any]:
    """The event as plain data: `run_id`, `seq`, `at`, `kind` and then the fields of its fact."""
    body = cast("dict[str, Any]", pydantic_core.from_json(encode_fact(event.fact)))
    return {"run_id": run_id, "seq": event.seq, "at": event.at, "kind": event.kind, **body}


def event_line(run_id: str, event: Event) -> str:
    """`event_record` as one line of JSON, not escaped to ASCII."""
    return pydantic_core.to_json(event_record(run_id, event)).decode()


def fact_of_record(record: dict[str, Any]) -> Fact:
    """The fact in what `event_record` made.

    Raises:
        JournalCorrupt: it is no such record.
    """
    fields = {key: value for key, value in record.items() if key not in ("run_id", "seq", "at", "kind")}
    return decode_fact(str(record.get("kind")), pydantic_core.to_json(fields))


@cache
def _adapter(kind: str) -> TypeAdapter[Fact]:
    return TypeAdapter(_BY_KIND[kind])


def json_writer(encoder: json.JSONEncoder) -> Callable[[Any], str]:
    """What `encoder.encode` does, but with its C part made once.

    To make it anew for each value costs more than to write a small one: the loop writes several in every step, which
    would cost 7 % more without this (`benchmarks/overhead.py`).
    """
    try:
        write = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # undocumented
            None,
            encoder.default,
            json.encoder.encode_basestring,
            encoder.indent,
            encoder.key_separator,
            encoder.item_separator,
            encoder.sort_keys,
            encoder.skipkeys,
            encoder.allow_nan,
        )
    except (AttributeError, TypeError):  # a Python without it, or with another one
        return encoder.encode
    return lambda value: "".join(write(value, 0))
