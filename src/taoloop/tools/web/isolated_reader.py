"""Has a page read by a program of its own, with bounds (`html.py`), so that no page can harm this process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from taoloop.errors import ToolError

READ_S = 10.0
"""What reading one page may take, in seconds; pages of 5 MB take 1 to 5 s."""

_MEGABYTES = 1024
_READERS = ThreadPoolExecutor(4, "taoloop-pages")  # their own: names are looked up in the threads of the loop
_READER = Path(__file__).with_name("html.py")
_KEPT = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # without these some Pythons do not start
_ENV = {name: os.environ[name] for name in _KEPT if name in os.environ}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The title of a page and its text."""

    title: str
    text: str
    is_cut: bool


def can_read() -> bool:
    """Whether the library that reads pages is installed."""
    return find_spec("resiliparse") is not None


async def read(body: bytes, *, charset: str = "", is_html: bool, url: str = "", links: bool, max_chars: int) -> Page:
    """The text of a page of HTML, or of plain text whose encoding is not known.

    Raises:
        ToolError: `unreadable`: it cannot be read within bounds.
    """
    spec = find_spec("resiliparse")
    places = (spec.submodule_search_locations if spec is not None else None) or ()
    asked = {
        "charset": charset,
        "is_html": is_html,
        "url": url,
        "links": links,
        "max_chars": max_chars,
        "megabytes": _MEGABYTES,
        "seconds": int(READ_S),
        "libraries": [str(Path(place).parent) for place in places],
    }
    given = json.dumps(asked).encode() + b"\n" + body
    return await asyncio.get_running_loop().run_in_executor(_READERS, _run, given)


def _run(asked: bytes) -> Page:
    try:
        done = subprocess.run(  # noqa: S603  # our own program, and nothing of the page in its arguments
            [sys.executable, "-I", str(_READER)],
            input=asked,
            capture_output=True,
            timeout=READ_S,
            check=False,
            env=_ENV,
        )
        if done.returncode == 0:
            return Page(**json.loads(done.stdout))
        why = f"its reader ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        why = f"that takes more than {READ_S:g} s"
    except OSError as error:
        why = f"its reader did not start ({error.strerror or error})"
    raise ToolError(
        f"The answer cannot be read as text: {why}.",
        code="unreadable",
        hint="Use another address; the same one will not do better.",
    )
