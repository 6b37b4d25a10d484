"""A checkout of tau2-bench: where its parts are, its classes of tools and data, and its tasks.

Two layouts are known, with the same data: the repository (`src/tau2/domains/{retail,airline}/` with `tools.py`, and
`data/tau2/domains/{retail,airline}/` with `db.json` and `tasks.json`), and the package `inspect_evals`
(`inspect_evals/tau2/{retail,airline}/*AgentTools.py`, and `data/domains/{retail,airline}/` beside them). Only the tools
and the data models are executed; of what they import, small stand-ins take the place of whatever is not theirs.
"""

from __future__ import annotations

import gzip
import importlib
import json
import re
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from taoloop.evals.suites.tau_cards import DOMAINS


@dataclass(frozen=True, slots=True)
class TauTree:
    """Where the parts of a copy are."""

    package: str
    """The name of the package with the domains."""
    code: Path
    """Its folder."""
    domains: str
    """The package of a domain, within that package, before its name."""
    data: Path
    """The folder with a folder of each domain."""

    def tools_module(self, domain: str) -> str:
        """The module with the class of tools."""
        folder = self.code.joinpath(*filter(None, self.domains.split(".")), domain)
        names = [path.stem for path in sorted(folder.glob("*AgentTools.py"))] or ["tools"]
        return f"{self.package}.{self.domains}{'.' if self.domains else ''}{domain}.{names[0]}"


def find_tau2(root: Path) -> TauTree | None:
    """The parts of a copy at or below a folder, if there is one."""
    for code in (root / "src" / "tau2", root / "tau2", root / "inspect_evals" / "tau2", root):
        for data in (root / "data" / "tau2" / "domains", code / "data" / "domains"):
            if not all((data / domain / "tasks.json").is_file() for domain in DOMAINS):
                continue
            if all((code / "domains" / domain / "tools.py").is_file() for domain in DOMAINS):
                return TauTree("tau2", code, "domains", data)
            if all(any((code / domain).glob("*AgentTools.py")) for domain in DOMAINS):
                return TauTree("inspect_evals.tau2", code, "", data)
    return None


def read_data(path: Path) -> Any:
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    packed = path.with_name(path.name + ".gz")
    if not packed.is_file():
        raise LookupError(f"no {path} and no {packed}")
    return json.loads(gzip.decompress(packed.read_bytes()))


def tools_and_model(name: str) -> tuple[Any, Any]:
    """The class of tools in a module, and that of its database."""
    module = importlib.import_module(name)
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == name and kind.__name__.endswith("Tools"):
            return kind, typing.get_type_hints(kind)["db"]
    raise LookupError(f"{name} has no class of tools")


_FIRST_PERSON = (
    (r"\byou are\b", "I am"),
    (r"\band are\b", "and am"),
    (r"\byou're\b", "I'm"),
    (r"\byou were\b", "I was"),
    (r"\byou've\b", "I've"),
    (r"\byou'd\b", "I'd"),
    (r"\byourself\b", "myself"),
    (r"\byours\b", "mine"),
    (r"\byour\b", "my"),
    (r"\b(to|for|of|with|from|give|gives|tell|tells|help|helps|ask|asks|charge|compensate) you\b", r"\1 me"),
    (r"\byou\b", "I"),
)


def in_first_person(text: str) -> str:
    """Instructions to somebody who plays a customer, as that customer would write them."""
    for pattern, words in _FIRST_PERSON:
        text = re.sub(pattern, words, text, flags=re.IGNORECASE)
    return text


class _Tools:
    """In place of the base class of tools."""

    def __init__(self, db: Any = None) -> None:
        self.db = db


def _as_it_is(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """In place of a decorator with arguments."""
    return lambda function: function


class _StandIn(ModuleType):
    """A module that is not there: bases of models and tools, an exception, decorators, and names for anything else."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name.endswith("Error"):
            return type(name, (ValueError,), {})
        bases: dict[str, Any] = {"StoreModel": _Tools, "ToolKitBase": _Tools, "DB": BaseModel}
        return bases.get(name) or _Anything()


class _Anything:
    """Any name of a module that is not there: an enumeration, a decorator, a logger, a path."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _as_it_is(*args, **options)


def register_packages(tree: TauTree) -> None:
    """Make the packages known without executing their `__init__`, and stand-ins for what the tools do not need."""
    for name in [name for name in sys.modules if name == "tau2" or name.startswith(("tau2.", tree.package))]:
        del sys.modules[name]
    _register("inspect_evals", tree.code.parent)
    for name in (tree.package, *([f"{tree.package}.{tree.domains}"] if tree.domains else [])):
        _register(name, tree.code if name == tree.package else tree.code / tree.domains)
    folder = tree.code / tree.domains
    for domain in DOMAINS:
        package = tree.tools_module(domain).rpartition(".")[0]
        _register(package, folder / domain)
        sys.modules[f"{package}.utils"] = _StandIn(f"{package}.utils")
    for name in ("environment", "environment.db", "environment.toolkit"):
        sys.modules[f"{tree.package}.{name}"] = _StandIn(f"{tree.package}.{name}")
    utils = _StandIn(f"{tree.package}.utils")
    utils.__path__ = [str(tree.code / "utils")]
    sys.modules[utils.__name__] = utils
    for name in ("inspect_ai", "inspect_ai.tool", "inspect_ai.util", "loguru"):
        sys.modules[name] = _StandIn(name)


def _register(name: str, folder: Path) -> None:
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package
