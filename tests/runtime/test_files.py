"""Files of tasks and of tools, from the caller to the model and back."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.pictures import PDF, SeeingModel, png, texts
from tests.runtime.test_images import in_loop

from taoloop import Agent, File, Image, MemoryJournal, SqliteJournal, load_attachment, tool
from taoloop.errors import ConfigError, FileError, ImageError, InvalidOutput, JournalTampered
from taoloop.models import ScriptedModel
from taoloop.policy import tainted
from taoloop.runtime.after.replay import replay

CAT, OFFER, TABLE = Image(png(4, 4)), File(PDF, name="offer.pdf"), File(b"month,sum\nmay,7\n", name="sales.csv")
REPORT = ("report", "{}")


@tool(tier="read")
def report() -> list[str | Image | File]:
    """Make a report."""
    return ["Done:", OFFER, TABLE, Image(png(5, 5))]


def agent(*replies: Any, **options: Any) -> tuple[SeeingModel, Agent]:
    model = SeeingModel(*replies, sees=options.pop("sees", True))
    return model, Agent(model=model, tools=[report], **options)


def test_a_task_is_a_list_of_texts_images_files_and_paths(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_bytes(TABLE.data)
    (tmp_path / "cat.png").write_bytes(CAT.data)
    model, asking = agent("Seven.")
    result = asking.run_sync(["How much?", OFFER, tmp_path / "sales.csv", "In May.", tmp_path / "cat.png"])
    started = result.trace.started
    assert started is not None
    assert (started.task, started.images, started.files) == (
        "How much?\nIn May.",
        (CAT.info,),
        (OFFER.info, TABLE.info),
    )
    [request] = model.requests
    assert request.image_data == {item.info.ref: item.base64 for item in (CAT, OFFER, TABLE)}
    assert f"[file offer.pdf, application/pdf, {len(PDF)} B, {OFFER.info.ref}]" in texts(request)
    assert OFFER.base64 not in str(result.trace.events)
    assert tainted(result.trace), "somebody else may have written them"


@pytest.mark.parametrize(
    ("name", "content", "error_type", "why"),
    [
        ("big.png", 200_000_000, FileError, "has 200,000,000 bytes, and at most 20,000,000 are taken"),
        ("big.pdf", 200_000_000, FileError, "has 200,000,000 bytes"),
        ("a.pdf", b"GIF89a", FileError, r"a\.pdf is named as application/pdf, and its bytes are image/gif"),
        ("a.png", png()[:-16], ImageError, r"a\.png: The image is cut off"),
        ("a.zip", b"PK\x03\x04", FileError, "a task takes images, PDF and texts"),
        ("a.txt", b"", FileError, r"a\.txt is empty"),
        ("folder", None, FileError, "folder cannot be read: it is no regular file"),
        ("pipe", "fifo", FileError, "pipe cannot be read: it is no regular file"),
        ("missing.txt", "none", FileError, r"missing\.txt cannot be read: No such file"),
    ],
)
def test_a_bad_file_is_an_error_before_anything_is_stored(
    tmp_path: Path, name: str, content: Any, error_type: type[Exception], why: str
) -> None:
    path = tmp_path / name
    if isinstance(content, int):
        with path.open("wb") as file:
            file.truncate(content)  # of no blocks: it would be large in memory only
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content is None:
        path.mkdir()
    elif content == "fifo":
        os.mkfifo(path)
    journal = MemoryJournal()
    with pytest.raises(error_type, match=why):
        agent("ok", journal=journal)[1].run_sync(["What?", path])
    assert asyncio.run(journal.runs()) == []


def test_other_bad_tasks_are_errors() -> None:
    _, asking = agent("ok", secrets=["hunter22"])
    for task, why in (
        (["What?", 5], "Part 1 of the task is int"),
        (["What?", b"bytes"], "Part 1 of the task is bytes"),
        ([CAT], "The task is ''"),
        (["What?", *[TABLE] * 21], "21 images and files"),
        (["What?", File(b"a hunter22")], "contains a known secret"),
        (["What?", Image.from_url("https://a.example/?key=hunter22")], "contains a known secret"),
    ):
        with pytest.raises(ConfigError, match=why):
            asking.run_sync(task)  # type: ignore[arg-type]  # as callers without types do


def test_what_a_model_cannot_read_is_refused_with_its_name_and_the_way_out() -> None:
    journal = MemoryJournal()
    blind = agent("ok", sees=False, journal=journal)[1]
    with pytest.raises(ImageError, match="The model seeing is not known to see images") as caught:
        blind.run_sync(["What?", CAT])
    assert "vision=True" in str(caught.value.hint)
    assert "sees_images" in str(caught.value.hint)
    with pytest.raises(FileError, match="The model seeing is not known to read PDF"):
        blind.run_sync(["What?", OFFER])
    assert asyncio.run(journal.runs()) == []
    assert blind.run_sync(["What?", TABLE, Image(CAT.data, alt="a cat")]).answer == "ok"
    assert Agent(model=ScriptedModel(["ok"])).run_sync(["What?", CAT, OFFER]).answer == "ok", "it reads no prompt"


def test_a_tool_returns_files_which_the_trace_names_and_the_result_has() -> None:
    model, asking = agent(REPORT, ("read_observation", f'{{"artifact": "{TABLE.info.ref}"}}'), "ok")
    result = asking.run_sync("Report.")
    observed = result.trace.calls["call_1"].observed
    assert observed is not None
    assert observed.output.splitlines()[1] == f"[file offer.pdf, application/pdf, {len(PDF)} B, {OFFER.info.ref}]"
    assert observed.files == (OFFER.info, TABLE.info)
    assert result.files == (OFFER, TABLE)
    assert [file.name for message in model.requests[1].messages for file in message.files] == ["offer.pdf"]
    assert set(model.requests[1].image_data or {}) == {OFFER.info.ref, result.images[0].info.ref}
    assert "may,7" not in texts(model.requests[1])
    assert "may,7" in texts(model.requests[2]), "a text is read by its name, page by page"
    assert OFFER.base64 not in str(result.trace.events)


def test_files_may_be_in_data_and_the_address_of_an_image_is_no_result() -> None:
    def data() -> dict[str, Any]:
        """Give data."""
        return {"file": OFFER, "sum": 7}

    def address() -> Image:
        """Give an address."""
        return Image.from_url("https://a.example/?q=secret")

    output = tool(tier="read")(data).render(data())
    assert (output.form, output.files) == ("json", (OFFER,))
    with pytest.raises(InvalidOutput, match=r"not the address https://a\.example"):
        tool(tier="read")(address).render(address())


def test_an_image_by_its_url_is_named_and_never_fetched() -> None:
    remote = Image.from_url("https://a.example/cat.png", alt="a cat")
    model, asking = agent("A cat.", journal=(journal := MemoryJournal()))
    result = asking.run_sync(["What?", remote])
    assert model.requests[0].image_data is None
    assert model.requests[0].messages[-1].images == (remote.info,)
    assert f"[image at https://a.example/cat.png, {remote.info.ref}: a cat]" in texts(model.requests[0])
    assert asyncio.run(journal.artifact(result.run_id, remote.info.ref)) is None
    assert asyncio.run(journal.verify(result.run_id)).whole
    assert all(step.same for step in replay(result.trace))


@pytest.mark.parametrize(
    "url", ["ftp://a/b.png", "data:image/png;base64,AA", "https://", "https://u:p@a/b", "https://a/ b"]
)
def test_an_address_that_is_none_is_refused(url: Any) -> None:
    with pytest.raises(ImageError, match="no http"):
        Image.from_url(url)


SCRIPT = """
import os, signal, sys
from pathlib import Path
from taoloop import Agent, File, tool
from tests.pictures import PDF, SeeingModel
from tests.runtime.test_files import report

