"""Typed equality against what a person wrote: what may pass, what must not, and that no text can stall it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.growth import assert_linear
from tests.sizes import examples

from taoloop.policy.quantities import account_numbers, amounts
from taoloop.policy.value_match import TrustedText, atoms, host_of, is_written_address, links_in

TASK = """Send 'Minutes of Monday' to Bob.Smith@example.com, pay $1,250.50 to GB29 NWBK 6016 1331 9268 19 by
May 15th, 2024 at 10:30, read https://bank.example/Pay?id=7 and www.shop.example/a, tidy up reports/2024.txt, prod.env
and a/b/notes.md, take account 12345678901234567 or 0012, change it by -5. See #8 in file x1y2."""


@pytest.fixture(scope="module")
def words() -> TrustedText:
    return TrustedText([TASK])


@pytest.mark.parametrize(
    "value",
    [
        "bob.smith@example.com",
        "Bob.Smith@Example.com",
        "ｂob.smith@example.com",  # full width: the same in the compatibility form
        "1250.50",
        1250.5,
        "1,250.50",
        "GB29NWBK60161331926819",
        "2024-05-15",
        "2024-05-15 10:30",
        "2024-05-15T10:30:00",
        "https://bank.example/Pay?id=7",
        "https://BANK.example/Pay?id=7",
        "http://www.shop.example/a",
        "https://www.shop.example/a",
        "minutes  of\nMonday",
        "reports/2024.txt",
        "prod.env",
        "a/b/notes.md",
        12345678901234567,
        "12345678901234567",
        "0012",
        -5,
        [1250.5, ["bob.smith@example.com"]],
        {"to": "bob.smith@example.com"},
    ],
)
def test_what_the_task_names_stands_there(words: TrustedText, value: Any) -> None:
    assert words.has(value)


@pytest.mark.parametrize(
    "value",
    [
        "ob.smith@example.com",
        "smith@example.com",
        "bob.smith@example.co",
        "bob.smith+x@example.com",
        "bob.smith@example.com.evil.example",
        '"bob.smith"@example.com',
        "bob.smith@example.com, eve@evil.example",
        "b\u043eb.smith@example.com",  # a Cyrillic letter
        "bob.smith@example\u200b.com",
        "bob.smith@example.com\x00",
        "\x1cbob.smith@example.com",
        "example.com",
        "1250",
        1250,
        1,
        250,
        5,
        "5",
        "1,2,5,0.50",
        "12,50.50",
        "1.25050e3",
        True,
        float("nan"),
        float("inf"),
        10**400,
        12345678901234568,
        "12345678901234568",
        12345678901234567.0,
        12,
        "12",
        "GB29NWBK60161331926818",
        "2024-05-16",
        "2024-05-15 11:30",
        2024,
        6016,
        "http://bank.example/Pay?id=7",  # the task said https
        "ftp://bank.example/Pay?id=7",
        "https://bank.example/pay?id=7",
        "https://bank.example/Pay?id=77",
        "https://bank.example@evil.example/Pay?id=7",
        "https://bank.example:444/Pay?id=7",
        "reports/",
        "reports",
        "2024.txt",
        "/2024.txt",
        ".env",
        "env",
        "/notes.md",
        "b/notes.md",
        "the",
        "a",
        "-",
        [1250.5, "eve@evil.example"],
        {"to": {"cc": "eve@evil.example"}},
        object(),
    ],
)
def test_what_it_does_not_name_does_not(words: TrustedText, value: Any) -> None:
    assert not words.has(value, "target")


@pytest.mark.parametrize("value", ["12345678901234567", 7, "7", "+7", "7.0", "-5", "1,250.50", "2024-05-15", "#8"])
def test_digits_never_name_a_thing_by_its_id(words: TrustedText, value: Any) -> None:
    assert not words.has(value, "ref:file")


