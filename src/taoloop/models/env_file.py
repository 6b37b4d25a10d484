"""A `.env` file: variables beside those of the process, which take precedence.

Nothing is put into the process's own environment, so no tool inherits a key.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from taoloop.errors import EnvFileError
from taoloop.translation import Translator, mark

translate = Translator("models")

ENV_FILE = ".env"


def load_environment(folder: Path | None = None, *, report: Callable[[str], None]) -> Mapping[str, str]:
    """The variables of the process over those of the `.env` file in a folder, by default the current one.

    `report` gets a sentence about each line that is not NAME=value; such lines are left out.

    Raises:
        EnvFileError: there is a `.env` file that cannot be read.
    """
    return _with_file((folder or Path.cwd()) / ENV_FILE, report)


def load_environment_of_script(*, report: Callable[[str], None]) -> Mapping[str, str]:
    """The same for a program: the file in the current folder, else the one beside its main script.

    Raises:
        EnvFileError: there is a `.env` file that cannot be read.
    """
    path = Path.cwd() / ENV_FILE
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script and not os.path.lexists(path):
        path = Path(script).resolve().parent / ENV_FILE
    return _with_file(path, report)


def _with_file(path: Path, report: Callable[[str], None]) -> Mapping[str, str]:
    text = read_dotenv(path)
    if text is None:
        return os.environ
    from dotenv import dotenv_values  # noqa: PLC0415  # only where there is a file
    from dotenv.parser import parse_stream  # noqa: PLC0415

    good = []
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            message = mark("{path}:{line}: this is not NAME=value; the line was ignored.")
            report(translate(message, path=path, line=binding.original.line))
        else:
            good.append(binding.original.string)
    values = dotenv_values(stream=io.StringIO("".join(good)))
    return {**{name: value for name, value in values.items() if value is not None}, **os.environ}


def read_dotenv(path: Path) -> str | None:
    """The content of a `.env` file, None where there is none.

    Raises:
        EnvFileError: it is there and is no regular file, or cannot be read as UTF-8 text.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # opening a FIFO would wait for its writer
            text, hint = mark("{path}: it is {kind}, not a file."), mark("Move it away, or rename it.")
            raise _error(text, hint, path=path, kind=_kind(mode))
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        if not path.is_symlink():
            return None
        text, hint = mark("{path}: it is a link to a file that does not exist."), mark("Repair or remove the link.")
        raise _error(text, hint, path=path) from error
    except UnicodeDecodeError as error:
        text, hint = mark("{path}: this is not UTF-8 text (byte {byte})."), mark("Save it as UTF-8, or move it away.")
        raise _error(text, hint, path=path, byte=error.start) from error
    except OSError as error:
        text, hint = mark("{path}: it cannot be read ({reason})."), mark("Correct its permissions, or move it away.")
        raise _error(text, hint, path=path, reason=error.strerror or error) from error


def _error(text: str, hint: str, **values: object) -> EnvFileError:
    return EnvFileError(translate(text, **values), hint=translate(hint))


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return translate("a folder")
    return translate("a pipe") if stat.S_ISFIFO(mode) else translate("a device or socket")
