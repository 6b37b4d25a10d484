"""Results of other libraries as JSON: by what they offer, without importing any of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path, PurePosixPath
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict

from taoloop.errors import InvalidOutput
from taoloop.tools.function import tool
from taoloop.tools.result_values import MAX_VALUES, write_json


class Scalar:
    """What a scalar of numpy offers."""

    shape = ()

    def __init__(self, value: Any, kind: str = "f") -> None:
        self._value, self.dtype = value, SimpleNamespace(kind=kind)

    def tolist(self) -> Any:
        return self._value

    def astype(self, _: type) -> Scalar:
        return Scalar(str(self._value), "U")


class Array(Scalar):
    """What an array of numpy offers."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__(values)
        inner = values[0] if values else None
        self.shape = (len(values), len(inner)) if isinstance(inner, list) else (len(values),)  # type: ignore[assignment]

    def __getitem__(self, part: Any) -> Array:
        return Array(self._value[part])


class Series:
    """What a series of pandas offers."""

    dtype = "float64"

    def __init__(self, values: list[Any], index: list[Any] | None = None, name: Any = None) -> None:
        self._values, self.name = values, name
        self.index = list(range(len(values))) if index is None else index

    def head(self, count: int) -> Series:
        return Series(self._values[:count], self.index[:count], self.name)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)


class Frame:
    """What a frame of pandas offers."""

    def __init__(self, columns: list[Any], rows: list[tuple[Any, ...]], index: list[Any] | None = None) -> None:
        self.columns, self._rows = columns, rows
        self.index = list(range(len(rows))) if index is None else index

    def head(self, count: int) -> Frame:
        return Frame(self.columns, self._rows[:count], self.index[:count])

    def itertuples(self, *, index: bool, name: None) -> Iterator[tuple[Any, ...]]:
        assert (index, name) == (False, None)
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class PolarsFrame(Frame):
    """What a frame of polars offers instead."""

    index: Any = None

    def __init__(self, columns: list[Any], rows: list[tuple[Any, ...]]) -> None:
        self.columns, self._rows = columns, rows

    def head(self, count: int) -> PolarsFrame:
        return PolarsFrame(self.columns, self._rows[:count])

    def rows(self) -> list[tuple[Any, ...]]:
        return self._rows

    itertuples = None  # type: ignore[assignment]  # it has none


