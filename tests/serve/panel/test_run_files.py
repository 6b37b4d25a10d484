"""What a run contains, whole: texts, prompts, outputs, exports, and the run as a test case."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import zipfile
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.core.views.every_fact import FACTS
from tests.pictures import png
from tests.serve.panel.panels import Browser, browse
from tests.serve.panel.run_samples import HOSTILE, answered, put, started, steps

from taoloop import Agent, File, Image, MemoryJournal, ScriptedModel, tool
from taoloop.core.events import Compensated, Fact, Observed
from taoloop.journals.base import Artifact
from taoloop.runtime.engine.run_artifacts import attachment_artifact


def journal_with(*facts: Fact, artifacts: tuple[Artifact, ...] = ()) -> MemoryJournal:
    journal = MemoryJournal()
    asyncio.run(put(journal, "r1", facts, artifacts))
    return journal


def test_a_long_text_is_cut_on_the_page_and_whole_as_a_file() -> None:
    output = "y" * 200_000 + HOSTILE

    async def scenario(browser: Browser) -> None:
        page = await browser.get("/runs/r1")
        assert len(page) < 60_000
        assert 'href="/runs/r1/events/3/texts/0">Whole text: ' in page
        response = await browser.request("GET", "/runs/r1/events/3/texts/0")
        assert response.content_type == "text/plain"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert await response.text() == output
        part = await browser.get("/runs/r1/events/1/texts/1", is_fragment=True)  # what is folded on the page
        assert "I read page 1." in part
        assert "has no text 7" in await browser.get("/runs/r1/events/3/texts/7", 400)
        assert "no event 99" in await browser.get("/runs/r1/events/99/texts/0", 404)
        assert "no number" in await browser.get("/runs/r1/events/x/texts/0", 404)

    facts = [started(), *list(steps(1))[:2], Observed(call_id="call_1", ok=True, output=output)]
    browse(journal_with(*facts), scenario)


def test_outputs_are_files_and_a_missing_one_is_said() -> None:
    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", "/runs/r1/artifacts/obs_1")
        assert (response.content_type, await response.text()) == ("text/plain", HOSTILE)
        image = await browser.request("GET", "/runs/r1/artifacts/img_1")
        assert (image.content_type, await image.read()) == ("image/png", png())
        assert image.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert image.headers["X-Content-Type-Options"] == "nosniff"
        for ref in ("img_2", "img_3", "file_1"):  # a drawing with scripts, a page that is called an image, a page
            response = await browser.request("GET", f"/runs/r1/artifacts/{ref}")
            assert response.content_type == "application/octet-stream"
            assert response.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{ref}.bin"
            assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert "is not in the journal any more" in await browser.get("/runs/r2/artifacts/img_1", 404)
        assert "is not in the journal any more" in await browser.get("/runs/r1/artifacts/gone", 404)

    markup = b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>").decode()
    artifacts = (
        Artifact(ref="obs_1", body=HOSTILE),
        Artifact(ref="img_1", body=b64encode(png()).decode(), form="image/png"),
        Artifact(ref="img_2", body=markup, form="image/svg+xml"),
        Artifact(ref="img_3", body=markup, form="image/png"),
        Artifact(ref="file_1", body=markup, form="text/html"),
    )
    browse(journal_with(started(), artifacts=artifacts), scenario)


def test_images_are_on_the_page_and_files_are_links() -> None:
    picture, page = Image(png(4, 4), alt='"><script>'), File(b"<b>", name="a b.html")

    async def scenario(browser: Browser) -> None:
        text = await browser.get("/runs/r1")
        address = f"/runs/r1/artifacts/{picture.info.ref}"
        assert f'<img src="{address}" alt="&#34;&gt;&lt;script&gt;" width="4" height="4"' in text
        assert f'<a href="/runs/r1/artifacts/{page.info.ref}" download>Download a b.html</a>' in text
        response = await browser.request("GET", f"/runs/r1/artifacts/{page.info.ref}")
        assert response.headers["Content-Disposition"] == "attachment; filename*=UTF-8''a%20b.html"

    facts = (replace(started(), images=(picture.info,), files=(page.info,)), *steps(1))
    browse(journal_with(*facts, artifacts=(attachment_artifact(picture), attachment_artifact(page))), scenario)


def test_an_event_as_it_is_stored() -> None:
    async def scenario(browser: Browser) -> None:
        record = json.loads(await browser.get("/runs/r1/events/3/record"))
        assert (record["kind"], record["seq"], record["call_id"]) == ("observed", 3, "call_1")

    browse(journal_with(started(), *steps(1)), scenario)


def test_a_prompt_that_no_run_implies_is_said() -> None:
    async def scenario(browser: Browser) -> None:
        assert "No prompt was sent for event 2." in await browser.get("/runs/r1/events/2/prompt", 400)
        part = await browser.get("/runs/r1/events/1/prompt", is_fragment=True)
        assert "Count the mentions of tea." in part

    browse(journal_with(started(), *steps(1)), scenario)


def test_exports_are_those_of_the_command_line() -> None:
    """S3-36, S3-44."""

    async def scenario(browser: Browser) -> None:
        lines = (await browser.get("/runs/r1/export.jsonl")).splitlines()
        assert [json.loads(line)["seq"] for line in lines] == list(range(6))
        assert all(len(json.loads(line)["hash"]) == 64 for line in lines)
        text = await browser.get("/runs/r1/export.md")
        assert text.startswith("# Run report")
        response = await browser.request("GET", "/runs/r1/export.html")
        assert response.headers["Content-Disposition"] == "attachment; filename*=UTF-8''r1.html"
        page = await response.text()
        assert "As it was written: the hash chain of 6 events is whole." in page
        assert "<script>" not in page
        assert "There is no format &#39;pdf&#39;" in await browser.get("/runs/r1/export.pdf", 400)

    browse(journal_with(started(HOSTILE), *steps(1), *answered(2)), scenario)


def test_every_kind_of_event_can_be_exported() -> None:
    async def scenario(browser: Browser) -> None:
        assert "outer" in await browser.get("/runs/r1/export.md")

    ended = [fact for fact in FACTS if fact.kind not in ("judged_again", "compensated")]
    browse(journal_with(*ended), scenario)
    assert any(isinstance(fact, Compensated) for fact in FACTS)


@tool(tier="read")
def price(item: str) -> int:
    """The price of an item."""
    return 3


def test_the_test_case_passes_for_the_code_of_today_and_fails_for_other_decisions(tmp_path: Path) -> None:
    journal = MemoryJournal()
    script: list[Any] = [{"tool_calls": [{"name": "price", "args": {"item": "tea"}}]}, "Tea is 3."]
    agent = Agent(model=ScriptedModel(script), tools=[price], journal=journal)
    task = 'What is tea? """ + __import__("os").abort() + """ \\" {x}\n'
    run_id = asyncio.run(agent.run(task)).run_id
    archives: list[bytes] = []

    async def scenario(browser: Browser) -> None:
        response = await browser.request("GET", f"/runs/{run_id}/test-case.zip")
        assert response.content_type == "application/zip"
        archives.append(await response.read())

    browse(journal, scenario)
    with zipfile.ZipFile(io.BytesIO(archives[0])) as archive:
        archive.extractall(tmp_path)
    (path,) = tmp_path.glob("test_*.py")
    (record,) = tmp_path.glob("*.jsonl")
    arguments = [
        sys.executable,
        "-c",
        f"import runpy; [f() for n, f in runpy.run_path({str(path)!r}).items() if n[:5] == 'test_']",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record.write_text(record.read_text("utf-8").replace('"status":"completed"', '"status":"blocked"'), "utf-8")
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "the decision is another one now" in done.stderr
