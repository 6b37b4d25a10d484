"""The program as a whole: bad input gets one clear line that names the way out, and an exit code; help and version."""

import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.shell import ENTRY, WAIT_S, Ended, Shell, call, launch

import taoloop
from taoloop.cli.exit_codes import OF_STATUS, TABLE


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["run"], "Give a TASK"),
        (["run", " "], "The task is empty"),
        (["run", "x", "--resume", "y"], "--resume continues the original task"),
        (["run", "--resume", "y", "--context-tokens", "9"], "--resume keeps the settings of the run"),
        (["run", "--resume", "y", "--no-closing-turn"], "omit --no-closing-turn"),
        (["run", "x", "--memory", ""], "--memory is empty"),
        (["run", "x", "--workspace", " "], "--workspace is empty"),
        (["run", "x", "--model", "offline", "--db", ""], "--db is empty"),
        (["show", "x", "--db", " "], "--db is empty"),
        (["run", "x", "--output-schema", "none.json"], "none.json: there is no such file. Check the path."),
        (["run", "two", "words"], "quote it: tao run 'two words'"),
        (["run", "x", "--model", "nope"], "no model called 'nope'. Known: offline, scripted"),
        (["run", "x", "--model", "openai:m"], "OPENAI_API_KEY is not set"),
        (
            ["run", "x", "--model", "scripted:none.yaml"],
            "'none.yaml' cannot be read: No such file or directory. Check the path.",
        ),
        (
            ["run", "x", "--model", "replay:none.jsonl"],
            "'none.jsonl' cannot be read: No such file or directory. Record one with: tao show RUN_ID",
        ),
        (["run", "x", "--model", "scripted:bad.yaml"], "not a list of replies"),
        (
            ["run", "x", "--model", "scripted:ok.yaml", "--dialect", "latin"],
            "no dialect called 'latin'. Known: fenced, json",
        ),
        (["run", "x", "--model", "scripted:ok.yaml", "--strategy", "luck"], "no strategy called 'luck'. Known: react"),
        (
            ["run", "x", "--model", "scripted:ok.yaml", "--tools", "hammer"],
            "no tool called 'hammer'. Known: calculator",
        ),
        (["run", "x", "--model", "scripted:ok.yaml", "--prompts", "none"], "prompt folder"),
        (["run", "x", "--agent", "none.yaml"], "none.yaml: there is no such file"),
        (["run", "x", "--agent", "none:agent"], "there is no module 'none'"),
        (["run", "x", "--agent", "json:dumps"], "json:dumps"),
        (["run", "x", "--workspace", "ok.yaml"], "is a file"),
        (["run", "x", "--max-steps", "0"], "--max-steps"),
        (["run", "--resume", "1999"], "no run '1999'"),
        (["runn"], "Did you mean 'run'?"),
        (["What is 3+4?"], "To run a task, use: tao run"),
        (["show", "zz"], "no run 'zz'"),
        (["tools", "hammer"], "no tool called 'hammer'"),
        (["tools", "calculater"], "Did you mean 'calculator'?"),
        (["run", "x", "--model", "opanai:m"], "Did you mean 'openai'?"),
    ],
)
def test_a_wrong_word_is_named_with_the_way_out(tao: Shell, args: list[str], expected: str) -> None:
    tao("run", "x", "--model", tao.script("y", name="ok.yaml"), code=0)
    tao.write("bad.yaml", "just: a mapping\n")
    assert expected in tao(*args, code=2).one_line


def test_an_unreadable_env_file_is_named_and_a_bad_line_only_ignored(tao: Shell) -> None:
    (tao.folder / ".env").write_bytes(b"KEY=\xff\xfe")
    assert "not UTF-8 text" in tao("models", code=2).one_line
    assert "fail  .env" in tao("doctor", code=1).out
    tao.write(".env", "OPENAI_API_KEY=sk-secret-1234\nthis is no assignment\n")
    ended = tao("models", code=0)
    assert ".env:2: this is not NAME=value" in ended.one_line
    assert "openai:gpt-4o-mini  ready" in ended.out
    assert "sk-secret" not in ended.out


def test_an_env_that_is_no_file_is_named(tao: Shell) -> None:
    path = tao.folder / ".env"
    path.mkdir()
    assert f"{path}: it is a folder" in tao("run", "x", "--model", "offline", code=2).one_line
    path.rmdir()
    os.mkfifo(path)
    assert f"{path}: it is a pipe" in tao("run", "x", "--model", "offline", code=2).one_line
    path.unlink()
    path.symlink_to("nowhere")
    assert f"{path}: it is a link to a file that does not exist" in tao("doctor", code=1).out
    path.unlink()
    assert tao("runs", code=11).out == ""


