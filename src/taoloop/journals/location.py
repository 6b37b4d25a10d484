"""Where the journal of a user lies when nobody says otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ENV_VARIABLE = "TAOLOOP_DB"


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """The path of the database: `TAOLOOP_DB` if it is set, else `taoloop/runs.db` in the user's data folder.

    Nothing is created. `environ` is the process environment by default; a leading `~` is expanded.
    """
    chosen = (os.environ if environ is None else environ).get(ENV_VARIABLE, "").strip()
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs  # noqa: PLC0415  # only who has no path of their own pays for it

    return platformdirs.user_data_path("taoloop", appauthor=False) / "runs.db"
