"""`tao chat`: a conversation at the terminal, one run for each line."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli.agent_loading import AgentOptions, database_of
from taoloop.cli.commands.run import new_session, run_command
from taoloop.cli.database import file_beside, load_environment
from taoloop.cli.translation import translate
from taoloop.cli.ui.chat_prompt import read_chat_lines
from taoloop.cli.ui.stdio import capture_stdout, print_stderr
from taoloop.errors import ConfigError, TaoError
from taoloop.runtime.agent import Agent
from taoloop.runtime.conversations.sessions import next_turn
from taoloop.runtime.engine.attachment_sources import load_attachment
from taoloop.translation import translate_error

_OF_ONE_RUN = {
    *("words", "resume", "take_over", "kill_holder", "recover", "as_json", "attach", "lessons_from", "output_schema"),
}
"""Parameters of `tao run` that a conversation does not have."""

_ABSENT: dict[str, Any] = {"attach": (), "lessons_from": (), "output_schema": None}


def _chat(after: str | None, session: str, db: str | None, *, verbose: bool, **arguments: Any) -> int:
    """Talk with an agent: each line is a task, and each run sees the tasks and answers of those before it.

    A call that changes something is put before you where it comes up. A line that begins with `/` is a command:
    `/attach PATH` adds a picture, a PDF or a text to the next line, `/quit` ends the conversation, as Ctrl-D does; `//`
    begins a task with one slash. Ctrl-C stops the run that is at work. Lines that were typed at a terminal are kept
    beside the database, in `chat_history`. From a pipe each line is a task, too; a run that waits or fails ends the
    conversation with its exit code.

      tao chat
      tao chat --agent agent.yaml --after last     go on with the newest run
      tao chat --session garden                    a conversation that this name finds again
      tao chat --workspace ~/notes --model openai:gpt-4o-mini
    """
    if after is not None and session:
        text = translate("--after and --session exclude each other; the session finds its last run.")
        raise click.UsageError(text)
    chat = _TerminalChat(after, session, db, verbose=verbose, arguments=arguments | _ABSENT)
    for line in read_chat_lines(chat.history):
        if not chat.take(line):
            break
    return chat.code


class _TerminalChat:
    """A conversation as far as it has come; `code` is the exit code of its last run."""

    def __init__(
        self, after: str | None, session: str, db: str | None, *, verbose: bool, arguments: dict[str, Any]
    ) -> None:
        self._after, self._session, self._db = after, session, db
        self._verbose, self._arguments = verbose, arguments
        self._env = load_environment()
        self._options = AgentOptions.from_arguments(arguments)
        self._attached: list[str] = []
        self._can_ask = sys.stdin.isatty()
        path = database_of(self._options, self._env, db)
        self.history = file_beside(path, self._env).with_name("chat_history")
        self.code = exits.OF_STATUS["completed"]

    def take(self, line: str) -> bool:
        """Do what a line says; returns whether the conversation goes on.

        Raises:
            TaoError: it cannot be done, and nobody is at the terminal to write another line.
        """
        try:
            return self._take(line.strip())
        except TaoError as error:
            if not self._can_ask:
                raise
            print_stderr(translate_error(str(error)))
            return True

    def _take(self, line: str) -> bool:
        if line == "/quit":
            return False
        if line.startswith("/") and not line.startswith("//"):
            self._command(line)
        elif line:
            self._run(line.removeprefix("/"))
            return self._can_ask or self.code == exits.OF_STATUS["completed"]
        return True

    def _command(self, line: str) -> None:
        name, _, path = line.partition(" ")
        if name not in ("/attach", "/image") or not path.strip():
            raise ConfigError(
                translate("There is no command {line!r}.", line=line),
                hint=translate("Write /attach PATH or /quit; // begins a task with a slash."),
            )
        load_attachment(Path(path.strip()).expanduser())  # what is wrong with it is said now
        self._attached.append(str(Path(path.strip()).expanduser()))

    def _run(self, task: str) -> None:
        """The next run; it is part of the conversation if it has an answer."""
        arguments = self._arguments | {"attach": tuple(self._attached)}
        with capture_stdout() as stream:
            turn = new_session(self._options, self._env, task, self._db, self._after, arguments)
            if self._session:
                turn.join_session(self._session, asyncio.run(_next_turn(turn.agent, self._session)))
            self.code = turn.run(stream, as_json=False, verbose=self._verbose)
        self._attached = []
        ended = turn.trace.finished
        if ended is not None and ended.answer is not None and not self._session:
            self._after = turn.trace.run_id


async def _next_turn(agent: Agent, session: str) -> str:
    """The id of the next turn of a session of whoever uses this machine.

    Raises:
        RunNotAnswered: the last run of the session has no answer yet.
    """
    async with agent.open_journal() as journal:
        return (await next_turn(journal, session, "", None))[1]


chat_command = click.Command(
    "chat",
    help=_chat.__doc__,
    callback=_chat,
    params=[
        click.Option(["--session"], metavar="ID", default="", help="The conversation with this id, or a new one."),
        *(param for param in run_command.params if param.name not in _OF_ONE_RUN),
    ],
)