def test_output_that_cannot_be_written_is_one_line(tao: Shell) -> None:
    model = tao.script(call("calculator", expression="6*7"), "42")
    run_id = tao("run", "x", "--model", model, "--json", code=0).events[0]["run_id"]
    run = ["run", "x", "--model", model]
    for args in (run, [*run, "--json"], ["runs"], ["show", run_id], ["--help"]):
        with Path("/dev/full").open("w") as full:
            process = launch(args, tao.folder, tao.env, stdout=full.fileno(), stderr=subprocess.PIPE)
            _, err = process.communicate(timeout=WAIT_S)
        assert process.returncode == 1, err
        told = [line for line in err.splitlines() if line.startswith("tao: ")]
        assert len(told) == 1
        assert "output cannot be written: No space left on device." in told[0]
        assert "Traceback" not in err
        if args[0] == "run":
            _, _, stopped_id = told[0].partition("Go on with the run: tao run --resume ")
            newest = tao("runs", "--json", code=0).events[0]
            assert (newest["run_id"], newest["status"]) == (stopped_id or newest["run_id"], told_status(told[0]))
            if stopped_id:
                assert tao("run", "--resume", stopped_id, "--json", code=0).events[-1]["answer"] == "42"


def told_status(line: str) -> str:
    """How a run stands that could not be shown: one that was over at once could not be stopped any more."""
    return "completed" if line.endswith("The run is completed.") else "stopped"


def test_a_command_without_standard_streams_still_runs(tao: Shell) -> None:
    run = [*ENTRY, "run", "x", "--model", tao.script("y")]
    line = f"{shlex.join(run)} <&- >&- 2>&-"
    subprocess.run(["bash", "-c", line], cwd=tao.folder, env=tao.env, check=True)
    assert len(tao("runs", "--status", "completed", "--json", code=0).events) == 1


def test_a_folder_that_is_made_is_told_and_the_database_is_private(tao: Shell) -> None:
    model = tao.script("y")
    args = ["run", "x", "--model", model, "--workspace", "tpyo", "--db", "data/new/x.db"]
    told = tao(*args, code=0).err.splitlines()
    assert [line.split(" was created ")[0] for line in told] == [
        f"tao: The folder {tao.folder / 'tpyo'}",
        "tao: The folder data/new",
    ]
    assert tao(*args, code=0).err == ""
    made = tao.folder / "data" / "new"
    assert [oct(path.stat().st_mode & 0o777) for path in (made, made / "x.db")] == ["0o700", "0o600"]


def test_the_environment_wins_over_the_env_file(tao: Shell) -> None:
    tao.write(".env", "TAOLOOP_MODEL=scripted:none.yaml\n")
    tao("run", "x", code=2)
    tao("run", "x", TAOLOOP_MODEL=tao.script("y"), code=0)


def test_a_missing_sdk_is_told_before_the_run(tao: Shell) -> None:
    tao.write("sitecustomize.py", "import sys\nsys.modules['openai'] = None\n")
    env = {"PYTHONPATH": str(tao.folder), "OPENAI_API_KEY": "k"}
    refused = tao.fresh_process("run", "x", "--model", "openai:m", code=2, **env)
    assert "pip install 'taoloop[openai]'" in refused.one_line
    assert tao("runs", code=11).out == ""


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()


def _no_database(path: Path) -> None:
    path.write_text("just a text that is long enough to be no header of a database at all\n" * 20)


def _folder_missing(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [(_newer, "by a newer taoloop"), (_no_database, "not a journal"), (_folder_missing, "journal")],
)
def test_a_database_that_cannot_be_used_is_named(tao: Shell, spoil: object, expected: str) -> None:
    db = tao.folder / "runs.db"
    tao("run", "x", "--model", tao.script("y"), code=0)
    assert callable(spoil)
    spoil(db)
    for args in (["run", "x", "--model", "scripted:script.yaml"], ["runs"], ["show", "2"]):
        ended = tao(*args)
        assert ended.code == 11
        assert str(db) in ended.one_line
        assert expected in ended.one_line.lower()
    assert "fail  database" in tao("doctor", code=1).out


def test_a_place_that_cannot_be_written_is_named(tao: Shell) -> None:
    model = tao.script("y")
    assert (
        "/proc/none.db: the journal cannot be opened"
        in tao("run", "x", "--model", model, "--db", "/proc/none.db", code=11).one_line
    )


