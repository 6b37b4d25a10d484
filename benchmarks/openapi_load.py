"""How long a document of an API takes to become tools: CPU seconds and memory of a fresh process, imports included.

    python benchmarks/openapi_load.py DOCUMENT     targets: 3 s cold, 0.3 s from the cache
    python benchmarks/openapi_load.py              the same, and a document of 20 MB in 10 s and 400 MB

Without a document the largest of the shared test data is taken, where it lies beside the checkout, and then one of
20 MB that is built here in JSON and in YAML: in the form of GitHub's, with much text, examples and references.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared" / "openapi" / "openai-3.1.yaml"
COLD_S, CACHED_S = 3.0, 0.3
LARGE_BYTES, LARGE_S, LARGE_MB = 20_000_000, 10.0, 400
ROUNDS = 5
CODE = """
import resource, sys, time
from taoloop.tools.openapi import OpenapiSource, openapi_tools
loaded = openapi_tools(OpenapiSource(document=sys.argv[1], cache_folder=sys.argv[2]))
print(len(loaded.tools), time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_NAMES = ("id", "node_id", "name", "url", "created_at", "owner", "state", "body", "labels", "permissions", "size")
_TEXT = "A resource of the account, as it is shown to people who may see it. "


def load(document: str, cache: str) -> tuple[int, float, float]:
    """Tools, CPU seconds and MB of memory of one process."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, document, cache], check=True, capture_output=True, text=True, timeout=120
    )
    tools, seconds, megabytes = done.stdout.split()
    return int(tools), float(seconds), float(megabytes)


def large_document(size: int) -> dict[str, Any]:
    """A document of about `size` bytes in the form of GitHub's: 800 schemas that refer to each other, inline bodies."""
    random = Random(1)  # noqa: S311  # no secret

    def schema(depth: int, *, refers: bool) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for name in _NAMES:
            draw = random.random()
            if draw < 0.6:
                properties[name] = {"type": "string", "description": _TEXT, "example": f"https://api.github.com/{name}"}
            elif draw < 0.8 or depth > 2:
                properties[name] = {"type": ["integer", "null"], "description": f"The {name}."}
            elif draw < 0.9 and refers:
                properties[name] = {"$ref": f"#/components/schemas/schema-{random.randrange(800)}"}
            else:
                properties[name] = {"type": "array", "items": schema(depth + 1, refers=refers)}
        return {"type": "object", "description": _TEXT, "properties": properties, "required": list(_NAMES[:4])}

    schemas = {f"schema-{number}": schema(0, refers=True) for number in range(800)}
    paths: dict[str, Any] = {}
    document: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": paths}
    document |= {"servers": [{"url": "https://api.github.com"}], "components": {"schemas": schemas}}
    written = len(json.dumps(document))
    path_parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "description": f"The {name}.", "schema": {"type": "string"}}
        for name in ("owner", "repo", "id")
    ]
    while written < size:
        number = len(paths)
        example = {"value": {f"key_{index}": dict.fromkeys(_NAMES, _TEXT) for index in range(7)}}
        item: dict[str, Any] = {}
        for method in ("get", "patch", "delete"):
            content = {
                "schema": {"$ref": f"#/components/schemas/schema-{number * 7 % 800}"},
                "examples": {"a": example},
            }
            item[method] = {
                "operationId": f"things-{number}/{method}",
                "summary": f"{method} a thing of kind {number}",
                "description": _TEXT * 10,
                "parameters": path_parameters,
                "responses": {"200": {"description": "Response", "content": {"application/json": content}}},
            }
        item["patch"]["requestBody"] = {"content": {"application/json": {"schema": schema(0, refers=False)}}}
        paths[f"/repos/{{owner}}/{{repo}}/things-{number}/{{id}}"] = item
        written += len(json.dumps(item))
    return document


def _write_yaml(document: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415  # only here

    text: str = yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
    return text


def measure_large() -> bool:
    """Load a document of 20 MB in JSON and in YAML; whether both keep the limits."""
    document = large_document(LARGE_BYTES)
    keeps = True
    writers: dict[str, Callable[[dict[str, Any]], str]] = {"json": json.dumps, "yaml": _write_yaml}
    for suffix, write in writers.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"large.{suffix}")
            path.write_text(write(document), encoding="utf-8")
            tools, seconds, megabytes = load(str(path), folder)
            size = path.stat().st_size / 1e6
        print(
            f"{size:.1f} MB of {suffix.upper()}, {tools} tools: {seconds:.1f} s ({seconds / LARGE_S:.0%} of {LARGE_S:g}"
            f" s), {megabytes:.0f} MB ({megabytes / LARGE_MB:.0%} of {LARGE_MB}), {megabytes / size:.1f} times its size"
        )
        keeps &= seconds <= LARGE_S and megabytes <= LARGE_MB
    return keeps


def measure(document: str) -> bool:
    """Load a document cold and from the cache; whether both keep the limits."""
    cold, cached, tools = [], [], 0
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            tools, seconds, _ = load(document, cache)
            cold.append(seconds)
            cached.append(load(document, cache)[1])
    first, second = statistics.median(cold), statistics.median(cached)
    print(
        f"{tools} tools: {first:.2f} s cold (at most {COLD_S:g}), {second:.2f} s from the cache (at most {CACHED_S:g})"
    )
    return first <= COLD_S and second <= CACHED_S


def main(documents: list[str]) -> int:
    if documents:
        return 0 if measure(documents[0]) else 1
    results = [measure(str(SHARED))] if SHARED.is_file() else []
    return 0 if all([*results, measure_large()]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
