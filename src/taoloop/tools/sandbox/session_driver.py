"""The program in a sandbox that keeps a Python session: it runs piece after piece of code in one namespace.

It is copied into the sandbox and run there by whatever Python 3 the sandbox has, so it imports nothing but the standard
library. Each line that it reads from its descriptor is a JSON object with the `code` of one call; when the code has run
it writes a line with the `exit_code`: 0, 1 after an exception, or what the code passed to `sys.exit`. What the code
prints goes to the process's own streams. The code of a session shares this process and can do to it what it likes: it
could write such a line itself, and would deceive nobody but itself.
"""

from __future__ import annotations

import ast
import builtins
import json
import linecache
import os
import sys
import traceback
from typing import Any


def run_code(code: str, name: str, namespace: dict[str, Any]) -> int:
    """Run a piece of code and show the value of its last line if that is an expression, as Python's prompt does.

    `name` stands for the file in tracebacks. Gives the exit code.
    """
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), namespace)  # noqa: S102  # what the sandbox is for
        if last is not None:
            exec(compile(ast.Interactive([last]), name, "single"), namespace)  # noqa: S102  # likewise
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0)
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException as error:  # noqa: BLE001  # the code's own; the session outlives it
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, ast.__file__):
            frames = frames.tb_next  # how the code is run is none of its business
        sys.stderr.write("".join(traceback.format_exception(type(error), error, frames)))
        return 1
    return 0


def reopen_streams(kept: dict[str, int]) -> None:
    """Open the streams that a piece of code has closed again: what the next one prints must not be lost.

    `kept` has another descriptor of each stream, by its name.
    """
    for fd, name in ((1, "stdout"), (2, "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.dup2(kept[name], fd)
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            setattr(sys, name, open(fd, "w", encoding="utf-8", closefd=False))  # noqa: SIM115  # a descriptor


def serve(fd: int) -> None:
    """Run what comes on the descriptor until its other end is closed."""
    os.set_inheritable(fd, False)
    kept = {"stdout": os.dup(1), "stderr": os.dup(2)}
    namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    with os.fdopen(fd, "rb") as requests:
        for number, line in enumerate(requests, 1):
            exit_code = run_code(json.loads(line)["code"], f"<call {number}>", namespace)
            reopen_streams(kept)
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(fd, json.dumps({"exit_code": exit_code}).encode() + b"\n")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
