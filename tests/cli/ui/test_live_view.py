"""The view on a real terminal (a pty): spinner, widths, colours, questions to the person."""

import errno
import os
import pty
import re
from collections.abc import Iterator

import pytest
from rich.cells import cell_len
from tests.shell import Shell, call, launch, waiting

from taoloop.cli.options import current_user

TOOLS = '''
import pathlib, time
from taoloop import tool

@tool(tier="read")
def slow(name: str) -> str:
    """Wait until a file is there."""
    while not pathlib.Path(name).exists():
        time.sleep(0.02)
    return "\\x1b[2J[red]there[/red]"

@tool(tier="write")
def book(place: str, note: str = "") -> str:
    """Book a table at a place."""
    return "booked " + place
'''


class Terminal:
    """`tao` on a pty of 60 columns."""

    def __init__(self, tao: Shell, *args: str, **env: str) -> None:
        self._main, side = pty.openpty()
        variables = tao.env | {"TERM": "xterm-256color", "COLUMNS": "60", "LINES": "40"} | env
        self.process = launch(args, tao.folder, variables, stdin=side, stdout=side, stderr=side, has_terminal=True)
        os.close(side)
        self.seen = ""

    def until(self, text: str) -> str:
        """Read on until `text` stands there; gives all that was read."""
        with waiting(self.process, repr(text), self._screen):
            while text not in self.seen:
                assert self._read(), f"the process ended before {text!r}: {self._screen()}"
        return self.seen

    def type(self, line: str) -> None:
        os.write(self._main, line.encode() + b"\n")

    def end(self) -> int:
        with waiting(self.process, "the end of the command", self._screen):
            while self._read():
                pass
        return self.process.wait(timeout=30)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._main)

    def _screen(self) -> str:
        return plain(self.seen)

    def _read(self) -> bool:
        try:
            data = os.read(self._main, 65536)
        except OSError as error:
            if error.errno == errno.EIO:  # the other side is closed
                return False
            raise
        self.seen += data.decode("utf-8", "replace")
        return bool(data)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def started(terminals: list[Terminal], tao: Shell, *replies: object, task: str = "go", **env: str) -> Terminal:
    tao.write("mytools.py", TOOLS)
    tao.script(*replies)
    tao.write("agent.yaml", 'model: scripted:script.yaml\ntools: ["mytools:slow", "mytools:book"]\n')
    terminals.append(Terminal(tao, "run", task, "--agent", "agent.yaml", **env))
    return terminals[-1]


WRITING = '''
import asyncio, pathlib
from taoloop import Agent
from taoloop.core.message import Delta, ModelReply

class Writing:
    """Writes half of its answer, and the rest once a file is there."""

    spec = "writing"
    dialect = "native"

    async def complete(self, request):
        if request.on_delta is not None:
            request.on_delta(Delta(kind="text", text="a void beginning"))
            request.on_delta(Delta(kind="restart"))
            request.on_delta(Delta(kind="text", text="half of \\x1b[2Jan answer"))
            while not pathlib.Path("now").exists():
                await asyncio.sleep(0.02)
        return ModelReply(text="half of an answer, and the rest", cost_usd=0.0)

    def check_used(self, replies):
        pass

    async def close(self):
        pass

agent = Agent(model=Writing())
'''


WORKING = """
import asyncio, pathlib, time
from taoloop import Agent, tool
from taoloop.models.scripted import ScriptedModel
from taoloop.tools.tool import ToolContext

@tool(tier="read")
async def copy(context: ToolContext) -> str:
    \"\"\"Copy everything.\"\"\"
    context.progress("3 of 7 files")
    while not pathlib.Path("now").exists():
        await asyncio.sleep(0.02)
    return "copied"

agent = Agent(model=ScriptedModel([{"tool_calls": [{"name": "copy", "args": {}}]}, "All is there."]), tools=[copy])
"""


GENERATING = (
    WORKING[: WORKING.index("async def copy")]
    + """def copy():
    \"\"\"Copy everything.\"\"\"
    yield "3 of 7 files\\n"
    while not pathlib.Path("now").exists():
        time.sleep(0.02)
    yield "copied\\n"
"""
    + WORKING[WORKING.index("\nagent =") :]
)
"""The same as a generator."""


