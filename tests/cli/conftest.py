from pathlib import Path

import pytest
from tests.shell import Shell


@pytest.fixture
def tao(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
