"""`tao lessons`: what attempts that failed left for the next attempt at their task."""

from __future__ import annotations

from dataclasses import asdict, replace

import click

from taoloop.cli import exit_codes as exits, options
from taoloop.cli.agent_loading import AgentOptions, agent_of_run
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import database, load_environment, load_run, query_database
from taoloop.cli.options import authentication_of, current_user
from taoloop.cli.signals import SignalStopper, announce_stop
from taoloop.cli.translation import translate, view_language
from taoloop.cli.ui.event_view import RowWriter, console_for
from taoloop.cli.ui.stdio import capture_stdout, one_line, write_json_lines
from taoloop.core.views.transcript import Result
from taoloop.journals.base import Journal
from taoloop.runtime.after.evaluation import drop_lesson, learn_from
from taoloop.runtime.agent import Agent
from taoloop.runtime.approvals.inbox import AnswerRecorded
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.lessons import Lesson, find_lessons, lesson_in

_SHOWN_CHARS = 72


@click.command("lessons")
@click.argument("run_id", required=False, shell_complete=complete_run_ids)
@click.option("--drop", is_flag=True, help="No later run reads the lesson of RUN_ID any more.")
@click.option("--wrong", metavar="TEXT", help="Say what is wrong with the answer of RUN_ID, and have a lesson written.")
@options.agent_option
@options.db_option
@options.by_option
@options.json_option("The lessons as JSON, one per line.")
def lessons_command(
    run_id: str | None,
    drop: bool,
    wrong: str | None,
    agent: str | None,
    db: str | None,
    by: str | None,
    as_json: bool,
) -> int:
    """List the lessons of attempts that failed, the newest first; with RUN_ID only that of one run.

    The strategy reflect:lessons=N writes a lesson where an attempt ends without success, and gives the newest N to
    the next attempt of the same agent at the same task, as untrusted advice. `tao run --lessons-from RUN_ID` gives it
    to any run; reflect:lessons=0 ignores all of them.

      tao lessons
      tao lessons RUN_ID --drop                              later runs do not read it
      tao lessons RUN_ID --wrong "The year is missing."      the answer was wrong: learn from it
    """
    if (drop or wrong is not None) and run_id is None:
        raise click.UsageError(translate("Name the run."))
    if drop and wrong is not None:
        raise click.UsageError(translate("Give either --drop or --wrong."))
    env = load_environment()
    path, name = database(db, env), current_user(by)
    with capture_stdout() as stream:
        if run_id is None:
            lessons = query_database(path, find_lessons)
        else:
            trace = load_run(path, run_id)
            run_id = trace.run_id
            if drop:
                query_database(path, lambda journal: _drop(journal, trace.run_id, name), read_only=False)
            elif wrong is not None:
                chosen = AgentOptions.from_arguments({"agent": agent})
                own = replace(agent_of_run(trace.agent, chosen, env), journal=path)
                with SignalStopper(announce_stop) as stopper:
                    stopper.drive(_learn(own, trace.run_id, wrong, name))
                trace = load_run(path, run_id)
            lesson = None if drop else lesson_in(trace)
            lessons = [] if lesson is None else [lesson]
        if as_json:
            write_json_lines(stream, [asdict(lesson) for lesson in lessons])
            return exits.OK
        pen = RowWriter(console_for(stream), view_language("auto", stream))
        _print(pen, lessons, run_id, dropped=drop)
    return exits.OK


def _print(pen: RowWriter, lessons: list[Lesson], run_id: str | None, *, dropped: bool) -> None:
    if dropped:
        pen.line(pen.text("the lesson of run {run_id} is dropped", run_id=run_id))
    elif not lessons:
        pen.line(pen.text("no lessons"))
    for lesson in lessons:
        task = one_line(lesson.task)
        short = task if len(task) <= _SHOWN_CHARS else f"{task[: _SHOWN_CHARS - 1]}…"
        pen.line(f"{lesson.run_id} · {lesson.agent} · {lesson.status} · {short}", "bold")
        pen.row("Lesson", lesson.text, style="magenta")


async def _drop(journal: Journal, run_id: str, name: str) -> AnswerRecorded:
    return await drop_lesson(journal, run_id, by=name, authenticated=authentication_of(name))


async def _learn(agent: Agent, run_id: str, why: str, name: str) -> Result:
    bound = bind(agent)
    try:
        async with bound.open_journal() as journal:
            return await learn_from(bound, journal, run_id, why, by=name, authenticated=authentication_of(name))
    finally:
        await agent.close()