@pytest.mark.parametrize("code", [WORKING, GENERATING])
def test_what_a_tool_says_of_its_progress_is_shown_while_it_works(
    tao: Shell, terminals: list[Terminal], code: str
) -> None:
    tao.write("working.py", code)
    terminals.append(Terminal(tao, "run", "go", "--agent", "working:agent"))
    terminals[0].until("copy: 3 of 7 files")
    (tao.folder / "now").touch()
    assert terminals[0].end() == 0
    assert "copied" in terminals[0].seen


def test_a_reply_is_shown_while_it_is_being_written(tao: Shell, terminals: list[Terminal]) -> None:
    tao.write("writing.py", WRITING)
    terminals.append(Terminal(tao, "run", "go", "--agent", "writing:agent"))
    terminals[0].until("half of an")  # a word is shown once it is whole
    assert "void" not in terminals[0].seen
    (tao.folder / "now").touch()
    assert terminals[0].end() == 0
    assert "\x1b[2J" not in terminals[0].seen
    assert "and the rest" in terminals[0].seen
    kinds = [event["kind"] for event in tao("run", "go", "--agent", "writing:agent", "--json", code=0).events]
    assert kinds == ["run_started", "model_replied", "finished"], "no pieces among the events"


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")


def test_a_slow_tool_shows_its_name_and_the_seconds(tao: Shell, terminals: list[Terminal]) -> None:
    terminal = started(terminals, tao, call("slow", name="now"), "done")
    terminal.until("slow… 1 s")
    (tao.folder / "now").touch()
    assert terminal.end() == 0
    assert "[red]there[/red]" in terminal.seen
    assert "\x1b[2J" not in terminal.seen
    assert "\x1b[?25h" in terminal.seen, "the cursor is back"


def test_ctrl_c_on_the_terminal_tells_how_to_go_on(tao: Shell, terminals: list[Terminal]) -> None:
    terminal = started(terminals, tao, call("slow", name="never"), "done")
    terminal.until("slow…")
    terminal.process.send_signal(2)
    assert terminal.end() == 130
    assert "Resume: tao run --resume" in plain(terminal.seen)


def test_a_chinese_run_is_stopped_in_chinese(tao: Shell, terminals: list[Terminal]) -> None:
    terminal = started(terminals, tao, call("slow", name="never"), "好", task="等一等")
    terminal.until("slow…")
    terminal.process.send_signal(2)
    assert terminal.end() == 130
    screen = plain(terminal.seen)
    assert "tao: 正在停止" in screen
    assert "在完成之前已停止" in screen


def test_ctrl_c_at_a_question_stops_the_run_and_the_question_comes_again(tao: Shell, terminals: list[Terminal]) -> None:
    terminal = started(terminals, tao, call("book", place="x"), "done")
    terminal.until("[q] later:")
    terminal.process.send_signal(2)
    assert terminal.end() == 130
    run_id = tao("runs", "--status", "stopped", "--json", code=0).events[0]["run_id"]
    assert tao("run", "--resume", run_id, "--json", code=8).events[-1]["kind"] == "paused"


def test_the_question_of_a_chinese_run_is_chinese(tao: Shell, terminals: list[Terminal]) -> None:
    terminal = started(terminals, tao, call("book", place="小南国"), "好", task="订一张桌子")
    terminal.until("稍后再定：")
    terminal.type("y")
    assert terminal.end() == 0
    screen = plain(terminal.seen)
    assert "'book'是会外发数据的write级工具，需人工审批" in "".join(screen.split())  # it may be broken into lines
    assert "a person's approval" not in screen
    assert re.search(f"已批准 +由 {current_user(None)} 审批", screen)


def test_an_ascii_terminal_gets_english_labels_and_the_exact_arguments(tao: Shell, terminals: list[Terminal]) -> None:
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    terminal = started(terminals, tao, call("book", place="小"), "好", task="订一张桌子", **env)
    terminal.until("[q] later:")
    terminal.type("q")
    assert terminal.end() == 8
    screen = plain(terminal.seen)
    assert 'place = "\\u5c0f"' in screen
    assert "book is a write tool" in screen.replace("'", "")
    assert screen.count("\\u") == 2, "the argument, and what always would cover"