class Dying(SeeingModel):
    async def complete(self, request):
        if self.requests:
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().complete(request)

agent = Agent(model=Dying(("report", "{}")), tools=[report], journal=sys.argv[1])
agent.run_sync(["What?", File(PDF, name="offer.pdf")], run_id="r1")
"""


def test_a_killed_run_resumes_forks_and_replays_with_its_files(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", SCRIPT, path], cwd=root, check=False, env={**os.environ})
    assert ended.returncode == -signal.SIGKILL
    model, again = agent("Resumed.", journal=path)
    result = again.resume_sync("r1")
    assert result.answer == "Resumed."
    assert {OFFER.info.ref, CAT.info.ref} & set(model.requests[0].image_data or {}) == {OFFER.info.ref}
    assert result.files == (OFFER, TABLE)
    assert all(step.same for step in replay(result.trace))
    fork = asyncio.run(again.fork("r1", at=1))
    for run_id in ("r1", fork.run_id):
        assert asyncio.run(verified(path, run_id))


async def verified(path: Path, run_id: str) -> bool:
    async with SqliteJournal(path) as journal:
        return (await journal.verify(run_id)).whole


@in_loop
async def test_a_missing_file_is_a_clear_error_for_resume_and_fork_and_a_flaw_of_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    _, asking = agent(REPORT, "ok", journal=path, max_steps=1)
    result = await asking.run(["What?", OFFER])
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM artifact WHERE ref = ?", (OFFER.info.ref,))
    async with SqliteJournal(path) as journal:
        flaw = (await journal.verify(result.run_id)).first
    assert flaw is not None
    assert OFFER.info.ref in flaw.text
    with pytest.raises(JournalTampered, match=OFFER.info.ref):
        await asking.fork(result.run_id, at=1)
    with pytest.raises(JournalTampered, match=OFFER.info.ref):
        await asking.resume(result.run_id, max_steps=5)


def test_a_path_is_loaded_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.jpeg").write_bytes(CAT.data)
    (tmp_path / "sales.csv").write_bytes(TABLE.data)
    assert load_attachment(tmp_path / "a.jpeg") == CAT, "an image of another format is an image"
    assert load_attachment(str(tmp_path / "sales.csv")) == TABLE
