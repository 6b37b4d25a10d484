"""A run as a test case: a file of pytest beside the recorded run, which today's code must decide in the same way."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable

from taoloop.core.events import Event
from taoloop.core.stored_events import event_line

_EPOCH = (1980, 1, 1, 0, 0, 0)  # of files in an archive: the same run gives the same archive

_TEMPLATE = '''\
"""A recorded run as a test: today's code must decide as it did then. No model, tool or network is used.

Task: {task}
"""

from pathlib import Path

from taoloop.testing import assert_same_decisions

RUN = Path(__file__).with_name({file!r})


def test_{name}_is_decided_as_recorded() -> None:
    # With an agent, calls are also judged by its tools and its policy of now: assert_same_decisions(RUN, agent)
    assert_same_decisions(RUN)
'''


def case_name(run_id: str) -> str:
    """The run's id as a part of the name of a test."""
    return re.sub(r"\W+", "_", run_id, flags=re.ASCII).strip("_").lower() or "run"


def regression_archive(run_id: str, events: Iterable[Event], task: str) -> bytes:
    """A zip file with the test and the run; unpacked anywhere, `pytest test_NAME.py` runs it."""
    name = case_name(run_id)
    file = f"{name}.jsonl"
    words = " ".join("".join(char if char.isprintable() else " " for char in task).split())[:90]
    source = _TEMPLATE.format(task=words.replace("\\", "/").replace('"', "'"), file=file, name=name)
    lines = "".join(f"{event_line(run_id, event)}\n" for event in events)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in ((f"test_{name}.py", source), (file, lines)):
            archive.writestr(zipfile.ZipInfo(path, _EPOCH), text.encode("utf-8", "surrogatepass"), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
