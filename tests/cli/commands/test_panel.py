"""`tao panel`: the link that logs in, its people, and what is refused."""

from __future__ import annotations

import re
import signal
from contextlib import closing
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from urllib.parse import urlsplit

import pytest
from tests.serve.gateway.server_process import fetch_text
from tests.shell import Shell, until_line


def test_the_printed_links_log_in_and_a_signal_ends_it(tao: Shell) -> None:
    tao("run", "What is 17 times 23?", "--model", "offline")
    process = tao.start("panel", "--port", "0", "--user", "ann=approver", "--user", "bob=viewer")
    try:
        for name, role in (("ann", "approver"), ("bob", "viewer")):
            link = until_line(process, process.stdout, name).split(": ")[1].strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]{43}", link)
            page = log_in(link)
            assert "What is 17 times 23?" in page
            assert f" · {role}</span>" in page
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0


def log_in(link: str) -> str:
    """The list of runs, as the browser of this person sees it."""
    address = urlsplit(link)
    connection = HTTPConnection(address.netloc, timeout=20)
    with closing(connection):
        connection.request("GET", f"{address.path}?{address.query}", headers={"Sec-Fetch-Site": "none"})
        cookie = SimpleCookie(connection.getresponse().headers["Set-Cookie"])
    headers = {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookie.items())}
    status, text = fetch_text(f"http://{address.netloc}/runs", None, headers)
    assert status == 200
    return text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--user", "ann"), "NAME=ROLE"),
        (("--user", "ann=boss"), "Roles are: viewer, approver, admin."),
        (("--user", "ann=viewer", "--user", "ann=admin"), "Two people are called 'ann'."),
        (("--allow-host", "a b"), "host name"),
        (("--host", "203.0.113.7"), "cannot be listened on"),
    ],
)
def test_wrong_options_are_said(tao: Shell, options: tuple[str, ...], message: str) -> None:
    assert message in tao("panel", "--port", "0", *options, code=2).err


def test_a_missing_package_is_named_with_its_extra(tao: Shell) -> None:
    tao.write("sitecustomize.py", "import sys\nsys.modules['jinja2'] = None\n")
    refused = tao.fresh_process("panel", code=2, PYTHONPATH=str(tao.folder))
    assert "pip install 'taoloop[panel]'" in refused.one_line
