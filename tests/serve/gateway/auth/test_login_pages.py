"""Logins of people through the gateway, with a real authorization server and browsers that keep cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from tests.serve.gateway.clients import ask
from tests.serve.gateway.conftest import Running, agent, client, config_of, gateway, model_env, upstream
from tests.tools.oauth.authorization_server import CLIENT_ID, CLIENT_SECRET, AuthorizationServer

from taoloop.core.stored_events import event_record
from taoloop.errors import AgentFileError
from taoloop.serve.gateway.auth.accounts import account_of, person_of, without_login_links
from taoloop.serve.gateway.auth.keys import ApiKey, digest_of
from taoloop.serve.gateway.config.gateway_file import load_config
from taoloop.tools.openapi import OpenapiSource, openapi_tools

ME = {"tool_calls": [{"name": "profile_me", "args": {}}]}
KEYS = {"shop": "key-of-the-shop-0123456789", "bank": "key-of-the-bank-0123456789"}


@dataclass
class Served:
    """A gateway whose agent calls an API in the name of people."""

    running: Running
    server: AuthorizationServer
    asked: list[Any]
    browsers: list[httpx2.Client] = field(default_factory=list)

    def browser(self) -> httpx2.Client:
        """A browser of its own, with its cookies; it is closed at the end."""
        self.browsers.append(httpx2.Client())
        return self.browsers[-1]

    def chat(self, user: str, key: str = "shop", **options: Any) -> str:
        """Ask for a user."""
        made = client(self.running, api_key=KEYS[key])
        messages = options.pop("messages", None) or ask("Who am I?")
        reply = made.chat.completions.create(model="assistant", messages=messages, user=user, **options)
        if options.get("stream"):
            return "".join(chunk.choices[0].delta.content or "" for chunk in reply if chunk.choices)
        return reply.choices[0].message.content or ""

    def link(self, answer: str) -> str:
        """The address of a login in an answer."""
        match = re.search(r"http://\S+/oauth/login/[\w-]+", answer)
        assert match, answer
        return match[0]

    def log_in(self, link: str, person: str, browser: httpx2.Client | None = None) -> httpx2.Response:
        """What a person does in a browser; gives the last page."""
        browser = browser or self.browser()
        self.server.person = person
        assert "It was me" in browser.get(link).text
        return browser.post(link, follow_redirects=True)


def source_of(server: AuthorizationServer, folder: Path) -> OpenapiSource:
    """The API of a server as a source of tools."""
    return OpenapiSource(
        document=server.document(),
        name="profile",
        base_url=server.url,
        auth={"person": server.settings()},
        token_file=str(folder / "logins.db"),
    )


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with AuthorizationServer() as server:
        keys = tuple(ApiKey(name=name, digest=digest_of(key)) for name, key in KEYS.items())
        asked: list[Any] = []

        def reply(body: Any) -> Any:
            asked.append(body)
            last = body["messages"][-1]
            return f"It says: {last['content']}" if last["role"] == "tool" else ME

        with upstream(*[reply] * 20) as model:
            made = agent(model, tools=list(openapi_tools(source_of(server, tmp_path)).tools))
            with gateway(config_of(made, keys=keys)) as running:
                made_served = Served(running, server, asked)
                yield made_served
                for browser in made_served.browsers:
                    browser.close()


def test_a_user_without_a_login_gets_an_address_and_after_it_the_answer_in_their_name(served: Served) -> None:
    answer = served.chat("ann")
    link = served.link(answer)
    page = served.log_in(link, "ann-at-profile")
    assert page.status_code == 200
    assert "You are logged in to profile" in page.text
    assert '"name":"ann-at-profile"' in served.chat("ann").replace(" ", "")
    for body in served.asked:  # the model read that a login was needed, and never the address
        assert "/oauth/login" not in str(body)
        assert "-secret" not in str(body)
    assert "login_required" in str(served.asked)
    records = str([event_record(trace.run_id, event) for trace in served.running.traces() for event in trace.events])
    assert "/oauth/login" not in records
    assert "-secret" not in records
    assert link.rpartition("/")[2] not in str(served.running.logged)


def test_users_and_keys_never_share_a_login(served: Served) -> None:
    served.log_in(served.link(served.chat("ann")), "ann")
    assert "need your login" in served.chat("bob")
    assert "need your login" in served.chat("ann", key="bank")  # another client's user of the same name
    assert "need your login" in served.chat("")
    served.log_in(served.link(served.chat("ann", key="bank")), "ann-of-the-bank")
    assert '"ann"' in served.chat("ann")
    assert '"ann-of-the-bank"' in served.chat("ann", key="bank")


def test_a_streamed_answer_ends_with_the_address(served: Served) -> None:
    answer = served.chat("ann", stream=True)
    assert answer.startswith("It says")
    assert served.link(answer)


def test_an_address_that_a_client_sends_back_is_not_shown_to_the_model(served: Served) -> None:
    answer = served.chat("ann")
    messages = [*ask("Who am I?"), {"role": "assistant", "content": answer}, *ask("I am logged in.")]
    served.chat("ann", messages=messages)
    assert "/oauth/login" not in str(served.asked[-1])
    assert without_login_links("see https://a.example/oauth/login/x-1_2.") == "see […]."


def test_opening_the_address_begins_nothing_and_it_works_once(served: Served) -> None:
    link, browser = served.link(served.chat("ann")), served.browser()
    for _ in range(3):  # a chat program that previews it
        assert "ann has asked an agent" in httpx2.get(link).text
    assert httpx2.head(link).status_code == 200
    assert not served.server.asked
    assert httpx2.post(link, headers={"Origin": "https://evil.example"}).status_code == 403
    served.log_in(link, "ann", browser)
    for again in (browser.get(link), browser.post(link)):
        assert again.status_code == 400
        assert "used before" in again.text


def test_a_forged_replayed_or_carried_away_callback_gives_no_login(served: Served) -> None:
    link, browser = served.link(served.chat("ann")), served.browser()
    began = browser.post(link)
    assert began.status_code == 303
    back = httpx2.get(began.headers["location"]).headers["location"]
    fields = dict(parse_qsl(urlsplit(back).query))
    forged = browser.get(back.replace(fields["state"], "forged"))
    assert forged.status_code == 400
    assert browser.head(back).status_code == 200  # uses nothing up
    assert "another browser" in httpx2.get(back).text  # the victim's browser has no cookie of this login
    assert "used before" in browser.get(back).text
    assert "need your login" in served.chat("ann")
    cookie = began.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie

    link = served.link(served.chat("ann"))
    page = served.log_in(link, "ann", browser)
    assert "You are logged in" in page.text
    replayed = browser.get(str(page.url))
    assert replayed.status_code == 400


def test_what_the_server_refuses_is_shown_in_the_language_of_the_browser_and_escaped(served: Served) -> None:
    link = served.link(served.chat("<b>ann</b>"))
    page = httpx2.get(link, headers={"Accept-Language": "zh-CN"})
    assert "<b>" not in page.text.replace("<body>", "")
    assert "登录" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    served.server.person = None
    refused = served.browser().post(link, follow_redirects=True)
    assert refused.status_code == 400
    assert "access_denied" in refused.text


def test_without_a_public_address_other_machines_get_none(served: Served) -> None:
    made = client(served.running, api_key=KEYS["shop"], default_headers={"Host": "agents.example"})
    reply = made.chat.completions.create(model="assistant", messages=ask("Who am I?"), user="ann")
    assert "server.public_url" in (reply.choices[0].message.content or "")


def test_accounts_of_different_clients_are_different() -> None:
    accounts = [
        account_of(owner, user) for owner in ("", "a", "a/b", "jwt:ann") for user in ("", "a", "b/c", "x" * 400)
    ]
    assert len(set(accounts)) == len(accounts) - 3  # a token is one person, whatever the request says
    assert account_of("", "") == ""
    assert account_of("a/b", "c") != account_of("a", "b/c")
    assert person_of(account_of("shop", "ann/é")) == "ann/é"
    assert person_of(account_of("jwt:ann", "eve")) == "ann"


def test_a_login_that_an_agent_within_the_agent_needs_is_shown_too(tmp_path: Path) -> None:
    with AuthorizationServer() as server:
        tools = openapi_tools(source_of(server, tmp_path)).tools
        with upstream(
            {"tool_calls": [{"name": "helper", "args": {"task": "Who am I?"}}]}, ME, "Log in.", "Log in, it says."
        ) as model:
            helper = agent(model, name="helper", tools=list(tools)).as_tool(purpose="Looks things up.")
            with gateway(config_of(agent(model, tools=[helper]))) as running:
                reply = client(running).chat.completions.create(
                    model="assistant", messages=ask("Who am I?"), user="ann"
                )
                link = Served(running, server, []).link(reply.choices[0].message.content or "")
                assert "ann has asked" in httpx2.get(link).text
                assert [trace.user for trace in running.traces()] == ["ann", "ann"]


def test_a_gateway_file_names_the_login_and_the_public_address(tmp_path: Path) -> None:
    with AuthorizationServer() as server, upstream(ME, "Log in.") as model:
        (tmp_path / "profile.json").write_text(server.document())
        (tmp_path / "gateway.yaml").write_text(GATEWAY.format(url=server.url, client_id=CLIENT_ID))
        env = {**model_env(model), "PROFILE_SECRET": CLIENT_SECRET}
        config = load_config(tmp_path / "gateway.yaml", env=env)
        assert config.public_url == "https://agents.example/base"
        with gateway(config) as running:
            reply = client(running).chat.completions.create(model="assistant", messages=ask("Who am I?"))
            content = reply.choices[0].message.content or ""
            [login] = reply.model_extra["agent"]["logins"]  # type: ignore[index]
            assert login["url"].startswith("https://agents.example/base/oauth/login/")
            assert login["url"] in content
            browser = httpx2.Client()
            began = browser.post(login["url"].replace("https://agents.example/base", running.url))
            browser.close()
            asked = dict(parse_qsl(urlsplit(began.headers["location"]).query))
            assert asked["redirect_uri"] == "https://agents.example/base/oauth/callback"
            assert "Secure" in began.headers["set-cookie"]
        assert (tmp_path / "logins.db").stat().st_mode & 0o777 == 0o600
    (tmp_path / "gateway.yaml").write_text(
        GATEWAY.format(url=server.url, client_id=CLIENT_ID).replace("https://a", "a")
    )
    with pytest.raises(AgentFileError, match="public_url"):
        load_config(tmp_path / "gateway.yaml", env=env)


GATEWAY = """
server: {{public_url: https://agents.example/base/}}
agents:
  assistant:
    model: openai:m
    dialect: native
    tools:
      - openapi:
          document: profile.json
          name: profile
          base_url: {url}
          token_file: logins.db
          auth:
            person:
              grant: authorization_code
              client_id: {client_id}
              client_secret: ${{PROFILE_SECRET}}
              token_url: {url}/token
"""
