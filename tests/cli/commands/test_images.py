"""`tao run --attach`, and images in what is shown and written."""

from __future__ import annotations

from tests.models.test_openai import CALL, completion
from tests.pictures import PDF, png
from tests.shell import Shell

from taoloop import Image
from taoloop.testing import HttpDouble

CAT, CHART = Image(png(4, 4)), Image(png(5, 5))
TOOLS = f"""
from taoloop import Image, tool

@tool(tier="read")
def add(a: int, b: int) -> Image:
    "Draw a sum."
    return Image(bytes.fromhex("{CHART.data.hex()}"))
"""


def seen(tao: Shell, *options: str) -> tuple[str, list[dict[str, object]]]:
    """A run with two images of the task and one of a tool: its id, and the requests to the model."""
    (tao.folder / "cat.png").write_bytes(CAT.data)
    (tao.folder / "drawing.py").write_text(TOOLS)
    with HttpDouble([completion(CALL, "tool_calls"), completion({"content": "A cat."})]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        ended = tao(
            *("run", "What is in it?", "--image", "cat.png", "--image", "cat.png", "--tools", "drawing:add"),
            *("--model", "openai:tiny", "--json", *options),
            code=0,
            **env,
        )
    return str(ended.events[0]["run_id"]), server.requests


def test_images_are_given_and_shown_by_their_labels(tao: Shell) -> None:
    run_id, requests = seen(tao, "--vision")
    assert len(requests[0]["messages"][1]["content"]) == 3  # type: ignore[index]  # JSON
    for view in ((), ("--events",), ("--steps",), ("--raw",)):
        shown = " ".join(tao("show", run_id, *view, code=0).out.split())
        assert shown.count(f"[image png 4×4, 73 B, {CAT.info.ref}]") == 2
        assert CAT.base64 not in shown
    assert f"[image png 5×5, 74 B, {CHART.info.ref}]" in " ".join(tao("show", run_id, code=0).out.split())
    assert CHART.base64 not in tao("show", run_id, "--json", code=0).out
    assert "the same as recorded" in tao("replay", run_id, code=0).out
    assert tao("verify", run_id, code=0).err == ""


def test_a_picture_for_a_model_that_does_not_see_is_refused_before_the_run(tao: Shell) -> None:
    (tao.folder / "cat.png").write_bytes(CAT.data)
    for options in ((), ("--no-vision",)):
        run = ("run", "What is in it?", "--attach", "cat.png", "--model", "openai:tiny", *options)
        ended = tao(*run, code=2, OPENAI_API_KEY="k")
        assert "The model openai:tiny is not known to see images." in ended.one_line
        assert "--vision" in ended.one_line
    assert "there is no journal" in tao("runs", code=11).err


def test_texts_and_pdfs_are_attached_and_written_out_again(tao: Shell) -> None:
    (tao.folder / "sales.csv").write_text("month,sum\nmay,7\n")
    (tao.folder / "offer.pdf").write_bytes(PDF)
    files = ("--attach", "sales.csv", "--attach", "offer.pdf")
    with HttpDouble([completion({"content": "Seven."})]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        tao("run", "How much?", *files, "--model", "openai:gpt-4o", code=0, **env)
    content = server.requests[0]["messages"][1]["content"]
    assert "may,7" in content[0]["text"]
    assert content[1]["file"]["filename"] == "offer.pdf"
    shown = " ".join(tao("show", "last", code=0).out.split())
    assert "[file sales.csv, text/csv, 16 B, file_" in shown
    tao("show", "last", "--save-images", str(tao.folder / "out"), code=0)
    written = {path.suffix: path.read_bytes() for path in (tao.folder / "out").iterdir()}
    assert written == {".csv": b"month,sum\nmay,7\n", ".pdf": PDF}
    assert tao("verify", "last", code=0).err == ""


def test_show_writes_the_images_of_a_run(tao: Shell) -> None:
    run_id, _ = seen(tao, "--vision")
    folder = tao.folder / "out"
    ended = tao("show", run_id, "--save-images", str(folder), code=0)
    files = {path.name: path for path in folder.iterdir()}
    assert {name: path.read_bytes() for name, path in files.items()} == {
        f"{image.info.ref}.png": image.data for image in (CAT, CHART)
    }
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    assert ended.err.count("File written: ") == 2
    tao("show", run_id, "--save-images", str(folder), code=0)


def test_an_export_names_the_images_and_holds_no_bytes(tao: Shell) -> None:
    run_id, _ = seen(tao, "--vision")
    for form in ("jsonl", "html", "md"):
        text = tao("export", run_id, "--format", form, code=0).out
        assert (CAT.info.digest if form == "jsonl" else CAT.info.ref) in text
        assert CAT.base64 not in text
    (tao.folder / "run.jsonl").write_text(tao("export", run_id, code=0).out)
    tao("verify", "--file", "run.jsonl", code=0)


def test_a_bad_image_is_one_line_and_no_run(tao: Shell) -> None:
    (tao.folder / "a.png").write_text("no image")
    assert (
        "a.png is named as image/png, and its bytes are text/plain"
        in tao("run", "What?", "--image", "a.png", code=2).one_line
    )
    assert "nowhere.png cannot be read" in tao("run", "What?", "--image", "nowhere.png", code=2).one_line
    assert "文件" in tao("run", "什么？", "--image", "a.png", code=2, TAOLOOP_LANG="zh").one_line
    assert "there is no journal" in tao("runs", code=11).err
    assert "--attach" in tao("run", "--resume", "x", "--image", "a.png", code=2).err


def test_two_runs_with_other_images_differ_in_their_task(tao: Shell) -> None:
    (tao.folder / "a.png").write_bytes(CAT.data)
    (tao.folder / "b.png").write_bytes(CHART.data)
    first, second = (
        tao("run", "What?", "--image", name, "--model", tao.script("x"), "--json", code=0).events[0]["run_id"]
        for name in ("a.png", "b.png")
    )
    assert "task" in tao("diff", first, second, code=1).out
