"""Secrets are found by name, by pattern and by value; ordinary text, code and hashes stay as they are."""

from __future__ import annotations

import base64
import dataclasses
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.growth import assert_linear

from taoloop.core.agent_spec import AgentSpec
from taoloop.core.attachments.files import File
from taoloop.core.decision import Act, Call, call_digest
from taoloop.core.events import FACTS, ActionRequested, Fault, Finished, ModelReplied, Observed, RunStarted
from taoloop.core.message import ToolCallText
from taoloop.core.redaction.redactor import RUNTIME_FIELDS, Redactor, contains_redaction, secrets_of

VALUE = 'q8Zr"1/x+Lw0vT9e=k'
PLAIN = Redactor()
KNOWING = Redactor({"DEEPSEEK_API_KEY": VALUE})

SECRETS = {
    "password=hunter2x": "hunter2x",
    '{"登录密码": "hunter2x"}': "hunter2x",
    '{"口令": 48151623}': "48151623",
    '{"访问令牌": "3f2a9b8c7d6e5f4a"}': "3f2a9b8c7d6e5f4a",
    '{"password": 48151623}': "48151623",
    "DB_PASSWORD: s3cr3t!x": "s3cr3t!x",
    '{"password": "abcd"}': "abcd",
    "password = 'correct horse battery'": "correct horse battery",
    r'{"args": "{\"password\": \"Tr0ub4dor\"}"}': "Tr0ub4dor",
    "PGPASSWORD=swordfish psql": "swordfish",
    "export DB_PASS=swordfish": "swordfish",
    "私钥：3f2a9b8c7d6e5f4a": "3f2a9b8c7d6e5f4a",
    '"api_key": "a1b2c3d4e5f6"': "a1b2c3d4e5f6",
    "client_secret='abc123def456'": "abc123def456",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "K7MDENG",
    "userAccessToken: 3f2a9b8c7d6e5f4a": "3f2a9b8c7d6e5f4a",
    "Authorization: Bearer abcdef1234567890": "abcdef1234567890",
    "authorization: Basic dXNlcjpwYXNzd29yZA==": "dXNlcjpwYXNzd29yZA",
    'Authorization: Digest username="u", response="6629fae49393"': "username",
    "curl -H 'X-API-Key: 0a1b2c3d4e' host": "0a1b2c3d4e",
    "Cookie: session=abc; theme=dark": "session=abc",
    "Set-Cookie: sid=99a; Path=/": "sid=99a",
    "sent with Bearer 0123456789abcdef.": "0123456789abcdef",
    "https://bob:pw12@example.org/x": "pw12",
    "git clone https://0123456789abcdef0123@example.org/x": "0123456789abcdef0123",
    "sk-proj-abcdefghijklmnop1234": "abcdefghijklmnop1234",
    "sk-ant-api03-AbCdEfGhIjKlMnOp-12345678": "AbCdEfGhIjKlMnOp",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "abcdefghijkl",
    "github_pat_11ABCDEFG0abcdefghijkl_mnop": "11ABCDEFG0",
    "glpat-abcDEF123456789012": "abcDEF123456789012",
    "AKIAIOSFODNN7EXAMPLE": "IOSFODNN7",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv": "SyA1234567890",
    "ya29.a0AfH6SMBabcdefghijk": "a0AfH6SMB",
    "xoxb-123456789012-abcdefGHIJ": "123456789012",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk-_": "eyJzdWIi",
    "npm_abcdefghijklmnopqrstuvwx012345678": "abcdefghijkl",
    "pypi-AgEIcHlwaS5vcmcCJDU1": "AgEIcHlwaS5vcmcCJDU1",
    "hf_abcdefghijklmnopqrstu": "abcdefghijkl",
    "SG.abcdefghijklmnop1234.abcdefghijklmnop": "abcdefghijklmnop1234",
    "sk_live_abcdefghij1234": "abcdefghij1234",
    r"first line\nghp_abcdefghijklmnopqrstuvwxyz": "abcdefghijklmnopqrstuvwxyz",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----": "MIIEow",
    "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAcut\nMIIabc": "MII",
    "密码：abc12345，请登录": "abc12345",
    # letters alone
    "password: hunterhunter": "hunterhunter",
    "db:\n  password: hunterhunter\n  host: x": "hunterhunter",
    "密码：hunterhunter，请登录": "hunterhunter",
    "口令: opensesame": "opensesame",
    # options of commands
    "mysqldump --password hunterhunter db": "hunterhunter",
    "--password hunterhunter": "hunterhunter",
    "tool --db-password 'hunter2x' go": "hunter2x",
    "app --api-key a1b2c3d4e5f6 go": "a1b2c3d4e5f6",
    "curl -s -u admin:hunterhunter https://example.org": "hunterhunter",
    "curl --user 'admin:hunter2x' example.org": "hunter2x",
    "mysql -uroot -phunterhunter shop": "hunterhunter",
    "mariadb-dump -u root -p'sword9' shop": "sword9",
    "sshpass -p swordfish ssh host": "swordfish",
    "docker login -u bob -p swordfish registry.example.org": "swordfish",
    "podman login -p 'hunter2x' quay.io": "hunter2x",
    # statements of databases
    "CREATE USER 'bob'@'%' IDENTIFIED BY 'swordfish';": "swordfish",
    "ALTER USER bob IDENTIFIED WITH caching_sha2_password BY 'sword fish'": "sword fish",
    'create user bob identified by "swordfish"': "swordfish",
    "ALTER ROLE bob WITH PASSWORD 'swordfish'": "swordfish",
    "CREATE USER bob PASSWORD 'swordfish'": "swordfish",
    "create role bob with login encrypted password 'swordfish'": "swordfish",
    '{"sql": "CREATE LOGIN bob WITH PASSWORD = \\"swordfish\\""}': "swordfish",
    # sentences and tags
    "The password is hunterhunter.": "hunterhunter",
    "the password is hunter2x and the user bob": "hunter2x",
    "密码是hunter2x。": "hunter2x",
    "登录口令为 hunterhunter，请保密": "hunterhunter",
    "<user>bob</user><password>hunterhunter</password>": "hunterhunter",
    "<db:password><![CDATA[hunter 2x]]></db:password>": "hunter 2x",
    # on the lines below the name, as in YAML
    "is\npassword: |\n  hunter2 text\nuser: ann": "hunter2 text",
    "is\ndb:\n  password: >-\n    hunter2 text\n\n    and more\n  user: ann": "and more",
    "is\n- password: |\r\n    hunter two\r\n  user: ann": "hunter two",
    "is\napi_key: &key |2+ # of the shop\n    a1b2c3d4e5f6": "a1b2c3d4e5f6",
    "is\n密码：|\n  hunter two": "hunter two",
    '{"file": "password: |\\n  hunter \'two\'\\nuser: ann"}': "hunter 'two'",
    # keys of services
    "LTAI5tAbCdEfGhIjKlMnOpQr": "5tAbCdEfGhIj",
    "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE": "z8krbsJ5yKBZ",
    "gsk_abcdefghijklmnop0123456789": "abcdefghijklmnop",
    "xai-abcdefghijklmnop0123456789": "abcdefghijklmnop",
    "pplx-abcdefghijklmnop0123456789": "abcdefghijklmnop",
    "lsv2_pt_0123456789abcdef0123456789abcdef_0123456789": "0123456789abcdef",
    "hvs.CAESIAbCdEfGhIjKlMnOp": "CAESIAbCdEfGhIjKlMnOp",
    "GOCSPX-abcdefghijklmnop0123": "abcdefghijklmnop0123",
    "https://api.telegram.org/bot123456789:AAHabcdefghijklmnopqrstuvwxyz012345/getMe": "AAHabcdefghijklmnop",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXabcdXXXX1234": "XXXXabcdXXXX1234",
    "https://discord.com/api/webhooks/1234567890/abcdefghijklmnop0123": "abcdefghijklmnop0123",
    "https://acme.webhook.office.com/webhookb2/0f1e@22/IncomingWebhook/abcdef0123/44": "abcdef0123",
    "https://open.feishu.cn/open-apis/bot/v2/hook/1b2c3d4e-0000-4444-8888-aaaabbbbcccc": "1b2c3d4e-0000",
    "https://oapi.dingtalk.com/robot/send?access_token=9f86d081884c7d659a2feaa0c55ad015": "9f86d081884c",
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=693a1116-7a0c-4bc4-97a0-0ec2": "693a1116",
    "https://a.blob.core.windows.net/c?sv=2022&sig=abc%2Bdef1234567890xyz%3D": "def1234567890xyz",
}


