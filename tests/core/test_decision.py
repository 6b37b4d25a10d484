"""Citations in an answer."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from taoloop.core.decision import cited_ids

ONE, TWO = "doc:4k7m2pq9x0ab", "doc:zzzz2pq9x0ab"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"Three months [{ONE}].", (ONE,)),
        (f"三个月【{ONE}】，百分之十[{TWO}]。[{ONE}]", (ONE, TWO)),
        (f"[{ONE}, {TWO}]", (ONE, TWO)),
        ("[doc:short] doc: [1] (see docs)", ()),
        (f"mydoc:{ONE[4:]} {ONE}x", ()),
        ("", ()),
    ],
)
def test_passages_are_cited_by_their_ids(text: str, found: tuple[str, ...]) -> None:
    assert cited_ids(text) == found


@given(text=st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    assert all(one.startswith("doc:") for one in cited_ids(text))
