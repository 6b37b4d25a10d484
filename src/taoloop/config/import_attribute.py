"""What `module:attribute` names, and errors that say where a user's own code went wrong."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taoloop.config.document import translate
from taoloop.errors import AgentFileError
from taoloop.translation import mark


def load_attribute(source: str, folder: Path) -> Any:
    """What `module:attribute` names; `folder` is put on the import path.

    Raises:
        AgentFileError: there is no such module or attribute, or importing it raises.
    """
    module_name, _, attribute = source.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise AgentFileError(translate("this is not of the form module:attribute."), path=source, hint=_instead(source))
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    with error_context(source):
        target: Any = importlib.import_module(module_name)
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


def _raised(source: str, error: BaseException) -> AgentFileError:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen")]
    inner_frames = [f for f in frames if f.filename != __file__ and not f.filename.endswith("importlib/__init__.py")]
    path, line = (inner_frames[-1].filename, inner_frames[-1].lineno or 0) if inner_frames else (source, 0)
    if isinstance(error, SyntaxError) and error.filename:
        path, line = error.filename, error.lineno or 0
    reason = str(error.msg if isinstance(error, SyntaxError) else error)[:300]
    text = mark("loading {source!r} raised {kind}: {reason}")
    message = translate(text, source=source, kind=type(error).__name__, reason=reason)
    return AgentFileError(message, path=path, line=line)
