"""Write docs/modules.md: every module of the package with the first line of its docstring.

Run: python docs/make_modules.py
"""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

TARGET = Path(__file__).with_name("modules.md")
SOURCE = Path(__file__).resolve().parent.parent / "src" / "taoloop"

HEAD = """\
# Modules

<!-- Written by docs/make_modules.py; edit the docstrings, not this page. -->

Every module with the first line of its docstring. The packages are in the order of [the layers](../ARCHITECTURE.md):
a module imports from its own layer and from those above it in this list.
"""
LAYERS = [
    "core",
    "policy",
    "dialects",
    "strategies",
    "models",
    "tools",
    "journals",
    "prompts",
    "runtime",
    "config",
    "evals",
    "serve",
    "testing",
    "cli",
]


def page() -> str:
    """The whole page.

    Raises:
        ValueError: a module has no docstring.
    """
    parts = [HEAD]
    for folder, modules in groupby(sorted(_modules(), key=_order), key=lambda path: path.parent):
        package = ".".join(("taoloop", *folder.relative_to(SOURCE).parts))
        rows = "".join(f"| `{path.stem}` | {_first_line(path)} |\n" for path in modules)
        parts.append(
            f"## {package}\n\n{_first_line(folder / '__init__.py')}\n\n| module | what it is |\n|---|---|\n{rows}"
        )
    return "\n".join(parts)


def _modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]


def _order(path: Path) -> tuple[int, tuple[str, ...], str]:
    folders = path.relative_to(SOURCE).parent.parts
    return (LAYERS.index(folders[0]) if folders else -1), folders, path.stem


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError(f"{path} has no docstring")
    return docstring.partition("\n")[0].replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
