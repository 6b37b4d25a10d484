"""The settings of a folder of skills: where they are, what their scripts may do, and the bounds."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from taoloop.core.cards.tool_card import Tier
from taoloop.tools.settings_check import Bytes, Count, Seconds, check_fields, check_path

if TYPE_CHECKING:
    from taoloop.tools.toolbox import LoadResult


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """A folder with one folder for each skill, in the open Agent Skills format (https://agentskills.io/specification).

    `Agent(tools=[SkillFolder("skills")])` offers them. A skill is untrusted until its content was approved
    (`tao tools FILE --approve-changes`, or `approve_skills`), and off while its content is not the approved one.

    Raises:
        ConfigError: a field is not valid; the error names it.
    """

    path: str | Path
    """The folder that holds the folders of skills. Symbolic links in it are not followed."""

    _: KW_ONLY

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,32}$")] = ""
    """Prefix of the names of the tools (`NAME_load_skill`), to distinguish several folders."""

    tier: Tier = "destructive"
    """What running a script of these skills can do to the world. A skill itself cannot declare that."""

    network: bool = False
    """Whether scripts have the machine's network, its local services included. Without it they have none at all."""

    workspace: str | Path | None = None
    """The folder that scripts may change; None: each run has an empty one that is gone afterwards."""

    timeout_s: Seconds = 60.0
    """How long a script may run, in seconds."""

    pins: str | Path | None = None
    """The folder where approvals are kept; None: `skill-pins` beside the database or in the user's data."""

    max_skills: Count = 500
    """Skills beyond this number, in the order of their names, are left out."""

    max_files: Count = 1_000
    """A skill with more files and folders is left out."""

    max_skill_bytes: Bytes = 20_000_000
    """A skill whose files are larger together is left out."""

    def __post_init__(self) -> None:
        """Check the settings."""
        check_path("SkillFolder", "path", self.path)
        for name in ("pins", "workspace"):
            if getattr(self, name) is not None:
                check_path("SkillFolder", name, getattr(self, name))
        check_fields(self, "SkillFolder")

    @property
    def folder(self) -> Path:
        """The absolute path of the folder, with `~` expanded."""
        return Path(self.path).expanduser().resolve()

    @property
    def identity(self) -> str:
        """A name of the folder for files: a part of the SHA-256 of its path."""
        return hashlib.sha256(str(self.folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def load_tools(self) -> LoadResult:
        """The tools of the folder (`skill_tools`); called by the agent that has it among its tools."""
        loader = importlib.import_module("taoloop.tools.skills.load")  # which knows the settings, as its tools do
        loaded: LoadResult = loader.skill_tools(self)
        return loaded
