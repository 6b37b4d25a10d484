"""The official meta schemas say where a document breaks its specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from taoloop.tools.openapi import OpenapiSource, document_findings

GOOD = {
    "2.0": 'swagger: "2.0"\ninfo: {title: t, version: "1"}\npaths: {}\n',
    "3.0": 'openapi: 3.0.3\ninfo: {title: t, version: "1"}\npaths: {}\n',
    "3.1": 'openapi: 3.1.0\ninfo: {title: t, version: "1"}\npaths: {}\n',
    "3.2": 'openapi: 3.2.0\ninfo: {title: t, version: "1"}\npaths: {}\n',
}


@pytest.mark.parametrize("version", GOOD)
def test_a_good_document_has_no_findings(version: str) -> None:
    assert document_findings(OpenapiSource(document=GOOD[version])) == ()


@pytest.mark.parametrize("version", GOOD)
def test_a_missing_title_is_found(version: str) -> None:
    (found,) = document_findings(OpenapiSource(document=GOOD[version].replace("title: t, ", "")))
    assert (found.place, "title" in found.message) == ("info", True)


def test_the_real_documents_follow_their_specification(shared: Path) -> None:
    for path in sorted((shared / "openapi").glob("*.[yj]*")):
        assert document_findings(OpenapiSource(document=str(path))) == (), path.name