def test_an_id_with_letters_must_stand_there_whole(words: TrustedText) -> None:
    assert words.has("x1y2", "ref:file")
    assert not words.has("x1", "ref:file")


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("把报告发给bob@example.com吧", "bob@example.com"),
        ("请打开https://example.com/a并总结", "https://example.com/a"),
        ("转账500元给张三", 500),
        ("转账5万元给张三", 50_000),
        ("给DE89370400440532013000转账", "DE89370400440532013000"),
        ("2024年5月15日上午开会", "2024-05-15"),
        ("改到 5月15日吧", "2024-05-15"),
        ("订单1003退款，15.5元", 15.5),
        ("经济舱（economy），0 件行李", 0),
        ("转账500元给张三", "张三"),
        ("删除文件notes.md吧", "notes.md"),
    ],
)
def test_chinese_sets_no_spaces_around_values(task: str, value: Any) -> None:
    assert TrustedText([task]).has(value)


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("转账5万元", 5),
        ("改到5月15日", 15),
        ("改到5月15日", "2024-05-16"),
        ("退款1，500元", 500),
        ("转账500元给张三", "张"),
        ("转账500元", 50),
        ("发给bob@example.com吧", "ob@example.com"),
    ],
)
def test_chinese_endorses_no_parts(task: str, value: Any) -> None:
    assert not TrustedText([task]).has(value)


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("pay 1e3", 1000),
        ("pay 0x10", 16),
        ("pay 0x10", 10),
        ("pay $5k", 5),
        ("pay 1,5", 1),
        ("pay 1,5", 15),
        ("pay 1.2.3", 1.2),
        ("change by \u22125", 5),
        ("on 2024-05-01", 2024),
        ("pay True", 1),
        ("pay 1.000,5", 1),
    ],
)
def test_a_number_is_the_whole_number(task: str, value: Any) -> None:
    assert not TrustedText([task]).has(value)


@pytest.mark.parametrize(
    ("task", "number", "stands"),
    [
        ("5\n万元", 50_000, False),
        ("2024 abc 年5月1日", 5, False),  # the first of May
        ("2024 年 5 月 1 日", 5, False),
        ("GB29 NWBK 6016 1331 9268 19", 6016, False),
        ("GB29 NWBK\n6016 1331", 6016, True),  # no account
        ("pay x-5, y", 5, True),
        ("５００元", 500, True),
        ("total\u3000１，２５０．５０ now", 1250.5, True),
        ("٤٢ pieces", 42, True),
        ("15 May 2024 and 15", 15, True),
        ("may the 15", 15, False),
        ("a15 15b 2.15.1", 15, False),
        ("31.12.2024", 31, False),
        ("a\u2028 7 b", 7, True),
    ],
)
def test_a_number_is_told_from_dates_accounts_and_words_around_it(task: str, number: float, stands: bool) -> None:
    assert TrustedText([task]).has(number) is stands


def test_a_text_in_several_lines_hides_nothing() -> None:
    assert TrustedText(["标题：你好\n世界"]).has("你好\n世界")


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://Example.com/a", "example.com"),
        ("https://example.com.:443/a", "example.com"),
        ("example.com:8080/a", "example.com"),
        ("https://[::1]:80/", "[::1]"),
        ("https://ｅxample.com", "example.com"),
        ("https://example\u3002com", "example.com"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://evil.example#@good.example/", "evil.example"),
        ("https://evil.example?@good.example/", "evil.example"),
    ],
)
def test_the_host_of_an_address(value: str, host: str) -> None:
    assert host_of(value) == host


@pytest.mark.parametrize(
    "value",
    [
        "https://good.example@evil.example/",
        "https://a@good.example@evil.example/",
        "https://evil.example\\@good.example/",
        "https://evil.example\\.good.example/",
        "https://%65vil.example/",
        "https://ev\til.example/",
        "https://ev\nil.example/",
        "https:///evil.example/",
        "https:/evil.example/",
        "https:evil.example",
        "http:\\\\evil.example",
        "https://stra\u00dfe.example/",
        "file:///etc/passwd",
    ],
)
def test_an_address_whose_host_is_disputed_has_none_that_could_be_allowed(value: str) -> None:
    assert host_of(value) == ""


@pytest.mark.parametrize("value", ["", "hello", "see https://a.example and b", "/about", "mailto:a@b.example", "a.b c"])
def test_what_is_no_address_has_no_host(value: str) -> None:
    assert host_of(value) is None


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("//evil.example/x", ""),
        ("\\\\evil.example\\x", ""),
        ("/\\evil.example", ""),
        ("hxxps://evil.example/x", "evil.example"),
        ("hxxp:evil.example", ""),
        ("hxxps[:]//evil[.]example/x", "evil.example"),
        ("ann:pw@evil.example/x", ""),
        ("192.0.2.7/x", "192.0.2.7"),
        ("[::1]:80/x", "[::1]"),
        ("xn--e1afmkfd.xn--p1ai/x", "xn--e1afmkfd.xn--p1ai"),
        ("пример.рф/x", "xn--e1afmkfd.xn--p1ai"),
        ("EVIL.EXAMPLE/x", "evil.example"),
        ("evil.example./x", "evil.example"),
        ("evil.example.:80/x", "evil.example"),
    ],
)
def test_an_address_in_disguise_is_one(value: str, host: str) -> None:
    assert host_of(value) == host
    assert is_written_address(value)
    assert links_in(f"see {value} now")
    assert not links_in(value) <= TrustedText(["see evil.example and https://evil.example/y"]).links
    assert links_in(value) <= TrustedText([f"see {value}, then"]).links


