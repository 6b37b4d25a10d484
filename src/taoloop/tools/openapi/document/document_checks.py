"""What a document does against its own specification, by the official meta schemas of OpenAPI.

Reading does not depend on it: real documents break their specification, and most of their operations are usable.

The files beside this module are those of https://spec.openapis.org, unchanged (Apache License 2.0, OpenAPI Initiative).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from taoloop.tools.load_result import LoadProblem
from taoloop.tools.openapi.document.document import Version, document_of, fetch_document
from taoloop.tools.openapi.settings import OpenapiSource

_MOST = 20


def document_findings(source: OpenapiSource) -> tuple[LoadProblem, ...]:
    """Where a document breaks the rules of the version that it says it follows; at most 20.

    Raises:
        ToolSourceError: it is no OpenAPI document, or cannot be read.
    """
    document = document_of(fetch_document(source))
    found: list[LoadProblem] = []
    for error in _validator(document.version).iter_errors(document.root):
        place = ".".join(str(part) for part in error.instance_path)
        found.append(LoadProblem(source=document.said, place=place, message=str(error.message)[:300]))
        if len(found) == _MOST:
            break
    return tuple(found)


@cache
def _validator(version: Version) -> Any:
    import jsonschema_rs  # noqa: PLC0415  # only where a document is judged

    text = files("taoloop.tools.openapi.document").joinpath("meta", f"v{version}.json").read_text(encoding="utf-8")
    return jsonschema_rs.validator_for(json.loads(text))
