from __future__ import annotations

import json
from decimal import Decimal
from email import message_from_bytes
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl

import pytest

from taoloop.errors import InvalidArguments
from taoloop.tools.openapi.document.operation import Body, Encoding
from taoloop.tools.openapi.http.request_body import EncodedBody, decode_file, encode_body


def body(kind: str, media_type: str, *names: str, **more: Any) -> Body:
    schema = more.pop("schema", {"type": "object", "properties": {name: {} for name in names}})
    return Body(kind=kind, media_type=media_type, schema=schema, args={f"arg_{n}": n for n in names}, **more)  # type: ignore[arg-type]


def sent(body: Body, args: dict[str, Any]) -> EncodedBody:
    made = encode_body(body, args)
    assert made is not None
    return made


def parts(made: EncodedBody) -> list[Message]:
    message = message_from_bytes(b"Content-Type: " + made.content_type.encode() + b"\r\n\r\n" + made.data)
    return [part for part in message.get_payload() if isinstance(part, Message)]


def test_json_has_the_names_of_the_wire_and_every_digit() -> None:
    one = body("json", "application/json", "id", "amount", "x")
    made = sent(one, {"arg_id": 12345678901234567, "arg_amount": Decimal("1.10"), "arg_x": [1e-7, None, True, "ü\n"]})
    assert made.data.decode() == '{"id":12345678901234567,"amount":1.10,"x":[0.0000001,null,true,"ü\\n"]}'
    assert made.content_type == "application/json"


def test_a_body_that_is_one_argument_is_sent_as_it_is() -> None:
    whole = Body(kind="json", media_type="application/json", schema={}, whole_arg="body", required=True)
    assert sent(whole, {"body": [1, {"a": {}}, []]}).data == b'[1,{"a":{}},[]]'
    assert sent(whole, {"body": None}).data == b"null"
    assert encode_body(whole, {}) is None


def test_nothing_is_sent_where_nothing_is_given_and_nothing_needed() -> None:
    assert encode_body(body("json", "application/json", "a"), {}) is None
    assert sent(body("json", "application/json", "a", required=True), {}).data == b"{}"


def test_a_form_repeats_lists_and_writes_objects_as_json() -> None:
    made = sent(
        body("form", "application/x-www-form-urlencoded", "a", "b", "c"),
        {"arg_a": "x y&z", "arg_b": [1, 2], "arg_c": {"k": "v"}},
    )
    assert b"+" not in made.data
    assert parse_qsl(made.data.decode()) == [("a", "x y&z"), ("b", "1"), ("b", "2"), ("c", '{"k":"v"}')]


def test_an_encoding_changes_how_a_field_of_a_form_is_sent() -> None:
    encodings = {
        "a": Encoding(style="deepObject"),
        "b": Encoding(style="form", explode=False),
        "c": Encoding(content_type="application/json"),
    }
    one = body("form", "application/x-www-form-urlencoded", "a", "b", "c", encodings=encodings)
    made = sent(one, {"arg_a": {"k": 1}, "arg_b": [1, 2], "arg_c": [1]})
    assert parse_qsl(made.data.decode()) == [("a[k]", "1"), ("b", "1,2"), ("c", "[1]")]


def test_multipart_has_files_values_objects_and_lists() -> None:
    schema = {
        "type": "object",
        "properties": {
            "file": {"$ref": "#/$defs/F"},
            "purpose": {"type": "string"},
            "meta": {"type": "object"},
            "images": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
        "$defs": {"F": {"type": "string", "format": "binary"}},
    }
    one = body("multipart", "multipart/form-data", "file", "purpose", "meta", "images", schema=schema)
    made = sent(
        one,
        {
            "arg_file": "data:image/png;base64,iVBORw0KGgo=",
            "arg_purpose": "vision",
            "arg_meta": {"a": 1},
            "arg_images": ["one", "two"],
        },
    )
    file, purpose, meta, first, second = parts(made)
    assert (file.get_filename(), file.get_content_type()) == ("file", "image/png")
    assert file.get_payload(decode=True) == b"\x89PNG\r\n\x1a\n"
    assert (purpose.get_filename(), purpose.get_payload()) == (None, "vision")
    assert (meta.get_content_type(), json.loads(str(meta.get_payload()))) == ("application/json", {"a": 1})
    assert [one.get_payload() for one in (first, second)] == ["one", "two"]
    assert first.get_content_type() == "application/octet-stream"


def test_an_encoding_gives_a_part_its_type_and_headers() -> None:
    encodings = {"a": Encoding(content_type="text/csv, text/plain", headers={"X-Part": "1"})}
    (part,) = parts(sent(body("multipart", "multipart/form-data", "a", encodings=encodings), {"arg_a": "1,2"}))
    assert (part.get_content_type(), part["X-Part"], part.get_filename()) == ("text/csv", "1", "a")


def test_no_name_and_no_value_breaks_out_of_its_part() -> None:
    name = 'a"\r\nX-Evil: 1'
    made = sent(body("multipart", "multipart/form-data", name), {f"arg_{name}": "--x\r\n\r\nX"})
    (part,) = parts(made)
    assert part["X-Evil"] is None
    assert part.get_payload() == "--x\r\n\r\nX"


def test_the_same_arguments_make_the_same_bytes() -> None:
    one = body("multipart", "multipart/form-data", "a")
    assert sent(one, {"arg_a": "x"}) == sent(one, {"arg_a": "x"})


def test_text_has_its_charset_and_bytes_come_from_a_data_address() -> None:
    text = Body(kind="text", media_type="text/plain", schema={}, whole_arg="body")
    assert sent(text, {"body": "ü"}) == EncodedBody("ü".encode(), "text/plain; charset=utf-8")
    assert sent(text, {"body": 1.5}).data == b"1.5"
    sdp = Body(kind="text", media_type="application/sdp", schema={}, whole_arg="body")
    assert sent(sdp, {"body": "v=0"}).content_type == "application/sdp"
    raw = Body(kind="binary", media_type="application/octet-stream", schema={}, whole_arg="body")
    assert sent(raw, {"body": "data:;base64,AAE="}).data == b"\0\1"
    assert sent(raw, {"body": "plain"}).data == b"plain"


def test_a_data_address_is_read_in_both_its_forms() -> None:
    assert decode_file("f", "data:text/plain,a%20b") == (b"a b", "text/plain")
    assert decode_file("f", "data: not one") == (b"data: not one", "")
    with pytest.raises(InvalidArguments) as caught:
        decode_file("f", "data:image/png;base64,???")
    assert caught.value.code == "invalid_argument"


def test_a_form_needs_an_object() -> None:
    whole = Body(
        kind="form", media_type="application/x-www-form-urlencoded", schema={}, whole_arg="body", required=True
    )
    with pytest.raises(InvalidArguments):
        encode_body(whole, {"body": [1]})
