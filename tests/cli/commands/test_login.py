"""`tao login`: which servers it can log in to, and how it forgets them (the login itself: tests/tools/mcp)."""

from __future__ import annotations

import json

import httpx2
import pytest
from tests.shell import Shell
from tests.tools.mcp.login_server import guarded_server


def test_the_command_logs_in_in_a_browser_and_forgets(tao: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def browse(url: str) -> bool:
        with httpx2.Client(follow_redirects=True) as client:
            return client.get(url).status_code == 200

    monkeypatch.setattr("webbrowser.open", browse)  # there is no browser in a test
    with guarded_server() as (url, accounts):
        tools = {"tools": [{"mcp": {"name": "shop", "url": url, "oauth": {"tokens": "tokens.json"}}}]}
        tao.write("tools.yaml", json.dumps(tools))
        ended = tao("login", "tools.yaml", "shop")
        assert "shop: log in at http://127.0.0.1" in ended.err
        assert "shop: logged in." in ended.err
        assert accounts.issued[0] in (tao.folder / "tokens.json").read_text()
        assert not [token for token in accounts.issued if token in ended.err + ended.out]
        assert "shop.stock" in tao("tools", "tools.yaml").out
    assert "shop: the tokens are forgotten." in tao("login", "tools.yaml", "--forget").err
    assert accounts.issued[0] not in (tao.folder / "tokens.json").read_text()
    tao.write("tokens.json", "{broken")
    ended = tao("login", "tools.yaml", "--forget", code=0)
    assert "shop: the file with the tokens could not be read, and was removed." in ended.err
    assert not (tao.folder / "tokens.json").exists()


def test_the_command_names_what_it_can_log_in_to(tao: Shell) -> None:
    tools = {"tools": [{"mcp": {"name": "shop", "url": "http://127.0.0.1:9/mcp", "oauth": {}}}]}
    tao.write("tools.yaml", json.dumps(tools))
    assert "There are: shop." in tao("login", "tools.yaml", "other").err
    tao.write("none.yaml", "tools: [calculator]\n")
    assert "Nothing here has a login" in tao("login", "none.yaml").err