@pytest.mark.parametrize(
    "text", ["3/4 and/or", "src/main.py", "10.5", "C:\\Users\\x", "// a comment", "a@b.example", "第1.2条"]
)
def test_what_is_no_link_is_none(text: str) -> None:
    assert not links_in(text)


_OF_EVERY_KIND = (
    "ann@x.com",
    "www.x.com/y",
    "GB29NWBK60161331926819",
    5.5,
    "2024-05-15 10:30",
    "some words",
    "15 EUR",
    "1" * 16,
)


def read_whole(text: str) -> list[bool]:
    """Each kind of value is looked for in a text only once one is compared: here all of them."""
    words = TrustedText([text, "15 May 2024"])
    return [words.has(value) for value in _OF_EVERY_KIND]


_HOSTILE = [
    "1234 ",
    "EUR ",
    "1\u202f000\u202f",
    "a",
    "a.",
    "1",
    "1,",
    "1,000",
    "-",
    " ",
    "jan ",
    "AB12 ",
    "A1",
    "a@",
    "www.",
    "中",
    "a中",
    "http://",
    "12:",
    "//",
    "\\",
    "a-",
    "x@",
    "a:@",
    "[",
    "[.]",
    "1.",
    "ф.",
]


@pytest.mark.parametrize("piece", _HOSTILE)
@pytest.mark.parametrize("reads", [read_whole, lambda text: list(atoms(text)), links_in, host_of])
def test_no_text_can_stall_the_patterns(piece: str, reads: Callable[[str], Any]) -> None:
    assert_linear(lambda chars: reads((piece * chars)[:chars] + "x"), 40_000)


@pytest.mark.parametrize("piece", _HOSTILE)
def test_no_long_text_endorses_what_it_does_not_hold(piece: str) -> None:
    assert not TrustedText(["a task"]).has((piece * 20_000)[:19_999] + "x")


@examples(200)
@given(st.text(max_size=40), st.text(max_size=12))
def test_a_text_that_holds_nothing_of_a_value_never_endorses_it(task: str, value: str) -> None:
    words = TrustedText(["".join(sign for sign in task if sign not in "xyz0123456789")])
    assert not words.has(f"xyz{value}")
    assert words.has(None)


_SIGNS = st.sampled_from([*"1.,-@_'张三１éİ ", "  ", "\n", "\u3000"])
_PIECES = st.sampled_from(
    ["Ab", "a1", "1,000", "2.5", "5万", "GB29 ", "NWBK ", "may ", "15 May 2024", "2024-05-15", "x.com", "b@x.com"]
)
_WRITTEN = st.lists(_SIGNS | _PIECES, max_size=12).map("".join)


@examples(300)
@given(st.lists(_WRITTEN, min_size=1, max_size=4), _WRITTEN, st.sampled_from(["target", "value", "ref:file"]))
def test_a_value_stands_in_many_texts_if_it_stands_in_one_of_them(texts: list[str], value: str, role: str) -> None:
    filler = [f"filler{number}" for number in range(40)]  # so many that they are looked through by an index
    for wanted in (value, texts[0][:8], texts[-1][2:]):
        assert TrustedText([*texts, *filler]).has(wanted, role) is any(
            TrustedText([text]).has(wanted, role) for text in texts
        )


@examples(300)
@given(_WRITTEN, st.lists(st.sampled_from(["word", "a1", "_x", "mere.", "end"]), max_size=3).map(" ".join), _WRITTEN)
def test_a_line_of_words_between_them_changes_no_number_and_no_address(before: str, line: str, after: str) -> None:
    whole, parts = TrustedText([f"{before}\n{line}\n{after}"]), TrustedText([before, line, after])
    for value in (1, 1000, 2.5, 50_000, 2024, 15, 5, "b@x.com", "https://x.com/y", "2024-05-15"):
        assert whole.has(value) is parts.has(value)


