"""Images by their bytes, and what a trace says of them."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import replace

import pytest
from tests.pictures import gif, jpeg, png, webp

from taoloop import Image
from taoloop.core import images
from taoloop.core.agent_spec import AgentSpec
from taoloop.core.events import Event, Observed, RunStarted
from taoloop.core.images import MAX_IMAGE_BYTES, is_image
from taoloop.core.message import Message, message_tokens
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.stored_events import decode_fact, encode_fact
from taoloop.core.texts import image_label, task_with_attachments
from taoloop.core.trace import Trace, attachments_of
from taoloop.errors import ConfigError, ImageError

PICTURE = Image(png(800, 600), alt="a cat\n  on a mat")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (png(7, 5), "image/png"),
        (gif(7, 5), "image/gif"),
        (jpeg(7, 5), "image/jpeg"),
        (webp(b"VP8X", 7, 5), "image/webp"),
        (webp(b"VP8L", 7, 5), "image/webp"),
        (webp(b"VP8 ", 7, 5), "image/webp"),
    ],
)
def test_type_and_size_come_from_the_bytes(data: bytes, media_type: str) -> None:
    info = Image(data).info
    assert (info.media_type, info.width, info.height, info.size_bytes) == (media_type, 7, 5, len(data))
    assert is_image(data)


def test_an_image_is_named_after_its_content() -> None:
    info = PICTURE.info
    assert info.digest == hashlib.sha256(PICTURE.data).hexdigest()
    assert info.ref == f"img_{info.digest[:24]}"
    assert Image.from_base64(PICTURE.base64, alt="a cat on a mat") == PICTURE
    assert Image(PICTURE.data) != PICTURE
    assert len({PICTURE, Image.from_base64(PICTURE.base64, alt="a cat on a mat")}) == 1
    assert repr(PICTURE) == f"<Image png 800×600, {len(PICTURE.data)} bytes>"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no PNG"),
        (b"%PDF-1.7", "no PNG"),
        (png()[:14], "broken"),
        (png(0, 5), "broken"),
        (jpeg(7, 5)[:12], "broken"),
        (b"\xff\xd8\xff\xe1\x00\x00", "broken"),
        (webp(b"VP8X", 7, 5).replace(b"VP8X", b"ALPH"), "broken"),
        (png() + bytes(MAX_IMAGE_BYTES), "bytes, and at most"),
        ("a text", "str is no image"),
    ],
)
def test_what_is_no_usable_image_is_refused_with_a_reason(data: bytes, why: str) -> None:
    with pytest.raises(ImageError, match=why) as refused:
        Image(data)
    assert refused.value.hint
    assert isinstance(refused.value, ConfigError)


@pytest.mark.parametrize(
    "data", [png(7, 5), gif(7, 5), jpeg(7, 5), *(webp(kind, 7, 5) for kind in (b"VP8X", b"VP8L", b"VP8 "))]
)
def test_an_image_that_was_cut_anywhere_is_refused_and_more_behind_its_end_is_not(data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(ImageError, match=r"cut off|broken|no PNG"):
            Image(data[:size])
    with pytest.raises(ImageError, match="cut off: the end of its file of the type image/") as refused:
        Image(data[:-1])
    assert "whole" in refused.value.hint
    assert Image(data + b"\0\0").info.size_bytes == len(data) + 2


def test_an_image_that_a_journal_has_is_not_checked_again() -> None:
    cut = b64encode(png(7, 5)[:-12]).decode()
    stored = Image.stored(cut, PICTURE.info)
    assert (stored.base64, stored.info) == (cut, PICTURE.info)


def test_what_is_no_base64_is_refused() -> None:
    with pytest.raises(ImageError, match="not valid base64"):
        Image.from_base64("***")


def test_a_label_says_what_it_is_without_its_bytes() -> None:
    size = f"{len(PICTURE.data) / 1024:.0f} KB"
    assert image_label("en", PICTURE.info) == f"[image png 800×600, {size}, {PICTURE.info.ref}: a cat on a mat]"
    assert ", 2.0 MB, " in image_label("en", replace(PICTURE.info, size_bytes=2 * 1024 * 1024))
    assert image_label("zh", Image(png()).info).startswith("[图片 png 3×2，73 B，img_")
    started = RunStarted(task="What is it?", agent=AgentSpec(), nonce="n", images=(PICTURE.info,))
    assert task_with_attachments(started) == f"What is it?\n{image_label('en', PICTURE.info)}"


def test_events_without_images_are_stored_as_before_and_those_with_images_come_back() -> None:
    plain = (Message(role="user", content="a"), Message(role="assistant", content="b"))
    started = RunStarted(task="t", agent=AgentSpec(), nonce="n", history=plain)
    observed = Observed(call_id="call_1", ok=True, output="x")
    for fact in (started, observed):
        assert b"images" not in encode_fact(fact)
    turns = (replace(plain[0], images=(PICTURE.info,)), plain[1])
    with_images = (
        replace(started, images=(PICTURE.info,)),
        replace(started, history=turns),
        replace(observed, images=(PICTURE.info,)),
    )
    for fact in with_images:
        body = encode_fact(fact)
        assert body.count(b'"images":[{') == 1
        assert len(body) < len(encode_fact(started)) + 400
        assert decode_fact(fact.kind, body) == fact
        assert attachments_of(fact) == (PICTURE.info,)


def test_a_trace_knows_whether_it_has_attachments() -> None:
    started = RunStarted(task="t", agent=AgentSpec(), nonce="n")
    assert not Trace("r", [Event(0, 0.0, started)]).has_attachments
    turn = Message(role="user", content="a", images=(PICTURE.info,))
    for fact in (replace(started, images=(PICTURE.info,)), replace(started, history=(turn,))):
        assert Trace("r", [Event(0, 0.0, fact)]).has_attachments


def test_words_about_an_image_are_redacted_and_its_name_is_not() -> None:
    redactor = Redactor({"KEY": "hunter2-hunter2", "NAME": PICTURE.info.digest[:12]})
    info = Image(PICTURE.data, alt="it says hunter2-hunter2").info
    started = RunStarted(task="t", agent=AgentSpec(), nonce="n", images=(info,))
    observed = Observed(call_id="call_1", ok=True, output="x", images=(info,))
    for image in (*redactor.fact(started).images, *redactor.fact(observed).images):
        assert "hunter2" not in image.alt
        assert image.digest == info.digest
    assert redactor.holds_known(png(text="hunter2-hunter2"))
    assert not redactor.holds_known(png())


def test_an_image_counts_in_the_size_of_a_prompt() -> None:
    plain = Message(role="user", content="a")
    assert message_tokens(replace(plain, images=(PICTURE.info,))) == message_tokens(plain) + 800 * 600 // 750
    large = Image(png(4_000, 10)).info
    assert replace(large, height=9_000).tokens == images._MAX_IMAGE_TOKENS
