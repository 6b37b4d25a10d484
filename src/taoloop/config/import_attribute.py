"""What `module:attribute` names, and errors that say where a user's own code went wrong."""

from __future__ import annotations

import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taoloop.config.document import translate
from taoloop.errors import AgentFileError, TaoError, ToolDefinitionError
from taoloop.translation import mark

_PACKAGE = __name__.partition(".")[0]
_PACKAGE_FOLDER = Path(__file__).parents[1]
_LIBRARY_FOLDERS = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


def load_attribute(source: str, folder: Path) -> Any:
    """What `module:attribute` names; `folder` is put on the import path, unless the module is taoloop's own.

    Raises:
        AgentFileError: there is no such module or attribute, importing it raises, or it is not the module in `folder`,
            because one of the same name was loaded before.
    """
    module_name, _, attribute = source.partition(":")
    top_name = module_name.partition(".")[0]
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise AgentFileError(translate("this is not of the form module:attribute."), path=source, hint=_instead(source))
    if top_name != _PACKAGE and str(folder) not in sys.path:  # files that ship would hide the user's of the same name
        sys.path.insert(0, str(folder))
    with error_context(source):
        target: Any = importlib.import_module(module_name)
    _require_own(source, sys.modules[top_name], folder)
    for part in attribute.split("."):
        try:
            target = getattr(target, part)
        except AttributeError as error:
            names = ", ".join(name for name in vars(target) if not name.startswith("_"))[:200]
            text = mark("the module {module!r} has no attribute {attribute!r}.")
            raise AgentFileError(
                translate(text, module=module_name, attribute=attribute),
                path=getattr(sys.modules[module_name], "__file__", None) or source,
                hint=translate("It has: {names}.", names=names) if names else "",
            ) from error
    return target


def _require_own(source: str, module: Any, folder: Path) -> None:
    """Report that `folder` has another module of this name: two folders with a `tools.py` each, in one process."""
    loaded = Path(getattr(module, "__file__", None) or folder / module.__name__)
    own = next(filter(Path.is_file, (folder / f"{module.__name__}.py", folder / module.__name__ / "__init__.py")), None)
    if own is None or own.resolve() == loaded.resolve():
        return
    text = mark("the module {module!r} was loaded from {loaded} before, and {own} has the same name.")
    hint = translate("Rename one of the two.")
    raise AgentFileError(translate(text, module=module.__name__, loaded=loaded, own=own), path=source, hint=hint)


def _instead(source: str) -> str:
    """What may be meant by the path of a module."""
    path, _, attribute = source.partition(":")
    parts = Path(path).with_suffix("").parts if path.endswith(".py") else ()
    if not attribute or not parts or not all(part.isidentifier() for part in parts):
        return ""
    return translate("Write {name}.", name=f"{'.'.join(parts)}:{attribute}")


@contextmanager
def error_context(source: str) -> Iterator[None]:
    """Turn what a user's code raises into an AgentFileError that says where."""
    module = source.partition(":")[0]
    try:
        yield
    except AgentFileError:
        raise
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _raised(source, error) from error
        text = mark("Run this in the folder of the module (here: {folder}), or install it.")
        hint = _instead(source) or translate(text, folder=Path.cwd())
        message = translate("there is no module {name!r}.", name=error.name)
        raise AgentFileError(message, path=source, hint=hint) from error
    except (Exception, SystemExit) as error:
        raise _raised(source, error) from error


@contextmanager
def definition_context(target: object) -> Iterator[None]:
    """Let an error about a function that is no tool say where the function is."""
    try:
        yield
    except ToolDefinitionError as error:
        if not inspect.isfunction(target):
            raise
        code = target.__code__
        raise AgentFileError(error.message, path=code.co_filename, line=code.co_firstlineno, hint=error.hint) from error


def _raised(source: str, error: BaseException) -> AgentFileError:
    path, line = _user_line(error) or (source, 0)
    if isinstance(error, SyntaxError) and error.filename:
        path, line = error.filename, error.lineno or 0
    if isinstance(error, TaoError):
        return AgentFileError(error.message, path=path, line=line, hint=error.hint)
    reason = str(error.msg if isinstance(error, SyntaxError) else error)[:300]
    text = mark("loading {source!r} raised {kind}: {reason}")
    message = translate(text, source=source, kind=type(error).__name__, reason=reason)
    return AgentFileError(message, path=path, line=line)


def _user_line(error: BaseException) -> tuple[str, int] | None:
    """The innermost line of the user's own code; without one, of a library, and at last of taoloop itself."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    frames = [frame for frame in frames if frame.filename not in (__file__, importlib.__file__)]
    of_others = [frame for frame in frames if not Path(frame.filename).is_relative_to(_PACKAGE_FOLDER)]
    of_user = [frame for frame in of_others if not any(map(Path(frame.filename).is_relative_to, _LIBRARY_FOLDERS))]
    chosen = of_user or of_others or frames
    return (chosen[-1].filename, chosen[-1].lineno or 0) if chosen else None
