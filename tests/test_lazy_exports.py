"""The types in the signatures of public names can be evaluated, although the modules import them late."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import httpx2
import pytest
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

import taoloop
import taoloop.tools
from taoloop.core.agent_spec import Limits
from taoloop.journals import Journal
from taoloop.lazy_exports import lazy_types
from taoloop.runtime import Result

PACKAGES = (
    "taoloop",
    "taoloop.config",
    "taoloop.core",
    "taoloop.journals",
    "taoloop.models",
    "taoloop.policy",
    "taoloop.runtime",
    "taoloop.strategies",
    "taoloop.testing",
    "taoloop.tools",
)


def _annotated(public: Any) -> Iterator[Any]:
    """A public function; or a class with its public methods and properties."""
    if inspect.isfunction(public):
        yield public
    if not inspect.isclass(public):
        return
    yield public
    for name, member in vars(public).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            yield function


UNLOADED: dict[str, Any] = {
    "httpx2": httpx2,
    "ssl": ssl,
    "Path": Path,
    **{name: getattr(taoloop.tools, name) for name in ("LoadResult", "McpServer")},
    "MeterProvider": MeterProvider,
    "TracerProvider": TracerProvider,
}
"""Types that their modules import for type checkers alone, because few programs need what they belong to."""


@pytest.mark.parametrize("package", PACKAGES)
def test_the_type_hints_of_public_names_resolve(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        for annotated in _annotated(getattr(module, name)):
            get_type_hints(annotated, localns=UNLOADED)


def test_the_hints_of_an_agent_are_the_types_themselves() -> None:
    hints = get_type_hints(taoloop.Agent.run)
    assert (get_origin(hints["return"]), hints["limits"]) == (Result, Limits | None)
    assert Journal in get_type_hints(taoloop.Agent)["journal"].__args__
    assert get_type_hints(taoloop.Agent.__init__)["journal"] == get_type_hints(taoloop.Agent)["journal"]


def test_a_lazy_type_takes_part_in_unions_and_generics() -> None:
    def count(journals: int) -> int:
        return journals

    count.__annotations__ = {"journals": "list[Journal] | None"}
    assert get_type_hints(count, lazy_types({"journals": "Journal"})) == {"journals": list[Journal] | None}
