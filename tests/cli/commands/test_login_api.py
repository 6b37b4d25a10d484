"""`tao login` against a real authorization server; the test is the browser."""

from __future__ import annotations

import sqlite3
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from tests.shell import Shell
from tests.tools.oauth.authorization_server import CLIENT_ID, CLIENT_SECRET, AuthorizationServer


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as served:
        yield served


@pytest.fixture
def tools(server: AuthorizationServer, tmp_path: Path) -> Path:
    (tmp_path / "profile.json").write_text(server.document())
    file = tmp_path / "tools.yaml"
    file.write_text(
        f"""
tools:
  - openapi:
      document: profile.json
      name: profile
      base_url: {server.url}
      token_file: logins.db
      auth:
        person:
          grant: authorization_code
          client_id: {CLIENT_ID}
          client_secret: ${{PROFILE_SECRET}}
          token_url: {server.url}/token
"""
    )
    return file


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch, tao: Shell) -> None:
    """A browser whose person logs in at once."""

    def open_page(url: str) -> bool:
        threading.Thread(target=httpx2.get, args=(url,), kwargs={"follow_redirects": True}, daemon=True).start()
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    tao.env["PROFILE_SECRET"] = CLIENT_SECRET


@pytest.mark.usefixtures("browser")
def test_a_login_is_used_by_the_calls_of_this_machine_until_it_is_forgotten(tao: Shell, tools: Path) -> None:
    before = tao("call", "profile_me", "--tools", str(tools))
    assert before.code != 0
    assert "login_required" in before.out + before.err
    made = tao("login", str(tools), "profile")
    assert made.code == 0, made.err
    assert "profile: logged in." in made.err
    after = tao("call", "profile_me", "--tools", str(tools))
    assert after.code == 0, after.err
    assert "ann" in after.out
    assert "-secret" not in made.out + made.err + after.out + after.err
    assert tao("login", str(tools), "--user", "bob", "--forget").err.endswith("there were no tokens.\n")
    assert "the tokens are forgotten" in tao("login", str(tools), "--forget").err
    assert "login_required" in (again := tao("call", "profile_me", "--tools", str(tools))).out + again.err


def test_a_broken_file_is_removed_and_another_database_is_not(tao: Shell, tools: Path) -> None:
    tao.env["PROFILE_SECRET"] = CLIENT_SECRET
    file = tools.with_name("logins.db")
    file.write_bytes(b"broken" * 200)
    file.chmod(0o600)
    assert "cannot be used" in tao("call", "profile_me", "--tools", str(tools)).err
    ended = tao("login", str(tools), "--forget", code=0)
    assert "profile: the file with the tokens could not be read, and was removed." in ended.err
    assert "there were no tokens." in tao("login", str(tools), "--forget", code=0).err
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE notes (text TEXT)")
    file.chmod(0o600)
    assert "it is another database" in tao("login", str(tools), "--forget", code=1).err
    assert file.exists()


@pytest.mark.usefixtures("browser")
def test_what_is_refused_or_missing_is_said(tao: Shell, tools: Path, server: AuthorizationServer) -> None:
    server.person = None
    refused = tao("login", str(tools))
    assert refused.code == 1
    assert "access_denied" in refused.err
    assert "There are: profile." in tao("login", str(tools), "calendar").err
    empty = tools.with_name("empty.yaml")
    empty.write_text("tools: [calculator]\n")
    assert "Nothing here has a login" in tao("login", str(empty)).err
