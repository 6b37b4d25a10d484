"""Write docs/api.md: the public names of every public module, each with the first line of its docstring.

Run: python docs/make_api.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

TARGET = Path(__file__).with_name("api.md")
SOURCE = Path(__file__).resolve().parent.parent / "src"

SURFACE = ("", ".models", ".tools", ".policy", ".journals", ".testing", ".serve", ".evals", ".errors")
"""The modules that everything is imported from, as they are called within `taoloop`."""

HEAD = """\
# Public names

<!-- Written by docs/make_api.py; edit the docstrings, not this page. -->

Everything that a program needs is in `taoloop` or in one of eight modules: `taoloop.models`, `.tools`, `.policy`,
`.journals`, `.testing`, `.serve`, `.evals` and `.errors`. A name is public if it is in the `__all__` of one of them.
What is on this page only under "Other paths" is public, too. Everything else is internal: it may be renamed, moved or
removed in any release.
"""

OTHER = """\
## Other paths

Names for plug-ins, and paths that earlier releases documented. They stay until 1.0; what one of the modules above has,
import from there.
"""


def public_modules() -> list[str]:
    """The modules that declare `__all__`."""
    paths = sorted((SOURCE / "taoloop").rglob("*.py"), key=lambda path: path.with_suffix("").parts)
    declaring = (path for path in paths if "__all__" in path.read_text(encoding="utf-8"))  # the others are not parsed
    return [_module_name(path) for path in declaring if "__all__" in _definitions(path)]


def lazy_names(module: str) -> list[str]:
    """The names that a package imports when they are first used; none for any other module."""
    tables = [
        node.args[1]
        for node in ast.walk(_tree(_path(module)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_exports"
    ]
    return sorted(name for table in tables for names in ast.literal_eval(table).values() for name in names.split())


def page() -> str:
    """The whole page."""
    surface = [f"taoloop{name}" for name in SURFACE]
    known = {name for module in surface for name in import_module(module).__all__}
    parts = [HEAD, *(_section("##", module, import_module(module).__all__) for module in surface), OTHER]
    for module in public_modules():
        if module in surface:
            continue
        names = import_module(module).__all__
        parts.append(_section("###", module, [name for name in names if name not in known]))
        if repeated := [f"`{name}`" for name in names if name in known]:
            parts.append(f"Found above: {', '.join(repeated)}.\n")
    return "\n".join(parts)


def _section(level: str, module: str, names: list[str]) -> str:
    rows = "".join(f"| `{name}` | {_summary(module, name)} |\n" for name in names)
    table = f"\n| name | what it is |\n|---|---|\n{rows}" if rows else ""
    return f"{level} {module}\n\n{_first_sentence(ast.get_docstring(_tree(_path(module))) or '')}\n{table}"


def _summary(module: str, name: str) -> str:
    """The first line of a name's docstring, in the module that defines it."""
    definitions = _definitions(_path(module))
    if name in definitions:
        docstring = definitions[name]
        if docstring is None:
            raise ValueError(f"{module}.{name} has no docstring")
        return _first_sentence(docstring).replace("|", "\\|")
    origin = next((imported for imported, names in _imports(_path(module)) if name in names), None)
    if origin is None:
        raise ValueError(f"{module} exports {name} and does not define it")
    return _summary(origin, name)


def _first_sentence(docstring: str) -> str:
    return docstring.strip().partition("\n")[0]


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _path(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    package = path / "__init__.py"  # a folder alone may be left of a package that is a module now
    return package if package.is_file() else path.with_suffix(".py")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(path: Path) -> Iterator[tuple[str, set[str]]]:
    """The modules that a module imports names from, those for type checkers included, and these names."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, {alias.asname or alias.name for alias in node.names}


@cache
def _definitions(path: Path) -> dict[str, str | None]:
    """What a module defines at its top, with the docstrings; those of assignments are the texts that follow them."""
    body = _tree(path).body
    found: dict[str, str | None] = {}
    for node, following in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = ast.get_docstring(node)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = following.value.value if _is_text(following) else None
            case ast.Assign(targets=[ast.Tuple(elts=targets)]):  # `__all__` of a package with lazy exports
                found |= {target.id: None for target in targets if isinstance(target, ast.Name)}
    return found


def _is_text(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
