"""Results of Python functions as JSON, whatever library they come from.

Arrays, frames and series are recognised by what they offer, not by their classes: numpy, pandas, polars and torch need
not be installed, and are never imported.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, ValuesView
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import islice
from pathlib import PurePath
from typing import Any
from uuid import UUID

import pydantic_core

from taoloop.core.text import replace_surrogates
from taoloop.tools.texts import TEXTS

MAX_VALUES = 10_000
"""How many values of an array, a series or a frame are shown; a longer one is cut, and says so."""

_MAX_COLUMNS = 200
_SCALARS = frozenset({str, int, float, bool, type(None)})
_TEXT_LIKE = (str, int, float, complex, date, time, timedelta, Decimal, UUID)  # pydantic writes them, as their bases
_ITERABLES = (Sequence, Set, ValuesView)
BASE64_SCHEMA = {
    "type": "object",
    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["base64"],
    "additionalProperties": False,
}
"""The JSON Schema of `bytes` in a result (RFC 4648, section 4)."""


def write_json(result: Any) -> str:
    """A result as JSON.

    `bytes` are `{"base64": …}`. Numbers that JSON does not have are the texts "NaN", "Infinity" and "-Infinity"; in a
    frame or a series NaN means that there is no value: null. A frame is
    `{"columns": […], "rows": [[…]], "row_count": …}`, with `index` where it is more than numbers from 0, a series
    `{"name": …, "values": […]}`. Sets are sorted where their values can be. A pydantic model is written as its own
    configuration says, except for its `bytes`. A lone surrogate, as in a file name that is not UTF-8, is U+FFFD.

    Raises:
        PydanticSerializationError, ValueError, RecursionError: something in it cannot be written.
    """
    values = json_values(result)
    try:
        return pydantic_core.to_json(values, inf_nan_mode="strings").decode()
    except pydantic_core.PydanticSerializationError:
        return pydantic_core.to_json(_without_surrogates(values), inf_nan_mode="strings").decode()


def _without_surrogates(values: Any) -> Any:
    """Values as `json_values` gives them, with texts that can be written as UTF-8."""
    if isinstance(values, str):
        return replace_surrogates(values)
    if isinstance(values, dict):
        return {_without_surrogates(key): _without_surrogates(value) for key, value in values.items()}
    return [_without_surrogates(value) for value in values] if isinstance(values, list) else values


def json_values(value: Any) -> Any:
    """`value` with everything in it replaced that pydantic does not write, or not as `write_json` says."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return {
            _json_key(key): inner if type(inner) in _SCALARS else json_values(inner) for key, inner in value.items()
        }
    if kind is list:
        return _json_list(value)
    return _object_values(value)


