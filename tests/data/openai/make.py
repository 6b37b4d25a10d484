"""Makes `schemas.json`: of OpenAI's own document, the schemas of what the gateway answers, and those they refer to.

Usage: python tests/data/openai/make.py openai-3.1.yaml
The document: openai/openai-openapi at f85dbe223d40 (2026-08-21), `openapi.yaml`, MIT licence.

Left away is what judges nothing (descriptions, examples, marks for generators). `nullable: true`, which OpenAPI 3.1
does not have and this document uses all the same, becomes a `null` that the schema allows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOTS = (
    "CreateChatCompletionResponse",
    "CreateChatCompletionStreamResponse",
    "Response",
    "ResponseStreamEvent",
    "ListModelsResponse",
    "Model",
    "ErrorResponse",
)
_SOURCE = "https://github.com/openai/openai-openapi, openapi.yaml at f85dbe223d40 (2026-08-21), reduced by make.py"
_WITHOUT_MEANING = (
    "description",
    "example",
    "examples",
    "title",
    "default",
    "discriminator",
    "deprecated",
    "externalDocs",
)
_OF_NAMES = ("properties", "$defs", "patternProperties")


def reduced(schema: Any) -> Any:
    """A schema without what judges nothing, `nullable` written as JSON Schema does."""
    if isinstance(schema, list):
        return [reduced(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _OF_NAMES:
            made[name] = {key: reduced(one) for key, one in value.items()}
        elif name in ("enum", "const", "required"):
            made[name] = value
        elif name not in _WITHOUT_MEANING and not name.startswith("x-") and name != "nullable":
            made[name] = reduced(value)
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") is True else made


def referred(schema: Any) -> set[str]:
    """The names of the schemas that a schema refers to."""
    if isinstance(schema, list):
        return set().union(*map(referred, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].rsplit("/", 1)[1]} if isinstance(schema.get("$ref"), str) else set()
    return own.union(*map(referred, schema.values()))


def main(path: Path) -> None:
    """Write the file beside this one."""
    known = yaml.safe_load(path.read_text(encoding="utf-8"))["components"]["schemas"]
    made: dict[str, Any] = {}
    wanted = set(ROOTS)
    while wanted:
        name = wanted.pop()
        made[name] = reduced(known[name])
        wanted |= referred(made[name]) - made.keys()
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(made[name], ensure_ascii=False, separators=(',', ':'))}"
        for name in sorted(made)
    )
    head = f'"source": {json.dumps(_SOURCE)},\n"licence": "MIT, Copyright OpenAI (https://openai.com)"'
    text = f'{{\n{head},\n"components": {{"schemas": {{\n{lines}\n}}}}\n}}\n'
    (Path(__file__).parent / "schemas.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