@pytest.mark.parametrize(("typed", "code", "shown"), [("n", 14, "was left alone"), ("y", 0, "Answer")])
def test_a_live_process_loses_its_run_only_when_a_person_says_so(
    tao: Shell, terminals: list[Terminal], typed: str, code: int, shown: str
) -> None:
    first = started(terminals, tao, call("slow", name="now"), "done")
    first.until("slow…")
    run_id = tao("runs", "--json", code=0).events[0]["run_id"]
    terminals.append(Terminal(tao, "run", "--resume", run_id))
    terminals[-1].until("End that process and take over the run?")
    assert str(first.process.pid) in plain(terminals[-1].seen)
    terminals[-1].type(typed)
    if code == 0:
        terminals[-1].until("slow…")
        (tao.folder / "now").touch()
    assert terminals[-1].end() == code
    assert shown in plain(terminals[-1].seen)
    (tao.folder / "now").touch()
    assert first.end() == (143 if code == 0 else 0)


def test_no_color_is_honoured(tao: Shell, terminals: list[Terminal]) -> None:
    coloured = started(terminals, tao, "yes")
    assert coloured.end() == 0
    assert re.search(r"\x1b\[[0-9;]*3[0-9]m", coloured.seen)
    bare = started(terminals, tao, "yes", NO_COLOR="1")
    assert bare.end() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", bare.seen)


def test_chinese_text_keeps_within_the_width(tao: Shell, terminals: list[Terminal]) -> None:
    terminal = started(terminals, tao, "这是一个很长的答案," * 20)
    assert terminal.end() == 0
    answer = plain(terminal.seen).split("Answer")[1].split("completed")[0]
    assert all(cell_len(line) <= 60 for line in answer.split("\n")[1:])


@pytest.mark.parametrize("columns", [12, 33])
def test_on_a_narrow_terminal_everything_is_there_below_its_label(
    tao: Shell, terminals: list[Terminal], columns: int
) -> None:
    terminal = started(terminals, tao, "这是一个很长的答案," * 9, COLUMNS=str(columns))
    assert terminal.end() == 0
    lines = plain(terminal.seen).splitlines()
    assert all(cell_len(line) <= columns for line in lines)
    assert "这是一个很长的答案," * 9 in "".join(line.strip() for line in lines)


def test_on_a_narrow_terminal_lists_are_whole_too(tao: Shell, terminals: list[Terminal]) -> None:
    run_id = tao("run", "看看", "--model", tao.script("y"), "--json", code=0).events[0]["run_id"]
    shown = {("runs",): (40, f"{run_id} completed 看看"), ("models",): (30, "openai:NAME missing set OPENAI_API_KEY")}
    for args, (columns, words) in shown.items():
        terminals.append(Terminal(tao, *args, COLUMNS=str(columns)))
        assert terminals[-1].end() == 0
        assert words in " ".join(plain(terminals[-1].seen).split())


@pytest.mark.parametrize(
    ("typed", "code", "shown"),
    [
        (["maybe", "y"], 0, f"Allowed by {current_user(None)}"),
        (["n", "too late"], 0, "A person refused this action: too late"),
        (["q"], 8, "--resume"),
    ],
)
def test_a_person_is_asked_with_the_whole_call(
    tao: Shell, terminals: list[Terminal], typed: list[str], code: int, shown: str
) -> None:
    terminal = started(terminals, tao, call("book", place="x", note="one\ntwo \x1b[31m\u202e" + "y" * 900), "done")
    for line, question in zip(
        typed,
        ("[q] later:", "Type one of these letters" if code == 0 and typed[0] == "maybe" else "Why not?"),
        strict=False,
    ):
        terminal.until(question)
        terminal.type(line)
    assert terminal.end() == code
    screen = plain(terminal.seen)
    assert shown in " ".join(screen.split())
    question = screen.split("May this call run?")[1].split("[y] yes")[0]
    bars = [line.strip()[1:].strip() for line in question.splitlines() if line.strip().startswith("│")]
    assert bars[0] == "one"
    assert "".join(bars[1:]) == "two\\x1b[31m\\u202e" + "y" * 900
