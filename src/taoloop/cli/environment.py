"""The environment of a command: the process's variables over those of a `.env` file in the current folder."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path

from taoloop.cli.streams import say
from taoloop.errors import EnvFileError

ENV_FILE = ".env"


def environment(folder: Path | None = None) -> Mapping[str, str]:
    """The variables to work with. Nothing is put into the process's own environment, so no tool inherits a key.

    Raises:
        EnvFileError: there is a `.env` file that cannot be read.
    """
    path = (folder or Path.cwd()) / ENV_FILE
    text = env_text(path)
    if text is None:
        return os.environ
    from dotenv import dotenv_values  # noqa: PLC0415  # only where there is a file
    from dotenv.parser import parse_stream  # noqa: PLC0415

    good = []
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            say(f"{path}:{binding.original.line}: this is not NAME=value; the line was ignored.")
        else:
            good.append(binding.original.string)
    values = dotenv_values(stream=io.StringIO("".join(good)))
    return {**{name: value for name, value in values.items() if value is not None}, **os.environ}


def env_text(path: Path) -> str | None:
    """The content of a `.env` file, None where there is none.

    Raises:
        EnvFileError: it is there and cannot be read as UTF-8 text.
    """
    try:
        if path.is_dir():  # some name their virtual environment so
            return None
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise EnvFileError(
            f"{path}: this is not UTF-8 text (byte {error.start}).", hint="Save it as UTF-8, or move it away."
        ) from error
    except OSError as error:
        reason = error.strerror or error
        raise EnvFileError(
            f"{path}: it cannot be read ({reason}).", hint="Correct its permissions, or move it away."
        ) from error
