"""The texts that tools report in a run: the same in English and Chinese, and in the language of the run."""

from __future__ import annotations

import asyncio
import re
import string
from pathlib import Path

import pytest

from taoloop.core.text import TextCatalog
from taoloop.errors import ToolError
from taoloop.tools.documents import DocumentFolder, locate
from taoloop.tools.documents.texts import TEXTS as DOCUMENT_TEXTS
from taoloop.tools.egress import EgressClient
from taoloop.tools.egress.texts import TEXTS as EGRESS_TEXTS
from taoloop.tools.openapi import OpenapiSource, openapi_tools
from taoloop.tools.openapi.texts import TEXTS as OPENAPI_TEXTS

CATALOGUES = {"documents": DOCUMENT_TEXTS, "egress": EGRESS_TEXTS, "openapi": OPENAPI_TEXTS}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=CATALOGUES)
def test_both_languages_have_the_same_values_filled_in(catalogue: TextCatalog) -> None:
    texts = vars(catalogue)["_texts"]
    for name, text in texts["en"].items():
        chinese = texts["zh"][name]
        assert placeholders(chinese) == placeholders(text), name
        prose = re.sub(r"`[^`]*`|https?://\S+", "", "".join(part for part, *_ in string.Formatter().parse(chinese)))
        assert not prose.isascii(), name
        assert not set(prose) & set(",;:!?()"), name


@pytest.mark.usefixtures("chinese_run")
def test_a_refused_request_is_reported_in_chinese() -> None:
    with pytest.raises(ToolError) as error:
        asyncio.run(EgressClient().send("GET", "http://169.254.169.254/"))
    assert error.value.message == (
        "不允许向 169.254.169.254:80 发送请求：它是 169.254.169.254，这是云平台的元数据服务。"
    )
    assert error.value.hint == "请使用其他地址。"


@pytest.mark.usefixtures("chinese_run")
def test_arguments_that_do_not_fit_are_reported_in_chinese() -> None:
    document = '{"openapi": "3.1.0", "paths": {"/a/{id}": {"get": {"operationId": "a"}}}}'
    (tool,) = openapi_tools(OpenapiSource(document=document, base_url="https://api.example")).tools
    with pytest.raises(ToolError) as error:
        tool.check(b"{}")
    assert error.value.message == "'a' 的参数不符合要求：缺少 'id'。"
    assert error.value.hint.startswith("应为：")


@pytest.mark.usefixtures("chinese_run")
def test_an_unknown_citation_is_reported_in_chinese(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as error:
        locate(DocumentFolder(path=tmp_path, index=tmp_path / "index.db"), "[doc:000000000000]")
    assert error.value.message == "没有 ID 为 '[doc:000000000000]' 的段落。"
