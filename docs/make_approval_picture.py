"""Write docs/approval.svg and docs/approval.zh.svg: a terminal in which a person is asked whether a call may run.

A real `tao run` in a pseudo-terminal with a scripted model, drawn by Rich. Run: python docs/make_approval_picture.py
"""

from __future__ import annotations

import fcntl
import html
import io
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

WIDTH = 100
QUESTION = b"[q]"
QUIET_S = 3.0  # a terminal that writes nothing for so long waits for its user
MOST_SILENCES = 10

AGENT = """\
name: bookkeeper
model: scripted:script.yaml
tools: [read_file, "bank:pay"]
"""
BANK = '''\
from taoloop import tool


@tool(tier="write")
def pay(account: str, amount_eur: float) -> str:
    """{purpose}"""
    return f"{result}"
'''
SCRIPT = """\
- text: {thoughts[0]}
  tool_calls: [{{name: read_file, args: {{path: invoice.txt}}}}]
- text: {thoughts[1]}
  tool_calls: [{{name: pay, args: {{account: DE89 3704 0044 0532 0130 00, amount_eur: 420}}}}]
- text: {thoughts[2]}
"""


@dataclass(frozen=True)
class Words:
    """The words of a picture in one language."""

    target: str
    task: str
    purpose: str
    result: str
    invoice: str
    thoughts: tuple[str, str, str]
    note: str


PICTURES = {
    "en": Words(
        target="approval.svg",
        task="Pay the invoice in invoice.txt.",
        purpose="Transfer money to a bank account.",
        result="Transferred {amount_eur:g} EUR to {account}.",
        invoice="Please transfer 420 EUR to DE89 3704 0044 0532 0130 00.",
        thoughts=(
            "First I read the invoice.",
            "The invoice names the account and the amount.",
            "I have not paid the invoice. You refused the payment because nothing was ordered.",
        ),
        note="We did not order anything from them",
    ),
    "zh": Words(
        target="approval.zh.svg",
        task="支付 invoice.txt 中的发票。",
        purpose="向银行账户转账。",
        result="已向 {account} 转账 {amount_eur:g} 欧元。",
        invoice="请向 DE89 3704 0044 0532 0130 00 转账 420 欧元。",
        thoughts=(
            "先读取发票。",
            "发票里写明了账户和金额。",
            "发票尚未支付：你拒绝了这笔付款，因为没有订购过任何东西。",
        ),
        note="我们没有向他们订购过任何东西",
    ),
}
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
 aria-label="tao run asks for approval">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}</style>
<defs>{lines}
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}" /></clipPath>
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""
THEME = TerminalTheme(
    (30, 33, 39),
    (220, 223, 228),
    [
        (60, 65, 75),
        (240, 110, 120),
        (150, 200, 120),
        (230, 190, 120),
        (100, 170, 240),
        (200, 130, 220),
        (90, 190, 200),
        (220, 223, 228),
    ],
)


def record(folder: Path, language: str, words: Words) -> str:
    """What `tao run` shows up to the end, where the person answers no."""
    bank = BANK.replace("{purpose}", words.purpose).replace("{result}", words.result)
    files = {"agent.yaml": AGENT, "bank.py": bank, "invoice.txt": words.invoice}
    files["script.yaml"] = SCRIPT.format(thoughts=words.thoughts)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", "from taoloop.cli import main; main()", "run", words.task]
    command += ["--agent", "agent.yaml", "--workspace", ".", "--db", "runs.db"]
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.chdir(folder)
        os.environ |= {
            "COLUMNS": str(WIDTH),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TAOLOOP_LANG": language,
            "LOGNAME": "ann",
            "USER": "ann",
        }
        os.execv(command[0], command)  # noqa: S606  # our own command line
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    output, answers = b"", [b"n\n", f"{words.note}\n".encode()]
    silences = 0
    while True:
        readable, _, _ = select.select([terminal], [], [], QUIET_S)
        if readable:
            try:
                output += (part := os.read(terminal, 65536))
            except OSError:  # Linux reports the end of the other side so
                break
            if not part:
                break
        elif answers and QUESTION in output:
            os.write(terminal, answers.pop(0))
        elif (silences := silences + 1) > MOST_SILENCES:
            os.kill(process_id, signal.SIGKILL)
            raise RuntimeError(f"the run did not end: {output.decode('utf-8')}")
    os.waitpid(process_id, 0)
    return output.decode("utf-8").replace(f"{folder}/", "")


def draw(output: str, task: str) -> str:
    """The output of a terminal as SVG, without what moves the cursor."""
    shown = re.sub(r"\x1b\[\??[0-9;]*[A-LN-Zac-ln-z]", "", output).replace("\r", "")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f'$ tao run "{task}" --agent agent.yaml --workspace .', style="bold"))
    console.print(Text.from_ansi(shown.strip("\n")))
    picture = console.export_svg(title="tao run", theme=THEME, code_format=SVG, unique_id="tao")
    return re.sub(r'textLength="([\d.]+)"([^>]*)>([^<]*)', widen, picture)


def widen(match: re.Match[str]) -> str:
    """A text with the room of its cells: Rich counts characters, and a Chinese one takes two cells."""
    text = html.unescape(match[3])
    length = float(match[1]) * cell_len(text) / max(1, len(text))
    return f'textLength="{length:g}"{match[2]}>{match[3]}'


if __name__ == "__main__":
    for language, words in PICTURES.items():
        with tempfile.TemporaryDirectory() as scratch:
            picture = draw(record(Path(scratch), language, words), words.task)
        Path(__file__).with_name(words.target).write_text(picture, encoding="utf-8")
