"""The quick look at a text never misses what the patterns would take out."""

from __future__ import annotations

from hypothesis import given, strategies as st

from taoloop.core.redaction.patterns import may_hold, redact_patterns

TAIL = "0123456789abcdefABCDEF0123456789"
HEADS = (
    *("AKIA", "ASIA", "AIza", "ya29.", "ghp_", "github_pat_", "glpat-", "gldt-", "xoxb-", "xapp-", "npm_", "hf_"),
    *("SG.", "sk_live_", "rk_test_", "whsec_", "sk-", "eyJ", "Bearer ", "BEARER ", "basic ", "Basic ", "BASIC "),
    *("password=", "Passwd: ", "token:", "TOKEN = ", "api_key: ", "Cookie: ", "auth=", "AUTHORIZATION: ", "pwd="),
    *("LTAI", "AKID", "gsk_", "xai-", "pplx-", "lsv2_pt_", "hvs.", "GOCSPX-", "1234567:AA", "?sig=", "--password "),
    *("--token ", "curl -u a:", "mysql -p", "password is ", "密码是", "<password>", "</token>", "bot/v2/hook/"),
    *("session_id=", "sid=", "credential: ", "密码：", "令牌: ", "https://ann:", "secret => "),
)
PIECES = (*HEADS, TAIL, TAIL.upper(), TAIL.lower(), "@host", " ", "\n", '"', "x", "_", "-", "=", ":", "：", "İ")
PEM = f"-----BEGIN PRIVATE KEY-----\n{TAIL}\n-----END PRIVATE KEY-----"


@given(st.lists(st.sampled_from((*PIECES, PEM)), max_size=8).map("".join))
def test_what_may_hold_nothing_has_nothing_to_take_out(text: str) -> None:
    if not may_hold(text):
        assert redact_patterns(text) == text


def test_every_kind_of_secret_is_suspected() -> None:
    for head in HEADS:
        assert may_hold(f"{head}{TAIL}@host"), head
    assert may_hold(PEM)


def test_plain_calls_and_words_are_not() -> None:
    for text in (
        'add_async\n{"a": 3, "b": 2}',
        "A Plain Sentence, in words: no more.",
        "x" * 1_000,
        'track_todos {"a": 1}',
    ):
        assert not may_hold(text)