class NoValue:
    """What `pandas.NA` does when it is compared."""

    def __ne__(self, _: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("it has no truth value")


class Colour(Enum):
    RED = Scalar(3)


class Name(StrEnum):
    A = "a"


@dataclass
class Point:
    x: Any
    path: Path


class Blob(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    data: bytes
    array: Any = None


class OwnBlob(BaseModel):
    model_config = ConfigDict(ser_json_bytes="hex")
    data: bytes


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (b"\xff\xfe", '{"base64":"//4="}'),
        ({"a": [bytearray(b"abc"), memoryview(b"")]}, '{"a":[{"base64":"YWJj"},{"base64":""}]}'),
        (Blob(data=b"\xff"), '{"data":{"base64":"/w=="},"array":null}'),
        (OwnBlob(data=b"\xff"), '{"data":"ff"}'),
        (Blob(data=b"", array=Array([1.5])), '{"data":{"base64":""},"array":[1.5]}'),
        (Scalar(1.5), "1.5"),
        (Scalar("5 seconds", "m"), '"5 seconds"'),
        ({Scalar(1): Scalar(float("nan"))}, '{"1":"NaN"}'),
        (Array([1.0, float("inf")]), '[1.0,"Infinity"]'),
        (Array([[1], [b"a"]]), '[[1],[{"base64":"YQ=="}]]'),
        (Array([]), "[]"),
        (Point(Scalar(4), Path("/a")), '{"x":4,"path":"/a"}'),
        (Colour.RED, "3"),
        (Name.A, '"a"'),
        (PurePosixPath("/x"), '"/x"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        ([Decimal("1.10"), date(2025, 6, 1), datetime(2025, 6, 1)], '["1.10","2025-06-01","2025-06-01T00:00:00"]'),
        ({"b", "a", "c"}, '["a","b","c"]'),
        ({"b", 1}, None),
        (MappingProxyType({"a": deque([1])}), '{"a":[1]}'),
        ([range(2), {1: 2}.keys(), {1: 2}.values(), Counter("a")], '[[0,1],[1],[2],{"a":1}]'),
    ],
)
def test_results_of_all_kinds_are_json(result: Any, text: str | None) -> None:
    written = write_json(result)
    json.loads(written, parse_constant=pytest.fail)
    assert text is None or written == text


def test_a_lone_surrogate_in_a_result_is_replaced() -> None:
    assert json.loads(write_json({"a\udcff": ["\ud800", 1]})) == {"a\ufffd": ["\ufffd", 1]}


def test_a_frame_is_its_columns_and_rows_and_missing_is_null() -> None:
    frame = Frame(["a", Scalar(2)], [(1, float("nan")), (NoValue(), float("inf"))])
    assert write_json(frame) == '{"columns":["a",2],"rows":[[1,null],[null,"Infinity"]],"row_count":2}'
    labelled = json.loads(write_json({"frame": Frame(["a"], [(1,)], ["x"])}))
    assert labelled["frame"] == {"columns": ["a"], "index": ["x"], "rows": [[1]], "row_count": 1}
    polars = write_json(PolarsFrame(["a"], [(1,), (None,)]))
    assert polars == '{"columns":["a"],"rows":[[1],[null]],"row_count":2}'
    assert json.loads(write_json(Frame([], []))) == {"columns": [], "rows": [], "row_count": 0}
    series = json.loads(write_json(Series([1, float("nan")], ["x", "y"], "n")))
    assert series == {"name": "n", "index": ["x", "y"], "values": [1, None]}


def test_what_is_too_large_is_cut_and_says_so() -> None:
    frame = json.loads(write_json(Frame(["a", "b"], [(0, 0)] * MAX_VALUES)))
    assert (len(frame["rows"]), frame["row_count"]) == (MAX_VALUES // 2, MAX_VALUES)
    assert frame["note"] == "Only the first 5,000 of 10,000 are shown."
    wide = json.loads(write_json(Frame(list(range(500)), [tuple(range(500))] * 2)))
    assert (len(wide["columns"]), len(wide["rows"][0])) == (200, 200)
    assert wide["note"] == "Only the first 200 of 500 columns are shown."
    assert "note" in json.loads(write_json(Series([0] * (MAX_VALUES + 1))))
    array = json.loads(write_json(Array([[0.0] * 200] * 100)))
    assert (array["shape"], len(array["values"])) == ([100, 200], 50)
    assert array["note"] == "Only the first 50 of 100 are shown."
    row = json.loads(write_json(Array([[0.0] * 20_000])))
    assert row["values"][0]["note"] == "Only the first 10,000 of 20,000 are shown."


def test_a_result_of_an_array_library_fits_what_is_declared() -> None:
    @tool(tier="read")
    def mean(values: list[float]) -> float:
        """Average."""
        return Scalar(sum(values) / len(values))  # type: ignore[return-value]  # what is tested

    assert mean.render(mean(values=[1.0, 2.0])).text == "1.5"
    with pytest.raises(InvalidOutput, match="does not fit"):
        replace(mean).render(Array([1.0]))


def test_bytes_are_base64_and_the_schema_says_so() -> None:
    @tool(tier="read")
    def flip(data: bytes, more: list[bytes] | None = None) -> bytes:
        """Turn the bits round."""
        return bytes(255 - byte for byte in b"".join((data, *(more or []))))

    text = {"type": "string", "contentEncoding": "base64"}
    assert flip.card.parameters["data"] == text
    assert {"items": text, "type": "array"} in flip.card.parameters["more"]["anyOf"]
    assert flip.card.output_schema is not None
    assert flip.card.output_schema["properties"] == {"base64": text}
    for encoded in ("//4=", "__4=", "//4"):  # the standard alphabet, that of URLs, and without padding
        values = flip.prepare({"data": encoded, "more": ["AA=="]}).values
        assert values == {"data": b"\xff\xfe", "more": [b"\0"]}
    copied = flip.prepare({"data": {"base64": "//4="}, "more": [{"base64": "AA=="}]})  # from another result
    assert copied.args == {"data": "//4=", "more": ["AA=="]}
    assert flip.render(flip(**values)).text == '{"base64":"AAH/"}'
    with pytest.raises(InvalidOutput):
        flip.render(5)


def test_real_arrays_of_numpy() -> None:
    np = pytest.importorskip("numpy")
    values = {
        "scalars": [np.float64(1.5), np.int8(3), np.bool_(True), np.float32("nan"), np.longdouble(0.5)],
        "times": [np.datetime64("2025-06-01T12:00"), np.array(["2025-06-01"], dtype="M8[D]")],
        "array": np.arange(4).reshape(2, 2),
        np.int64(7): np.bytes_(b"a"),
    }
    assert json.loads(write_json(values)) == {
        "scalars": [1.5, 3, True, "NaN", 0.5],
        "times": ["2025-06-01T12:00", ["2025-06-01"]],
        "array": [[0, 1], [2, 3]],
        "7": {"base64": "YQ=="},
    }


def test_real_frames_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"n": pd.array([1, pd.NA], dtype="Int64"), "t": [pd.Timestamp("2025-06-01"), pd.NaT]})
    assert json.loads(write_json(frame)) == {
        "columns": ["n", "t"],
        "rows": [[1, "2025-06-01T00:00:00"], [None, None]],
        "row_count": 2,
    }
    assert json.loads(write_json([pd.NA, pd.NaT, pd.Period("2025-06"), pd.Series([1.5], name="s")])) == [
        None,
        None,
        "2025-06",
        {"name": "s", "values": [1.5]},
    ]


def test_no_such_library_is_imported() -> None:
    script = "import sys, taoloop.tools.result_values; print({'numpy', 'pandas', 'polars'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
