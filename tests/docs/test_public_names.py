"""What the pages import is public, and what is public is on the page of public names."""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest
from tests.docs.fenced import PAGES, ROOT, blocks


def _load_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _load_maker()
PUBLIC: dict[str, list[str]] = {module: import_module(module).__all__ for module in MAKER.public_modules()}
SOURCES = {
    **{page: "\n".join(block.text for block in blocks(page) if block.language == "python") for page in PAGES},
    **{
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / "examples").rglob("*.py")
        if "skills" not in path.parts
    },
}


def _imports(source: str) -> Iterator[tuple[str, str]]:
    """The modules of taoloop that a source imports, with the names; a whole module has an empty name."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "taoloop":
                yield from ((module, alias.name) for alias in names)
            case ast.Import(names=names):
                yield from ((alias.name, "") for alias in names if alias.name.split(".")[0] == "taoloop")


SURFACE = tuple(f"taoloop{name}" for name in MAKER.SURFACE)


@pytest.mark.parametrize("page", [page for page, source in SOURCES.items() if "taoloop" in source])
def test_a_page_imports_from_the_modules_of_the_surface_only(page: str) -> None:
    for module, name in _imports(SOURCES[page]):
        assert module in SURFACE, f"{page}: import from taoloop or one of its eight modules, not from {module}"
        assert not name or name in PUBLIC[module] or f"{module}.{name}" in SURFACE, (
            f"{page}: {module}.{name} is internal"
        )


def test_the_surface_is_taoloop_and_at_most_eight_modules() -> None:
    assert SURFACE[0] == "taoloop"
    assert len(SURFACE) <= 9
    assert set(SURFACE) <= set(PUBLIC)


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_found_whatever_modules_are_loaded(package: str) -> None:
    module = import_module(package)
    for submodule in pkgutil.iter_modules(getattr(module, "__path__", ())):
        import_module(f"{package}.{submodule.name}")  # it becomes an attribute of the package
    for name in PUBLIC[package]:
        value = getattr(module, name)  # a module that moved can be called as the function whose name it has
        assert callable(value) or not isinstance(value, ModuleType), f"{package}.{name} is hidden by a module"


@pytest.mark.parametrize("package", [package for package in PUBLIC if hasattr(import_module(package), "__getattr__")])
def test_a_package_lists_its_public_names_and_has_no_others(package: str) -> None:
    module = import_module(package)
    assert {name for name in dir(module) if not name.startswith("_")} >= set(PUBLIC[package])
    with pytest.raises(AttributeError, match=re.escape(f"module {package!r} has no attribute 'nonsense'")):
        _ = module.nonsense


def test_the_page_of_public_names_is_current() -> None:
    """After a change: python docs/make_api.py."""
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == MAKER.page(), "run: python docs/make_api.py"
