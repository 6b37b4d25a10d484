"""Texts: their language, and catalogues of them."""

from __future__ import annotations

import pytest

from taoloop.core.text import TextCatalog, language_of


@pytest.mark.parametrize(
    "text",
    [
        "北京现在几点?",
        "先计算 3.5 的平方,再加上我所在时区(Asia/Shanghai)的当前小时数,然后给出最终结果。",
        "查询 README.md",
        "用 calculator 计算 3*4",
        "把 hello world 写入 notes.txt",
        "删除",
        "給我看看訂單",
    ],
)
def test_chinese_text_is_chinese(text: str) -> None:
    assert language_of(text) == "zh"


@pytest.mark.parametrize(
    "text",
    [
        "What is 17 times 23?",
        "東京の天気は?",
        "Ask 张三 about the invoice",
        "Translate 你好世界 to English",
        "서울 날씨 漢字",
        "",
        "Who is 李白?",
    ],
)
def test_a_han_character_alone_does_not_make_a_text_chinese(text: str) -> None:
    assert language_of(text) == "en"


def test_a_catalogue_has_every_text_in_both_languages() -> None:
    texts = TextCatalog(en={"left": "{count} left"}, zh={"left": "还剩 {count}"})
    assert texts.text("zh", "left", count=3) == "还剩 3"
    assert texts.text("fr", "left", count=3) == "3 left"
    with pytest.raises(ValueError, match="only: left"):
        TextCatalog(en={"left": ""}, zh={})