def _object_values(value: Any) -> Any:
    if isinstance(value, Enum):
        return json_values(value.value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, _TEXT_LIKE):
        return value if value == value else _not_a_number(value)  # only NaN and NaT differ
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {_json_key(key): json_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return _json_list(value)
    if hasattr(value, "__pydantic_serializer__") and not isinstance(value, type):
        return _model_values(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_values(getattr(value, field.name)) for field in fields(value)}
    if (shorter := _foreign_values(value)) is not value:
        return shorter
    if isinstance(value, Set):
        return _sorted(_json_list(value))
    return _json_list(value) if isinstance(value, _ITERABLES) else value


def _json_list(values: Iterable[Any]) -> list[Any]:
    return [value if type(value) in _SCALARS else json_values(value) for value in values]


def _json_key(key: Any) -> Any:
    if type(key) in _SCALARS or not hasattr(key, "dtype"):
        return key
    return json_values(key)


def _sorted(values: list[Any]) -> list[Any]:
    """Sorted if they have an order: that of a set of texts differs from process to process."""
    try:
        return sorted(values)
    except TypeError:
        return values


def _not_a_number(value: Any) -> Any:
    """A NaN as it is; `NaT`, the missing time of pandas, as null."""
    return None if isinstance(value, date) else value


def _model_values(model: Any) -> Any:
    """A pydantic model or dataclass: as it is, unless it has `bytes` or values that pydantic cannot write."""
    serializer = model.__pydantic_serializer__
    config = getattr(model, "model_config", None) or getattr(model, "__pydantic_config__", None) or {}
    if "ser_json_bytes" in config:
        return model
    try:
        python = serializer.to_python(model)
    except (pydantic_core.PydanticSerializationError, ValueError):
        return model
    return json_values(python) if _needs_conversion(python) else model


def _needs_conversion(value: Any) -> bool:
    if type(value) in _SCALARS:
        return False
    if isinstance(value, Mapping):
        return any(map(_needs_conversion, value.values()))
    if isinstance(value, list | tuple | Set):
        return any(map(_needs_conversion, value))
    return isinstance(value, bytes | bytearray | memoryview) or hasattr(value, "dtype") or hasattr(value, "columns")


def _foreign_values(value: Any) -> Any:
    """The values of an array, a series or a frame; anything else as it is."""
    if isinstance(value, type):
        return value
    if hasattr(value, "columns") and callable(getattr(value, "head", None)):
        return _frame_values(value)
    if hasattr(value, "dtype"):
        if callable(getattr(value, "head", None)):
            return _series_values(value)
        if hasattr(value, "shape") and callable(getattr(value, "tolist", None)):
            return _array_values(value)
    if type(value).__module__.partition(".")[0] == "pandas" and not hasattr(value, "__iter__"):
        return None if type(value).__name__ == "NAType" else str(value)  # such as a Period or an Interval
    return value


def _array_values(array: Any) -> Any:
    """Nested lists of an array or tensor; of a scalar of such a library the Python value."""
    if getattr(array.dtype, "kind", "") in ("M", "m"):  # dates and durations, whose Python form may be a number
        array = array.astype(str)
    shape = tuple(int(length) for length in array.shape)
    if not shape:
        scalar = array.tolist()
        return json_values(scalar) if type(scalar) is not type(array) else float(scalar)
    total = 1
    for length in shape:
        total *= length
    if total <= MAX_VALUES:
        return json_values(array.tolist())
    first = max(1, MAX_VALUES * shape[0] // total)
    cut = array[:first]
    is_long = total // shape[0] > MAX_VALUES  # even its first row is too long
    values = [_array_values(cut[0])] if is_long else json_values(cut.tolist())
    return {"shape": list(shape), "values": values, **_cut_note(first, shape[0])}


def _series_values(series: Any) -> dict[str, Any]:
    size = len(series)
    head = series.head(MAX_VALUES) if size > MAX_VALUES else series
    values = {"name": _json_key(getattr(series, "name", None)), **_index_of(head)}
    values["values"] = [_cell(value) for value in head]
    return values | _cut_note(len(head), size)


def _frame_values(frame: Any) -> dict[str, Any]:
    columns, size = list(frame.columns), len(frame)
    shown = columns[:_MAX_COLUMNS]
    head = frame.head(max(1, min(size, MAX_VALUES // max(len(shown), 1))))
    rows: Callable[[], Iterable[Any]] | None = getattr(head, "rows", None)  # of polars; pandas has `itertuples`
    records = rows() if callable(rows) else head.itertuples(index=False, name=None)
    values: dict[str, Any] = {"columns": json_values(shown), **_index_of(head)}
    values["rows"] = [[_cell(cell) for cell in islice(record, len(shown))] for record in records]
    values["row_count"] = size
    values |= _cut_note(len(head), size)
    if len(shown) < len(columns):
        note = TEXTS.run_text("result_columns_cut", part=len(shown), total=f"{len(columns):,}")
        values["note"] = " ".join(filter(None, (values.get("note"), note)))
    return values


def _index_of(head: Any) -> dict[str, Any]:
    """The labels of the rows, if they are more than numbers from 0."""
    labels = getattr(head, "index", None)
    if labels is None or callable(labels):
        return {}
    labels = [_cell(label) for label in labels]
    return {} if labels == list(range(len(labels))) else {"index": labels}


def _cut_note(part: int, total: int) -> dict[str, str]:
    return {"note": TEXTS.run_text("result_cut", part=f"{part:,}", total=f"{total:,}")} if part < total else {}


def _cell(value: Any) -> Any:
    """A cell, or null where there is no value (None, NaN, NaT and NA)."""
    try:
        is_missing = bool(value != value)  # NaN and NaT are not equal to themselves
    except (TypeError, ValueError):  # NA has no truth value; nor has an array in a cell, which has a value
        is_missing = not hasattr(value, "dtype")
    return None if is_missing else json_values(value)