def test_the_item_after_an_option_is_its_value() -> None:
    command = ["deploy", "--password", "hunterhunter", "--verbose", "shop"]
    assert PLAIN.value(command) == ["deploy", "--password", "[redacted:password]", "--verbose", "shop"]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_found(text: str) -> None:
    redacted = PLAIN.text(f"before {text}" if not text.startswith("{") else text)
    assert SECRETS[text] not in redacted
    assert "[redacted:" in redacted
    assert PLAIN.text(redacted) == redacted


ORDINARY = """\
token: the smallest unit of text
max_tokens=4096, tokens: 512, input_tokens: 12345678, tokens per second: 120
key=lambda item: item.key
def login(user: str, password: str) -> None:
password = input('Password: ')
api_key=os.environ['OPENAI_API_KEY']
token = get_token(user)
The password: it must be long. password: required
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
550e8400-e29b-41d4-a716-446655440000
the bearer of good news; basic JavaScript knowledge; Basic Information2 systems
sk-learn-based-approach-for-things, risk-assessment-2024-report, ghost_writer_of_the_year_2024
Authorization: required for all endpoints. Bearer token required
cookie: a small file that a site keeps
secret santa: bring a gift
https://example.org/a?page=2&next_page_token=abc123def456
user@example.org: mail, http://localhost:8080/path@x
self.password = password; connect(password=settings.PASSWORD); api_key: str = ''
cache_key=9f86d081884c7d659a2feaa0c55ad015
author: Alice99 wrote; session: 12 people; PWD=/home/user1
{"token": "apple", "pos": "NOUN"}
--token <TOKEN>; export API_KEY=your-key-here; password=${DB_PASSWORD}
我的密码很长。令牌: 模型读的最小单位
A PEM file begins with -----BEGIN PRIVATE KEY----- and ends with another line.
"""


