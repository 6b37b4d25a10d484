"""The lines of an HTML file on which its text begins."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.growth import assert_linear
from tests.sizes import examples

from taoloop.tools.documents.readers import decode_html, decode_text, source_lines
from taoloop.tools.isolated_parser import UnreadableFileError

SOURCE = """<html><head><title>Coffee is here</title></head>
<!-- Coffee is not here -->
<p>Coffee
is <b>in</b> the kitchen</p>
<p>Caf&eacute; &amp; printer: second floor</p>
<p>咖啡在<i>厨房</i>里。</p>
"""


def test_passages_are_found_through_marks_entities_and_line_breaks() -> None:
    found = source_lines(SOURCE, ["Coffee is in the kitchen", "Café & printer: second floor", "咖啡在厨房里。"])
    assert found[0] == 3
    assert found[1] == 5
    assert found[2] in (0, 6)


def test_what_is_not_in_the_source_has_no_line() -> None:
    assert source_lines(SOURCE, ["zebra crossing", "", "?!"]) == [0, 0, 0]


@pytest.mark.parametrize("unit", ["<", "<!--", "<a ", "<script>", "&a;", "a_", " "])
def test_no_source_takes_long(unit: str) -> None:
    def lines(chars: int) -> list[int]:
        return source_lines(unit * (chars // len(unit)), ["many words that are not there at all", "x"] * 50)

    assert_linear(lines, 400_000)
    assert lines(1_000_000) == [0] * 100


def test_a_source_in_which_nothing_is_found_is_given_up() -> None:
    source = "<p>cof<b></b>fee kit<b></b>chen mach<b></b>ines " * 200_000 + "<p>zebra crossing road"
    assert source_lines(source, ["coffee kitchen machines " * 3] * 5_000 + ["zebra crossing road"]) == [0] * 5_001


SIMPLE = "红楼梦是中国古典小说，作者曹雪芹。数据库检索与问答系统的测试。\nHello, world 123\n"
OLD = "紅樓夢是中國古典小說，作者曹雪芹。測試資料庫檢索與問答系統。\nHello\n"
WESTERN = "Le café élève à Noël: ça va très bien. Größe über Öl.\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(SIMPLE, name) for name in ("utf-8", "utf-8-sig", "gbk", "gb18030", "gb2312", "utf-16", "utf-32")]
    + [(OLD, "big5"), (OLD, "utf-8"), (WESTERN, "cp1252"), (WESTERN, "latin-1"), ("plain", "ascii")],
)
def test_a_text_is_read_in_its_encoding(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding))[::2] == (text, 0)


@given(text=st.text(min_size=1, max_size=200))
@examples(200)
def test_the_encoding_gives_the_text_back_from_the_bytes(text: str) -> None:
    for encoding in ("utf-8", "utf-16", "gb18030"):
        data = text.encode(encoding, "replace")
        try:
            found = decode_text(data)
        except UnreadableFileError:
            continue
        assert data.decode(found.encoding, "replace") == found.text


@given(data=st.binary(max_size=300))
@examples(200)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for way in (decode_text, decode_html):
        try:
            found = way(data)
        except UnreadableFileError:
            continue
        assert data.decode(found.encoding, "replace") == found.text


def test_a_utf8_text_with_a_broken_place_stays_utf8() -> None:
    data = (SIMPLE * 5).encode()[:-2].rstrip(b"\n")[:-30] + "结".encode()[:2]
    found = decode_text(data)
    assert found.encoding == "utf-8"
    assert 0 < found.broken < 3


def test_a_named_encoding_counts_where_it_is_not_unicode() -> None:
    japanese = "日本語の文章です。"
    assert decode_text(japanese.encode("shift_jis"), "shift_jis").text == japanese
    assert decode_text(japanese.encode(), "shift_jis").text == japanese


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(range(32)) * 4, b"a\0b\0c\0"])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFileError, match="so it is not text"):
        decode_text(data)


def test_a_page_is_read_by_what_it_says_itself() -> None:
    page = f"<html><head><meta charset=gb2312></head><body>{SIMPLE}</body></html>"
    assert decode_html(page.encode("gbk")).text == page
    wrong = f'<meta http-equiv="Content-Type" content="text/html; charset=nonsense">{SIMPLE}'
    assert decode_html(wrong.encode()).text == wrong


def test_a_codec_that_gives_no_text_is_refused() -> None:
    with pytest.raises(UnreadableFileError):
        decode_text(b"\xff\xfe1"[:1] + b"\xe9 x", "hex")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Срок уведомления три месяца, в письменной форме.", "koi8-r"),
        ("これは日本語のテストです。契約の期間は三か月です。", "shift_jis"),
        ("合約的違約金為合約金額的百分之十。第一條 必須以書面形式提出。", "gbk"),
    ],
)
def test_a_text_whose_encoding_cannot_be_told_is_refused_and_not_garbled(text: str, encoding: str) -> None:
    with pytest.raises(UnreadableFileError, match="its encoding cannot be detected"):
        decode_text(text.encode(encoding))
    assert decode_text(text.encode(encoding), encoding).text == text


KOREAN = "근로 계약을 해지하려면 세 달 전에 서면으로 알려야 합니다. 위약금은 계약 금액의 십분의 일입니다."


@pytest.mark.parametrize(
    ("text", "encoding"), [(KOREAN, "euc-kr"), ("これは日本語の文章です。契約の期間です。", "euc-jp")]
)
def test_without_a_detector_korean_and_japanese_are_refused_and_not_read_as_chinese(text: str, encoding: str) -> None:
    with pytest.raises(UnreadableFileError, match=r"may be Chinese, Korean or Japanese|cannot be detected"):
        decode_text(text.encode(encoding))
    assert decode_text(text.encode(encoding), "", lambda _sample: encoding.replace("-", "_")).text == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [SIMPLE, OLD, WESTERN, KOREAN])
def test_utf16_is_read_without_a_byte_order_mark(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == (text, encoding, 0, True)


def test_a_detector_that_is_wrong_does_not_garble_a_common_text() -> None:
    for detected in ("cp865", "utf-8", "nonsense", ""):
        assert decode_text(SIMPLE.encode("gbk"), "", lambda _sample, name=detected: name).text == SIMPLE  # type: ignore[misc]  # a default
    assert decode_text(WESTERN.encode("cp1252"), "", lambda _sample: "cp865") == (WESTERN, "cp1252", 0, False)