def test_texts_that_come_later_are_looked_through_too() -> None:
    words = TrustedText([f"text {number}" for number in range(40)])
    assert not words.has("red fox")
    words.add("a red fox")
    assert words.has("red fox")
    assert not words.has("red f")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=8,
)


@examples(200)
@given(_JSON, st.text(max_size=60), st.sampled_from(["target", "value", "ref:file", "content"]))
def test_every_value_has_an_answer(value: Any, task: str, role: str) -> None:
    words = TrustedText([task])
    assert words.has(value, role) is words.has(value, role)
    assert words.has([value, value], role) is words.has(value, role) or value in ("", [], {}, None)


@examples(200)
@given(st.text(max_size=60))
def test_every_text_has_a_host_or_none(text: str) -> None:
    host = host_of(text)
    assert host is None or (host.isascii() and host == host.lower() and "@" not in host)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("订单1003退款，15.5元", 15.5),
        ("退款订单1003，15.5元", 15.5),
        ("退款订单1003，15.5元", 1003),
        ("退款15.5元，订单1003", 1003),
        ("订单12，5元", 5),
        ("订单1003退款，15.5元", "15.50 元"),
        ("订单1003退款，15.5元", "15.5 CNY"),
        ("Pay DE89 3704 0044 0532 0130 00 today", "DE89370400440532013000"),
        ("To AT61 1904 3002 3457 3201 EUR 5", "AT611904300234573201"),
        ("付款到，DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
        ("账号6222 0212 3456 7890，谢谢", "6222021234567890"),
        ("card 6222-0212-3456-7890.", "6222 0212 3456 7890"),
        ("Pay EUR15.50 now", 15.5),
        ("Pay 1,250.50EUR now", 1250.5),
        ("Pay €15.50", "15.5 EUR"),
        ("Pay 1\u202f250 EUR", 1250),
    ],
)
def test_amounts_and_numbers_in_groups_are_recognised(text: str, value: Any) -> None:
    assert TrustedText([text]).has(value, "target")
    if isinstance(value, str) and value.isdigit():
        assert not TrustedText([text]).has(value, "ref:order"), "digits never endorse an id"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("订单1003退款，15.5元", 155),
        ("订单1003退款，15.5元", "15.5 EUR"),
        ("订单1003退款，15.5元", "1003元"),
        ("Pay $15", "15 EUR"),
        ("order 12 500 EUR", 12500),
        ("order 12 500 EUR", "12500 EUR"),
        ("on 2026-05-13 EUR 5", 13),
        ("DE89 3704 0044 0532 0130 00", "DE8937040044053201300"),
        ("6222 0212 3456 7890 12", "6222021234567890"),
        ("6222 0212 3456 7890", "62220212345678"),
        ("rooms 1001 1002", "10011002"),
        ("https://pay.example/?a=15EUR", "15 EUR"),
    ],
)
def test_what_only_resembles_an_amount_or_a_number_in_groups_is_not(text: str, value: Any) -> None:
    assert not TrustedText([text]).has(value, "target")


@given(st.integers(1, 10**6), st.integers(0, 99), st.sampled_from(["{}元", "€{}", "{} EUR", "，{}元"]))
def test_an_amount_equals_no_other_number(whole: int, cents: int, form: str) -> None:
    text = TrustedText([form.format(f"{whole}.{cents:02}")])
    assert text.has(float(f"{whole}.{cents:02}"))
    assert not text.has(int(f"{whole}{cents:02}"))
    assert not text.has(f"{whole}{cents:02}", "ref:order")
    assert text.has(whole) == (cents == 0)


@given(st.lists(st.sampled_from([*"0123456789 -,.", "EUR", "€", "元", "a", "\u202f"]), max_size=40).map("".join))
def test_what_is_found_in_groups_is_written_there(text: str) -> None:
    digits = "".join(char for char in text if char.isdigit())
    for number in account_numbers(text):
        assert number in digits
    for amount, _ in amounts(text):
        assert f"{amount:f}".replace(".", "") in digits


@pytest.mark.parametrize("end", ["/..", "/.", "/...", "//", "/?", "?", "/..;"])
@pytest.mark.parametrize("name", ["site.old", "a.txt", "https://dav.example.com/photos/2020"])
def test_what_continues_a_name_or_an_address_is_another_one(name: str, end: str) -> None:
    text = TrustedText((f"Delete {name}.",))
    assert text.has(name, "target")
    assert not text.has(name + end, "target")
    assert not text.has_address(name + end)
