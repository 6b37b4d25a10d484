"""A published JSON Schema and the script that makes it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import jsonschema_rs
import yaml
from tests.docs.fenced import ROOT


@dataclass(frozen=True)
class Published:
    """The schema in `docs/NAME`, made by `docs/SCRIPT`."""

    name: str
    script: str

    @property
    def text(self) -> str:
        """The file."""
        return (ROOT / "docs" / self.name).read_text(encoding="utf-8")

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    def fits(self, content: str) -> bool:
        """Whether a YAML text is what the schema describes."""
        return jsonschema_rs.validator_for(self.schema).is_valid(yaml.safe_load(content))

    @cached_property
    def maker(self) -> ModuleType:
        """The script, as a module."""
        path = ROOT / "docs" / self.script
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def require_current(self) -> None:
        """Fail where the file is not what the script makes now."""
        assert self.text == self.maker.page(), f"run: python docs/{self.script}"
