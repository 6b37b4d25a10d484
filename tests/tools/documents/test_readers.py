"""The lines of an HTML file on which its text begins."""

from __future__ import annotations

import pytest
from tests.growth import assert_linear

from taoloop.tools.documents.readers import source_lines

SOURCE = """<html><head><title>Coffee is here</title></head>
<!-- Coffee is not here -->
<p>Coffee
is <b>in</b> the kitchen</p>
<p>Caf&eacute; &amp; printer: second floor</p>
<p>咖啡在<i>厨房</i>里。</p>
"""


def test_passages_are_found_through_marks_entities_and_line_breaks() -> None:
    found = source_lines(SOURCE, ["Coffee is in the kitchen", "Café & printer: second floor", "咖啡在厨房里。"])
    assert found[0] == 3
    assert found[1] == 5
    assert found[2] in (0, 6)


def test_what_is_not_in_the_source_has_no_line() -> None:
    assert source_lines(SOURCE, ["zebra crossing", "", "?!"]) == [0, 0, 0]


@pytest.mark.parametrize("unit", ["<", "<!--", "<a ", "<script>", "&a;", "a_", " "])
def test_no_source_takes_long(unit: str) -> None:
    def lines(chars: int) -> list[int]:
        return source_lines(unit * (chars // len(unit)), ["many words that are not there at all", "x"] * 50)

    assert_linear(lines, 400_000)
    assert lines(1_000_000) == [0] * 100


def test_a_source_in_which_nothing_is_found_is_given_up() -> None:
    source = "<p>cof<b></b>fee kit<b></b>chen mach<b></b>ines " * 200_000 + "<p>zebra crossing road"
    assert source_lines(source, ["coffee kitchen machines " * 3] * 5_000 + ["zebra crossing road"]) == [0] * 5_001