@pytest.mark.parametrize("line", [line for line in ORDINARY.splitlines() if "PEM" not in line])
def test_ordinary_text_stays(line: str) -> None:
    assert KNOWING.text(line) is line


@pytest.mark.parametrize(
    "line",
    [
        "docker run -p 8080:80 nginx",
        "docker login registry.example.org && mkdir -p /srv/registry",
        "The user was identified by 'Ann', his manager.",
        "CREATE USER bob IDENTIFIED BY '$PASSWORD'",
        "Create a form whose password 'may not be empty'.",
    ],
)
def test_ports_folders_and_prose_beside_logins_stay(line: str) -> None:
    assert PLAIN.text(line) == line


def test_a_block_ends_where_its_indentation_does() -> None:
    text = "a:\n  password: |\n    hunter two\n\n    three\n  user: ann\nb: |\n  the text\ntoken: |\n  some words\n"
    assert PLAIN.text(text) == text.replace("hunter two\n\n    three", "[redacted:password]")
    for harmless in ("password: |\nuser: ann", "password: |\n  ${PASSWORD}\n", "password: >\n  your password\n"):
        assert PLAIN.text(harmless) == harmless


def test_of_200_ordinary_lines_at_most_one_is_taken_for_a_secret() -> None:
    lines = (Path(__file__).parents[2] / "data/ordinary_lines.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 200
    assert len([line for line in lines if PLAIN.text(line) != line]) <= 1


def test_what_follows_a_mention_of_a_key_stays() -> None:
    line = ORDINARY.splitlines()[-1]
    assert PLAIN.text(line).endswith("another line.")


def test_our_own_sources_and_pages_stay() -> None:
    root = Path(__file__).parents[3]
    changed = []
    for path in [*root.glob("src/**/*.py"), *root.glob("docs/*.md")]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if PLAIN.text(line) != line:
                changed.append(f"{path.name}: {line.strip()}")  # noqa: PERF401  # plainer so
    assert len(changed) <= 12, "\n".join(changed)  # docs show a few keys on purpose


def test_a_known_value_is_found_in_every_form() -> None:
    for text in (
        VALUE,
        urllib.parse.quote(VALUE),
        urllib.parse.quote(VALUE, safe=""),
        urllib.parse.quote_plus(VALUE).lower() if VALUE.islower() else urllib.parse.quote_plus(VALUE),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
        json.dumps(VALUE),
        json.dumps(json.dumps({"x": VALUE})),
        repr(VALUE),
        *(base64.b64encode(f"{lead}{VALUE}{tail}".encode()).decode() for lead in ("", "a", "ab") for tail in ("", "z")),
        *(base64.urlsafe_b64encode(f"{lead}{VALUE}".encode()).decode() for lead in ("", "a", "ab")),
        *(VALUE[::-1], VALUE.upper(), VALUE.lower(), " ".join(VALUE), 'q8Zr "1/x +Lw0 vT9e =k'),
        *(" ".join(VALUE[::-1]), " ".join(VALUE.upper()), "-".join(VALUE), "\n".join(VALUE)),
        *('q8 Zr "1 /x +L w0 vT 9e =k', 'q8Z r"1 /x+ Lw0 vT9 e=k', 'q8Zr" 1/x+L w0vT9 e=k', 'q8Zr-"1/x-+Lw0-vT9e-=k'),
    ):
        redacted = Redactor([VALUE], patterns=False).text(f"see {text} here")
        assert "[redacted:secret]" in redacted, text
        assert "[redacted:DEEPSEEK_API_KEY]" in KNOWING.text(f"see {text} here")


@pytest.mark.parametrize("digits", ["4929123456", "-4929123456", "4929.123456", "49291234.50"])
def test_a_known_value_is_found_as_a_number(digits: str) -> None:
    redactor = Redactor({"CARD_SECRET": digits.strip("-")})
    number = json.loads(digits)
    args = {"card": number, "deep": [{"more": number}], "other": 12345678, "yes": True}
    call = ActionRequested(
        step=1, call_id="call_1", tool="pay", args=args, tier="write", verdict="allow", digest=call_digest("pay", args)
    )
    texts = [json.dumps(args), f'{{"card": {digits}}}', f"[{digits}]", f"card {digits}"]
    reply = ModelReplied(
        step=1,
        purpose="decide",
        text="",
        decision=Act(reason="", calls=(Call(tool="pay", args=args),)),
        tool_calls=(ToolCallText(id="1", name="pay", arguments=texts[1]),),
    )
    shown = [redactor.fact(call), redactor.fact(reply), *map(redactor.text, texts[1:])]
    for one in shown:
        assert digits.strip("-") not in str(one)
    kept = redactor.fact(call).args
    assert kept == {"card": "[redacted:CARD_SECRET]", "deep": [{"more": kept["card"]}], "other": 12345678, "yes": True}


def test_numbers_that_are_no_secret_stay_as_they_are_written() -> None:
    redactor = Redactor({"CARD_SECRET": "4929123456"})
    text = '{"a": 1.10, "b": -0.00, "c": 12345678901234567890, "d": 1e3}'
    assert redactor.text(text) == text
    huge = {"n": 10**5000}
    assert redactor.value(huge) is huge


def test_a_short_value_is_not_looked_for() -> None:
    assert Redactor(["abc1234"]).text("abc1234 stays here") == "abc1234 stays here"
    assert not Redactor(["abc1234"], patterns=False)


def test_the_environment_names_its_secrets() -> None:
    env = {
        "DEEPSEEK_API_KEY": "k" * 20,
        "GITHUB_TOKEN": "t" * 20,
        "APP_SECRET": "s" * 20,
        "DB_PASSWORD_2": "p" * 20,
        "AWS_SECRET_ACCESS_KEY": "a" * 20,
        "PATH": "/usr/bin:/bin",
        "MAX_TOKENS": "100000000",
        "SHORT_TOKEN": "abc",
    }
    assert set(secrets_of(env)) == {*list(env)[:5]}


def test_data_is_redacted_by_its_names_at_any_depth() -> None:
    data = {
        "user": "bob",
        "login": {"password": "x1y2", "n": [1, 2.5, None, True]},
        "headers": {"Authorization": "Bearer x", "Accept": "text/html"},
        "cookies": {"s": "abc12345"},
        "pairs": [["X-Api-Key", "abcd1234"], ["Accept", "text"]],
        "list": [{"name": "password", "value": "zzzz"}],
        "schema": {"password": {"type": "string"}},
        "apiKey": "abcdefgh",
    }
    redacted = PLAIN.value(data)
    assert redacted["login"] == {"password": "[redacted:password]", "n": [1, 2.5, None, True]}
    assert redacted["headers"] == {"Authorization": "[redacted:Authorization]", "Accept": "text/html"}
    assert redacted["cookies"] == {"s": "[redacted:s]"}
    assert redacted["pairs"] == [["X-Api-Key", "[redacted:X-Api-Key]"], ["Accept", "text"]]
    assert redacted["list"] == [{"name": "password", "value": "[redacted:password]"}]
    assert redacted["schema"] is data["schema"]
    assert redacted["apiKey"] == "[redacted:apiKey]"
    assert contains_redaction(redacted)
    assert not contains_redaction(data)


def test_clean_data_is_the_same_object() -> None:
    data = {"a": [1, {"b": "text"}], "c": ("x", "y")}
    assert PLAIN.value(data) is data


def test_a_fact_is_redacted_in_every_field_that_others_write() -> None:
    key = "sk-proj-abcdefghijklmnop1234"
    replied = ModelReplied(
        step=1,
        purpose="decide",
        text=f"I use {key}",
        decision=Act(calls=(Call(tool="t", args={"q": key, "password": "x1y2z3"}),), reason=f"with {key}"),
        tool_calls=(ToolCallText(name="t", arguments=json.dumps({"q": key, "password": "x1y2z3"}), id="c"),),
        thinking=key,
    )
    facts = (
        replied,
        RunStarted(task=f"use {key}", agent=AgentSpec(instructions=f"the key is {key}"), nonce="n"),
        Observed(call_id="c", ok=False, output="", error=Fault(code="e", message=f"bad {key}", hint=key), printed=key),
        Finished(status="completed", answer=key, reason=key, citations=(key,)),
    )
    for fact in facts:
        shown = PLAIN.fact(fact)
        assert key not in repr(shown)
        assert "x1y2z3" not in repr(shown)
        assert type(shown) is type(fact)
        assert PLAIN.fact(shown) is shown


def test_a_redacted_request_names_what_is_kept_of_it() -> None:
    asked = ActionRequested(
        step=1, call_id="c", tool="t", args={"password": "x1y2z3"}, tier="read", verdict="allow", digest="d"
    )
    shown = PLAIN.fact(asked)
    assert shown.digest == call_digest("t", {"password": "[redacted:password]"})
    clean = dataclasses.replace(asked, args={"n": 1})
    assert PLAIN.fact(clean) is clean


def test_every_text_of_every_fact_is_either_looked_at_or_ours() -> None:
    ours = {field.name for fact in FACTS for field in dataclasses.fields(fact)} & RUNTIME_FIELDS
    assert ours >= {"nonce", "call_id", "digest", "idempotency_key", "output_digest"}
    for name in ("task", "text", "args", "output", "message", "note", "reason", "answer", "printed", "thinking", "by"):
        assert name not in RUNTIME_FIELDS


def test_a_secret_in_any_field_of_a_reply_is_seen() -> None:
    clean = ModelReplied(
        step=1,
        purpose="decide",
        text="t",
        decision=Act(calls=(Call(tool="t", args={"q": 1}),), reason="r"),
        tool_calls=(ToolCallText(name="t", arguments="{}", id="c"),),
    )
    key = "sk-proj-abcdefghijklmnop1234"
    decision, texts = clean.decision, clean.tool_calls[0]
    assert isinstance(decision, Act)
    call = decision.calls[0]
    assert PLAIN.fact(clean) is clean
    seen = 0
    places: tuple[tuple[Any, Callable[[Any], ModelReplied]], ...] = (
        (clean, lambda reply: reply),
        (decision, lambda act: dataclasses.replace(clean, decision=act)),
        (call, lambda one: dataclasses.replace(clean, decision=dataclasses.replace(decision, calls=(one,)))),
        (texts, lambda one: dataclasses.replace(clean, tool_calls=(one,))),
    )
    for holder, wrap in places:
        for field in dataclasses.fields(holder):
            if field.name not in RUNTIME_FIELDS and field.type in ("str", "Any", str):
                assert key not in repr(PLAIN.fact(wrap(dataclasses.replace(holder, **{field.name: key})))), field.name
                seen += 1
    assert seen >= 8


EVIL = (  # what comes first, what is repeated, what comes last
    ("", "password", ""),
    ("", "sk-", ""),
    ("", "eyJ-", ""),
    ("", "-----BEGIN PRIVATE KEY-----", ""),
    ("", "://a:", ""),
    ("", "authorization: ", ""),
    ("", "token_", ""),
    ("", 'password=\\"', ""),
    ("", "a:", "@://"),
    ("", "cookie:", ""),
    ("", "Bearer ", ""),
    ("", '{"a":', ""),
    ("token", "-", "="),
    ("", "--password ", ""),
    ("", "password is ", ""),
    ("", "<password>", ""),
    ("", "curl -u a:b ", ""),
    ("", "mysql -p", " -p"),
    ("", "1:AA", ""),
    ("", "sig=", ""),
    ("</ <password>", "a ", ""),
    ("", "password: |\n", ""),
    ("", '"password: |\\n', ""),
    ("", "- - - password: |\n      ", ""),
    ("password: |\n", "  a\n", ""),
)


@pytest.mark.parametrize(("start", "unit", "end"), EVIL, ids=[unit for _, unit, _ in EVIL])
def test_the_time_grows_with_the_length_only(start: str, unit: str, end: str) -> None:
    assert_linear(lambda chars: KNOWING.text(start + unit * (chars // len(unit)) + end), 100_000)


def test_the_names_of_the_files_of_a_task_are_stored_without_secrets() -> None:
    key = "sk-proj-" + "a1B2" * 6
    started = RunStarted(task="see", agent=AgentSpec(), nonce="n", files=(File(b"text", name=f"{key}.txt").info,))
    assert Redactor({"OPENAI_API_KEY": key}).fact(started).files[0].name == "[redacted:OPENAI_API_KEY].txt"
