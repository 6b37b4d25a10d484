"""The file of what was approved of one source of tools, and the folder where such files are."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taoloop.errors import ToolSourceError

_VERSION = 1


class PinFile:
    """One file of approved things by name, written as a whole or not at all.

    `source` names the source in errors, `label` in the file, under the field `owner`; `kind` is that of the things.
    """

    def __init__(self, path: Path, *, source: str, owner: str, label: str, kind: str) -> None:
        self.path = path
        self._source, self._owner, self._label, self._kind = source, owner, label, kind

    def known(self) -> dict[str, dict[str, Any]] | None:
        """What was approved, by name; None where nothing was approved yet.

        Raises:
            ToolSourceError: the file cannot be read. Nothing counts as approved then.
        """
        try:
            data = json.loads(self.path.read_text(encoding="utf-8"))
            if data["version"] != _VERSION:
                raise ValueError(f"it has the version {data['version']!r}")
            return {str(name): dict(pinned) for name, pinned in data[self._kind].items()}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            hint = f"Restore it, or delete it and approve again what the {self._owner} has now."
            raise self._error(f"its file of approved {self._kind} cannot be read: {error}.", hint) from error

    def keep(self, approved: Mapping[str, Mapping[str, Any]]) -> None:
        """Approve exactly these, in the place of all before.

        Raises:
            ToolSourceError: they cannot be written.
        """
        data = {"version": _VERSION, self._owner: self._label, self._kind: dict(approved)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".pins-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file, ensure_ascii=False, indent=1)
            Path(name).replace(self.path)
        except OSError as error:
            message = f"its file of approved {self._kind} cannot be written: {error.strerror or error}."
            raise self._error(message, "Correct its permissions, or name another folder as `pins`.") from error

    def _error(self, message: str, hint: str) -> ToolSourceError:
        return ToolSourceError(message, source=self._source, place=str(self.path), hint=hint)


def pins_folder(name: str) -> Path:
    """The folder `name` for files of pins: beside the database, or in the user's data."""
    database = os.environ.get("TAOLOOP_DB", "").strip()
    if database and not database.startswith(("postgres://", "postgresql://")):  # else it is no file
        return Path(os.path.expanduser(database)).parent / name  # noqa: PTH111  # raises nothing
    import platformdirs  # noqa: PLC0415  # only who has no path of their own pays for it

    return Path(platformdirs.user_data_path("taoloop", appauthor=False)) / name
