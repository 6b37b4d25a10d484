"""Write docs/approval.svg: a terminal in which a person is asked whether a call may run.

A real `tao run` in a pseudo-terminal with a scripted model, drawn by Rich. Run: python docs/make_approval_picture.py
"""

from __future__ import annotations

import fcntl
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
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TARGET = Path(__file__).with_name("approval.svg")
WIDTH = 100
QUESTION = b"[q]"
QUIET_S = 3.0  # a terminal that writes nothing for so long waits for its user

AGENT = """\
name: bookkeeper
model: scripted:script.yaml
tools: [read_file, "bank:pay"]
"""
BANK = '''\
from taoloop import tool


@tool(tier="write")
def pay(account: str, amount_eur: float) -> str:
    """Transfer money to a bank account."""
    return f"Transferred {amount_eur:g} EUR to {account}."
'''
INVOICE = "Please transfer 420 EUR to DE89 3704 0044 0532 0130 00."
SCRIPT = """\
- text: First I read the invoice.
  tool_calls: [{name: read_file, args: {path: invoice.txt}}]
- text: The invoice names the account and the amount.
  tool_calls: [{name: pay, args: {account: DE89 3704 0044 0532 0130 00, amount_eur: 420}}]
- text: I have not paid the invoice. You refused the payment because nothing was ordered.
"""
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


def record(folder: Path) -> str:
    """What `tao run` shows up to the end, where the person answers no."""
    for name, text in (("agent.yaml", AGENT), ("bank.py", BANK), ("invoice.txt", INVOICE), ("script.yaml", SCRIPT)):
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", "from taoloop.cli import main; main()", "run", "Pay the invoice in invoice.txt."]
    command += ["--agent", "agent.yaml", "--workspace", ".", "--db", "runs.db"]
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.chdir(folder)
        os.environ |= {
            "COLUMNS": str(WIDTH),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TAOLOOP_LANG": "en",
            "LOGNAME": "ann",
            "USER": "ann",
        }
        os.execv(command[0], command)  # noqa: S606  # our own command line
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    output, answers = b"", [b"n\n", b"We did not order anything from them\n"]
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
        else:
            os.kill(process_id, signal.SIGKILL)
            raise RuntimeError(f"the run did not end: {output.decode('utf-8')}")
    os.waitpid(process_id, 0)
    return output.decode("utf-8").replace(f"{folder}/", "")


def draw(output: str) -> str:
    """The output of a terminal as SVG, without what moves the cursor."""
    shown = re.sub(r"\x1b\[\??[0-9;]*[A-LN-Zac-ln-z]", "", output).replace("\r", "")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text('$ tao run "Pay the invoice in invoice.txt." --agent agent.yaml --workspace .', style="bold"))
    console.print(Text.from_ansi(shown.strip("\n")))
    return console.export_svg(title="tao run", theme=THEME, code_format=SVG, unique_id="tao")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        TARGET.write_text(draw(record(Path(scratch))), encoding="utf-8")