def test_a_full_disk_is_named_and_what_was_kept_goes_on(tao: Shell) -> None:
    declared = 'from taoloop import tool\n\n@tool(tier="read", purpose="Make a large text.")\n'
    tao.write("large.py", f"{declared}def large(n: int) -> str:\n    return 'x' * n\n")
    model = tao.script(call("large", n=1), call("large", n=2_000_000), "done")
    run = [*ENTRY, "run", "x", "--model", model, "--tools", "large:large", "--json"]
    line = f"ulimit -f 1000; {shlex.join(run)}"
    full = subprocess.run(
        ["bash", "-c", line], cwd=tao.folder, env=tao.env, capture_output=True, text=True, check=False
    )
    assert full.returncode == 11
    assert "runs.db" in full.stderr.splitlines()[-1]
    run_id = tao("runs", "--json", "--status", "running", code=0).events[0]["run_id"]
    kinds = [event["kind"] for event in tao("show", run_id, "--json", code=0).events]
    assert kinds.count("observed") == 1
    tao("run", "--resume", run_id, "--tools", "large:large", "--json", code=0)


@pytest.fixture(scope="module")
def lock_reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """What a run says whose database another process has locked, by language; the time limit runs for both at once."""
    tao = Shell(tmp_path_factory.mktemp("locked"))
    run = ("run", "x", "--model", tao.script("y"))
    tao(*run, code=0)
    with closing(sqlite3.connect(tao.folder / "runs.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        processes = {language: tao.start(*run, TAOLOOP_LANG=language) for language in ("en", "zh")}
        outputs = {language: process.communicate(timeout=WAIT_S) for language, process in processes.items()}
    assert len(tao("runs", "--json", code=0).events) == 1, "nothing is lost, and nothing was added"
    return {language: Ended(process.returncode, *outputs[language]) for language, process in processes.items()}


def test_a_locked_database_is_named_and_nothing_is_lost(lock_reports: dict[str, Ended]) -> None:
    assert lock_reports["en"].code == 11
    assert "another process holds the database" in lock_reports["en"].one_line


def test_a_database_that_another_process_has_locked_is_reported_in_chinese(lock_reports: dict[str, Ended]) -> None:
    assert lock_reports["zh"].code == 11
    assert "另一个进程正占用该数据库；没有写入任何内容。" in lock_reports["zh"].one_line


def test_an_ambiguous_id_lists_what_it_may_mean(tao: Shell) -> None:
    model = tao.script("y")
    ids = [tao("run", "x", "--model", model, "--json", code=0).events[0]["run_id"] for _ in range(2)]
    message = tao("show", ids[0][:4], code=2).one_line
    assert all(run_id in message for run_id in ids)


def test_an_error_of_our_own_is_one_line_and_debug_shows_where(tao: Shell) -> None:
    tao.write("sitecustomize.py", "import taoloop.cli.database\ntaoloop.cli.database.query_database = None\n")
    path = {"PYTHONPATH": str(tao.folder)}
    assert "unexpected TypeError" in tao.fresh_process("runs", code=1, **path).one_line
    assert "Traceback" in tao.fresh_process("runs", code=1, TAOLOOP_DEBUG="1", **path).err


def test_every_status_has_its_own_code_and_the_help_tells_all(tao: Shell) -> None:
    assert len(set(OF_STATUS.values())) == len(OF_STATUS)
    shown = tao("--help", code=0).out
    assert all(f"  {code} " in shown for code in TABLE)
    assert all(status in shown for status in OF_STATUS)


@pytest.mark.parametrize(
    ("replies", "options", "code"),
    [
        (["no json", "no json"] * 3, ["--dialect", "json"], OF_STATUS["unreadable"]),
        ([call("calculator", expression="1/0")] * 3 + ["x"], [], OF_STATUS["too_many_errors"]),
        ([call("calculator", expression="1")] * 6, ["--max-steps", "9"], OF_STATUS["repeated_action"]),
        ([call("calculator", expression="1")] * 2, ["--max-tool-calls", "1"], OF_STATUS["budget_exceeded"]),
    ],
)
def test_the_exit_code_is_that_of_the_status(tao: Shell, replies: list[object], options: list[str], code: int) -> None:
    events = tao("run", "x", "--model", tao.script(*replies), *options, "--json", code=code).events
    assert OF_STATUS[events[-1]["status"]] == code


@pytest.mark.parametrize(
    "args", [["-h"], ["--help"], ["run", "-h"], ["runs", "--help"], ["show", "-h"], ["replay", "-h"]]
)
def test_every_help_page_has_examples(tao: Shell, args: list[str]) -> None:
    assert "  tao " in tao(*args, code=0).out


def test_the_version_is_told(tao: Shell) -> None:
    assert tao("--version", code=0).out == f"tao {taoloop.__version__}\n"


def test_help_loads_neither_rich_nor_the_runtime() -> None:
    code = (
        "import sys; from taoloop.cli.app import execute; execute(['--version']);"
        "heavy = ('rich', 'asyncio', 'pydantic', 'yaml', 'sqlite3', 'taoloop.runtime.agent');"
        "print([name for name in heavy if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"
