from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from taoloop.core.text import RUN_LANGUAGE
from taoloop.tools.workspace.confined_dir import Opener, best_opener, open_stepwise
from taoloop.tools.workspace.workspace import Workspace


@pytest.fixture(params=["kernel", "stepwise"])
def opener(request: pytest.FixtureRequest) -> Opener:
    """Both ways to open a file; where the kernel has no openat2, both are the same."""
    return best_opener() if request.param == "kernel" else open_stepwise


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace's folder with a few files, and a secret beside it."""
    inside = tmp_path / "workspace"
    (inside / "notes").mkdir(parents=True)
    (inside / "notes" / "a.txt").write_text("Hello\nworld\n")
    (inside / "b.md").write_text("你好\n")
    (tmp_path / "secret.txt").write_text("secret")
    return inside


@pytest.fixture
def workspace(root: Path, opener: Opener) -> Workspace:
    """The workspace, once per way of opening."""
    return Workspace(root, opener=opener)


@pytest.fixture
def chinese_run() -> Iterator[None]:
    """The test is a part of a run in Chinese."""
    token = RUN_LANGUAGE.set("zh")
    yield
    RUN_LANGUAGE.reset(token)
