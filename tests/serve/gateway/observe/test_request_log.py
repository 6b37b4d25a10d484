"""The log of the gateway: one line for each request, nothing of what was said, and no secret."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

import pytest
from hypothesis import given, strategies as st

from taoloop.core.redaction.redactor import Redactor
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.serve.gateway.observe.request_log import LogFormat, RequestLog
from taoloop.testing import FakeClock

SECRET = "hunter2-is-my-secret"
AT = "2027-01-15T08:00:00.000Z"


class Bench:
    """A log in memory."""

    def __init__(self, form: LogFormat = "json", *secrets: str) -> None:
        self.stream = io.StringIO()
        self.log = RequestLog(form, Redactor(secrets), stream=self.stream, clock=FakeClock())

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def test_a_line_of_text_is_one_line_that_people_can_read() -> None:
    bench = Bench("text")
    bench.log.write("request", status=200, seconds=0.5, key="my shop", agent="数学", error="a=b", route="/v1/x")
    assert bench.text == (
        f'{AT} info    request status=200 seconds=0.5 key="my shop" agent=数学 error="a=b" route=/v1/x\n'
    )


@given(st.text(alphabet=st.characters(exclude_categories=())), st.sampled_from(["json", "text"]))
def test_whatever_a_value_is_it_stays_on_its_line(value: str, form: LogFormat) -> None:
    bench = Bench(form)
    bench.log.write("request", key=value, traceback=value)
    bench.log.message(value)
    assert bench.text.count("\n") == 2
    assert len(bench.text.splitlines()) == 2


def test_no_secret_gets_into_a_line() -> None:
    for form in ("json", "text"):
        bench = Bench(form, SECRET)
        bench.log.write("request", key=f"x {SECRET}", agent=SECRET)
        bench.log.message(f"The file is broken near {SECRET} and sk-abcdefghijklmnop1234567890.")
        assert SECRET not in bench.text
        assert "sk-abcdefghijkl" not in bench.text


def test_the_log_of_a_gateway_knows_the_secrets_of_environment_and_file() -> None:
    stream = io.StringIO()
    log = RequestLog("json", redactor_for({"DEEPSEEK_API_KEY": "first-secret-value"}, {"own": SECRET}), stream=stream)
    log.message(f"first-secret-value and {SECRET}")
    assert "first-secret-value" not in stream.getvalue()
    assert SECRET not in stream.getvalue()


def test_a_value_is_cut_before_it_fills_the_disk() -> None:
    bench = Bench()
    bench.log.write("request", key="x" * 1_000_000)
    assert len(bench.text) < 5_000


def test_records_of_the_library_become_lines_with_their_traceback() -> None:
    bench = Bench("json", SECRET)
    with bench.log.capture_loggers():
        logging.getLogger("taoloop.gateway").warning("a %s", f"trouble {SECRET}")
        try:
            raise ValueError(SECRET)
        except ValueError:
            logging.getLogger("taoloop.gateway").exception("request %s failed", "r-1")
        logging.getLogger("aiohttp.server").info("not worth a line")
    warning, failure = bench.lines
    assert (warning["level"], warning["logger"]) == ("warning", "taoloop.gateway")
    assert warning["message"].startswith("a trouble")
    assert (failure["level"], failure["message"]) == ("error", "request r-1 failed")
    assert "ValueError" in failure["traceback"]
    assert SECRET not in bench.text


def test_afterwards_records_go_where_they_went_before(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    with bench.log.capture_loggers():
        pass
    logging.getLogger("taoloop.gateway").warning("after")
    assert bench.text == ""
    assert "after" in caplog.text


def test_a_stream_that_is_gone_holds_nothing_up() -> None:
    bench = Bench()
    bench.stream.close()
    bench.log.message("nobody hears this")


def test_requests_at_once_do_not_share_a_line() -> None:
    bench = Bench()

    async def main() -> None:
        async def one(number: int) -> None:
            await asyncio.sleep(0)
            bench.log.write("request", request_id=str(number))

        await asyncio.gather(*map(one, range(50)))

    asyncio.run(main())
    assert {line["request_id"] for line in bench.lines} == {str(number) for number in range(50)}
