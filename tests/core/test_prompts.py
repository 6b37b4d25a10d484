"""Prompt texts are filled as `string.Template` fills them."""

from __future__ import annotations

from string import Template

import pytest
from hypothesis import given, strategies as st

from taoloop.core.prompts import PromptSet
from taoloop.errors import PromptError

PIECES = ("$a", "${b}", "$ab", "$A", "$a1", "$$", "$", "${", "}", "%", "%s", "%(a)s", " ", "\n", "x", "值", "$值", "$_")
VALUES = {"a": "1 % $b", "b": 2, "ab": "{}", "a1": "", "A": ("t", 1), "_": None}


@given(text=st.lists(st.sampled_from(PIECES)).map("".join), names=st.sets(st.sampled_from(sorted(VALUES))))
def test_a_text_is_filled_as_a_template_is(text: str, names: set[str]) -> None:
    values = {name: VALUES[name] for name in names}
    prompts = PromptSet(language="en", texts={"some": text})
    try:
        expected = Template(text).substitute(values)
    except (KeyError, ValueError):
        with pytest.raises(PromptError, match="'some'"):
            prompts.fill("some", **values)
    else:
        assert prompts.fill("some", **values) == expected


def test_what_cannot_be_filled_is_named() -> None:
    prompts = PromptSet(language="en", texts={"some": "a\nb $gone $a", "bad": "50 $"})
    with pytest.raises(PromptError, match=r"'some' \(en\) cannot be filled: 'gone'"):
        prompts.fill("some", a=1)
    with pytest.raises(PromptError, match="line 1, col 4"):
        prompts.fill("bad", a=1)
    with pytest.raises(PromptError, match="no text called 'none'"):
        prompts.fill("none")
