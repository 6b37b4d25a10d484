"""What was made of documents once, kept in the user's cache folder: reading a large one takes most of a second.

A file there is named by a digest over all that it was made from, so it is never stale; it may be deleted at any time.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

_MOST_FILES = 64


class PlanCache:
    """A folder with values as JSON. What cannot be read or written there is as if it were not: nothing fails."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = cache_folder() / "openapi" if folder is None else folder

    def get(self, key: str) -> Any:
        """What was kept under this key, None if nothing was."""
        try:
            return json.loads(self._path(key).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    def put(self, key: str, values: Any) -> None:
        """Keep values under a key."""
        with suppress(OSError, ValueError, TypeError, RecursionError):  # a cache only saves time
            written = json.dumps(values, separators=(",", ":")).encode()
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
            part = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(written)
                part.replace(self._path(key))
            except OSError:
                part.unlink()
                raise
            self._prune()

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _prune(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[_MOST_FILES:]:
            path.unlink(missing_ok=True)


def cache_folder() -> Path:
    """The folder of taoloop in the user's cache, as the system has it."""
    import platformdirs  # noqa: PLC0415  # only where nobody names a folder

    return platformdirs.user_cache_path("taoloop", appauthor=False)
