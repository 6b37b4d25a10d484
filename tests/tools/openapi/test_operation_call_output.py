from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.pictures import png

from taoloop import Image
from taoloop.tools.egress import EgressResponse
from taoloop.tools.openapi.operation import DocumentedResponse, Operation
from taoloop.tools.openapi.operation_call import error_code, error_output, success_output
from taoloop.tools.openapi.request import PreparedRequest

PLAN = Operation(
    name="get_x",
    operation_id="x",
    method="GET",
    path="/x",
    document_path="paths./x.get",
    responses=(
        DocumentedResponse(status="404", description="No such\n order."),
        DocumentedResponse(status="5XX", description="Broken."),
    ),
)
REQUEST = PreparedRequest(
    method="GET", url="https://h/x?key=secret-secret", headers={}, body=None, timeout_s=1.0, safe_url="https://h/x"
)


def answer(body: bytes = b"", kind: str = "application/json", status: int = 200, **more: Any) -> EgressResponse:
    headers = {"content-type": kind} if kind else {}
    return EgressResponse(
        status=status, headers=headers | more.pop("headers", {}), body=body, url="https://h/x", **more
    )


def clean(text: str) -> str:
    return text.replace("secret-secret", "[redacted]")


def told(answered: EgressResponse) -> str:
    output = success_output(answered, clean)
    assert output.form == "json"
    json.loads(output.text)
    return output.text


def fault(answered: EgressResponse, *, is_repeatable: bool = True) -> Any:
    return error_output(PLAN, REQUEST, answered, clean, is_repeatable=is_repeatable)


def test_json_is_given_in_the_servers_own_digits_with_its_status() -> None:  # S1-61
    body = b'{"id": 12345678901234567890, "p": 1.10, "e": 1E400}'
    assert told(answer(body)) == '{"status":200,"body":{"id": 12345678901234567890, "p": 1.10, "e": 1E400}}'


@pytest.mark.parametrize("kind", ["application/problem+json; charset=utf-8", "text/plain", "", "text/html"])
def test_json_is_known_by_its_type_or_by_its_form(kind: str) -> None:
    assert told(answer(b" [1,2] ", kind)) == '{"status":200,"body":[1,2]}'


def test_text_is_a_text_with_its_type() -> None:
    assert json.loads(told(answer("ü\n".encode(), "text/csv"))) == {"status": 200, "type": "text/csv", "body": "ü\n"}


def test_what_says_that_it_is_json_and_is_not_is_given_as_text() -> None:
    made = json.loads(told(answer(b"{oops")))
    assert made["body"] == "{oops"
    assert "is not" in made["note"]
    assert json.loads(told(answer(b"NaN")))["body"] == "NaN"


def test_anything_else_is_base64_with_its_size() -> None:
    made = json.loads(told(answer(b"\x89PNG\0", "image/png")))
    assert made == {"status": 200, "type": "image/png", "bytes": 5, "base64": base64.b64encode(b"\x89PNG\0").decode()}
    assert json.loads(told(answer(b"\0\1", "")))["type"] == "application/octet-stream"


def test_a_picture_is_an_image_by_its_bytes() -> None:
    picture = Image(png(4, 4))
    for kind in ("image/png", "application/octet-stream", "text/plain", ""):
        output = success_output(answer(picture.data, kind), clean)
        label = f"[image png 4×4, 73 B, {picture.info.ref}]"
        assert json.loads(output.text) == {"status": 200, "type": "image/png", "image": label}
        assert output.images == (picture,)
    output = success_output(answer(picture.data[:40], "image/png", is_cut=True), clean)
    assert output.images == ()
    assert json.loads(output.text)["cut"] is True


def test_no_body_is_a_status_alone_and_telling_headers_stay() -> None:
    made = told(answer(status=201, headers={"location": "/x/7", "set-cookie": "s=1"}))
    assert made == '{"status":201,"headers":{"location":"/x/7"}}'


def test_a_cut_body_says_so() -> None:
    made = json.loads(told(answer(b'{"a": [1, 2', is_cut=True)))
    assert (made["cut"], made["body"]) == (True, '{"a": [1, 2')
    assert json.loads(told(answer(b"\0\1", "image/png", is_cut=True)))["cut"] is True


def test_no_secret_comes_back() -> None:
    assert "secret-secret" not in told(answer(b'{"you sent": "secret-secret"}'))
    assert "secret-secret" not in str(fault(answer(b"secret-secret", "text/plain", 500)))


def test_a_secret_that_was_a_number_leaves_no_broken_json() -> None:
    made = success_output(answer(b'{"pin": 12345678}'), lambda text: text.replace("12345678", "[redacted]"))
    assert (made.form, made.text) == ("text", '{"status":200,"body":{"pin": [redacted]}}')


def test_a_redirect_says_where_it_leads_without_its_query() -> None:
    error = fault(answer(status=307, headers={"location": "https://h/y?key=secret-secret"}))
    assert "It redirects to https://h/y; " in error.hint


def test_an_error_has_status_class_and_body() -> None:  # S1-36, S1-61
    error = fault(answer(b'{"detail": "no order 7"}', status=404))
    assert error.code == "not_found"
    assert error.message == 'GET https://h/x returned HTTP 404 Not Found: {"detail": "no order 7"}'
    assert "No such order." in error.hint
    assert not error.retryable


def test_the_body_of_an_error_is_trimmed_by_structure() -> None:
    body = json.dumps({"detail": "bad", "trace": ["x" * 100] * 500}).encode()
    error = fault(answer(body, status=422))
    assert len(error.message) < 1_600
    assert '"detail":"bad"' in error.message
    assert len(fault(answer(b"<p>oops</p>\n" * 900, "text/html", 500)).message) < 1_600
    assert "(3 bytes of image/png)" in fault(answer(b"\0\1\2", "image/png", 500)).message


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (400, "bad_request", False),
        (401, "unauthorized", False),
        (403, "forbidden", False),
        (409, "conflict", False),
        (418, "client_error", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (503, "unavailable", True),
        (599, "server_error", False),
        (302, "redirected", False),
    ],
)
def test_every_status_has_a_class(status: int, code: str, retryable: bool) -> None:
    error = fault(answer(status=status))
    assert (error.code, error.retryable) == (code, retryable)
    assert error.message.startswith(f"GET https://h/x returned HTTP {status}")


def test_a_write_that_failed_may_have_happened() -> None:  # S1-58
    error = fault(answer(status=500), is_repeatable=False)
    assert not error.retryable
    assert "may have taken effect" in error.hint
    assert fault(answer(status=429), is_repeatable=False).retryable


def test_documented_statuses_have_the_same_classes() -> None:
    assert [error_code(one) for one in ("404", "4XX", "5xx", "default", 302)] == [
        "not_found",
        "client_error",
        "server_error",
        "http_error",
        "redirected",
    ]
