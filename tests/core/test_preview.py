from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop.core.preview import preview

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
)
PAGE = {
    "status": "ok",
    "items": [{"id": n, "name": "n" * 40, "tags": ["a", "b"]} for n in range(1_000)],
    "text": "lorem " * 5_000,
    "next": None,
}


@given(VALUES, st.integers(2, 400))
def test_json_stays_json_within_the_bound(value: Any, max_chars: int) -> None:
    """S2-28."""
    text = json.dumps(value, ensure_ascii=False)
    shown = preview(text, "json", max_chars)
    json.loads(shown)
    assert len(shown) <= max_chars
    assert (shown == text) is (len(text) <= max_chars)


@given(st.text(alphabet="ab \n中。", min_size=1), st.integers(0, 200), st.integers(1, 20))
def test_text_is_cut_to_a_prefix_within_the_bound(part: str, max_chars: int, times: int) -> None:
    """S2-28."""
    text = part * times
    shown = preview(text, "text", max_chars)
    assert len(shown) <= max_chars
    assert (shown == text) is (len(text) <= max_chars)
    assert text.startswith(shown.rpartition("\n[…")[0] or shown.rstrip("…"))


@pytest.mark.parametrize("max_chars", [4_000, 800, 200, 150])
def test_the_keys_of_the_top_survive(max_chars: int) -> None:
    shown = json.loads(preview(json.dumps(PAGE), "json", max_chars))
    assert set(shown) >= set(PAGE)
    assert shown["status"] == "ok"


def test_long_lists_keep_their_first_items_and_say_how_many_were_left_out() -> None:
    shown = json.loads(preview(json.dumps(PAGE["items"]), "json", 1_000))
    assert shown[0] == {"id": 0, "name": "n" * 40, "tags": ["a", "b"]}
    assert shown[-1] == {"…": f"{1_000 - len(shown) + 1:,} more items"}


def test_long_texts_and_many_keys_are_counted() -> None:
    assert json.loads(preview(json.dumps("x" * 5_000), "json", 100)).endswith("more characters)")
    keys = json.loads(preview(json.dumps({str(n): n for n in range(5_000)}), "json", 100))
    assert keys["…"] == f"{5_000 - len(keys) + 1:,} more keys"
    assert json.loads(preview('{"…": 1, "a": "' + "x" * 90 + '", "b": 2}', "json", 60))["…"] == 1


def test_the_room_is_used() -> None:
    assert len(preview(json.dumps(PAGE), "json", 4_000)) > 3_500


def test_text_is_cut_at_a_border_and_the_cut_is_told() -> None:
    text = "First paragraph.\n\n" * 100
    shown = preview(text, "text", 500)
    kept, _, note = shown.rpartition("\n[…")
    assert kept.endswith("paragraph.\n\n")
    assert note == f" {len(text) - len(kept):,} more characters; {text.count(chr(10), len(kept)) + 1} more lines]"


def test_what_is_called_json_and_is_none_is_text() -> None:
    assert "more characters" in preview("{oops " * 100, "json", 100)
    assert preview('"\\ud800' + "x" * 200 + '"', "json", 100).startswith('"\\ud800')


def test_numbers_beyond_json_stay_valid() -> None:
    json.loads(preview("[1e400, NaN, " + "1" * 4_000 + "]", "json", 200), parse_constant=pytest.fail)


@pytest.mark.parametrize("megabytes", [5, pytest.param(50, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    "text_of",
    [
        lambda chars: "[" * (chars // 2) + "]" * (chars // 2),
        lambda chars: "[" * chars,
        lambda chars: "[" + "0," * (chars // 2) + "0]",
        lambda chars: '{"a":' * (chars // 6) + "1" + "}" * (chars // 6),
        lambda chars: "a b\n" * (chars // 4),
    ],
    ids=["deep", "open", "wide", "deep objects", "lines"],
)
def test_many_megabytes_take_a_moment_and_no_recursion(text_of: Callable[[int], str], megabytes: int) -> None:
    assert len(preview(text_of(megabytes * 1_000_000), "json", 4_000)) <= 4_000
