"""`tao submit` and `tao cancel`: hand runs to workers, and stop them wherever they are driven."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import click

from taoloop.cli import options
from taoloop.cli.agent_loading import AgentOptions
from taoloop.cli.commands.run import new_session, read_task
from taoloop.cli.completion import complete_run_ids
from taoloop.cli.database import database, load_environment, load_run, query_database
from taoloop.cli.options import authentication_of, current_user
from taoloop.cli.translation import translate
from taoloop.cli.ui.stdio import capture_stdout, print_stderr, write_json_lines
from taoloop.core.agent_spec import DEFAULT_PRIORITY, DEFAULT_QUEUE
from taoloop.runtime.fleet.engines import require_engine_address
from taoloop.runtime.fleet.submission import cancel_run, release_run

engine_option = click.option(
    "--engine",
    metavar="ADDRESS",
    help="local, postgres or temporal://HOST:PORT/NAMESPACE. Default: TAOLOOP_ENGINE, else what the database has.",
)


@click.command("submit")
@click.argument("task", required=False)
@options.agent_option
@click.option("--model", metavar="SPEC", help="The model, as for `tao run`.")
@options.fallback_option
@options.tools_option("Only these tools, as for `tao run`; repeatable.")
@options.workspace_option
@options.limit_options
@options.approve_option
@options.profile_option
@options.policy_option
@click.option("--queue", metavar="NAME", default=DEFAULT_QUEUE, show_default=True, help="The queue of the workers.")
@click.option(
    "--priority",
    type=click.IntRange(1, 5),
    default=DEFAULT_PRIORITY,
    show_default=True,
    help="The order within the queue: 1 is first.",
)
@click.option("--tenant", metavar="NAME", default="", help="For whom it is, where the engine shares out its workers.")
@click.option("--delay", type=click.FloatRange(min=0), metavar="SECONDS", help="Do not start before that time is over.")
@click.option(
    "--resume",
    metavar="RUN_ID",
    shell_complete=complete_run_ids,
    help="Hand a submitted run over again: one that is parked, was stopped, or reached a limit.",
)
@engine_option
@options.db_option
@options.json_option("One JSON object with the run, its queue and its status.")
def submit_command(
    task: str | None, db: str | None, engine: str | None, resume: str | None, as_json: bool, **arguments: Any
) -> int:
    """Store TASK for workers to run (`tao worker`), and print the id of the run at once. `-` reads standard input.

    The workers need the same agent: under its name, or from the same file. Approvals, questions and results are as for
    any run; an answer wakes the run wherever its workers are.

      tao submit "Summarise notes.md" --agent agent.yaml
      tao submit "Send the report" --agent agent.yaml --queue reports --priority 1 --delay 3600
      tao submit --resume RUN_ID            try a run again that killed its workers (`tao approvals --all`)
    """
    if (task is None) == (resume is None):
        raise click.UsageError(translate("Give a TASK, or --resume RUN_ID."))
    require_engine_address(engine or "")
    env = load_environment()
    if resume is not None:
        path = database(db, env)
        run_id = load_run(path, resume).run_id
        name = current_user(None)
        query_database(path, lambda journal: release_run(journal, run_id, by=name, engine=engine), read_only=False)
        return _print(run_id, "running", as_json)
    run_id = _submit(read_task(task or ""), db, env, engine, arguments)
    return _print(run_id, "running", as_json, queue=arguments["queue"])


def _submit(task: str, db: str | None, env: Mapping[str, str], engine: str | None, arguments: dict[str, Any]) -> str:
    chosen = AgentOptions.from_arguments(arguments)
    session = new_session(chosen, env, task, db, None, {"attach": (), "lessons_from": ()})
    delay_s = arguments["delay"]

    async def submit() -> str:
        try:
            return await session.agent.submit(
                task,
                run_id=session.trace.run_id,
                started_by=options.starter(),
                queue=arguments["queue"],
                priority=arguments["priority"],
                tenant=arguments["tenant"],
                not_before=None if delay_s is None else time.time() + delay_s,
                engine=engine,
            )
        finally:
            await session.agent.close()

    return asyncio.run(submit())


@click.command("cancel")
@click.argument("run_id", shell_complete=complete_run_ids)
@options.by_option
@click.option("--note", metavar="TEXT", default="", help="Why, for the record.")
@engine_option
@options.db_option
@options.json_option("One JSON object with the run and its status.")
def cancel_command(run_id: str, by: str | None, note: str, engine: str | None, db: str | None, as_json: bool) -> int:
    """Stop the submitted run RUN_ID wherever it is driven. It can be handed over again: `tao submit --resume`.

    The end is stored first; the worker that has the run stores nothing more and lets go of it. What a tool was doing at
    that moment is in doubt. `tao abandon` ends a run for good.

      tao cancel RUN_ID --note "wrong customer"
    """
    require_engine_address(engine or "")
    path, name = database(db, load_environment()), current_user(by)
    full_id = load_run(path, run_id).run_id
    query_database(
        path,
        lambda journal: cancel_run(
            journal, full_id, by=name, note=note, authenticated=authentication_of(name), engine=engine
        ),
        read_only=False,
    )
    return _print(full_id, "stopped", as_json)


def _print(run_id: str, status: str, as_json: bool, **more: object) -> int:
    with capture_stdout() as stream:
        if as_json:
            write_json_lines(stream, [{"run_id": run_id, "status": status, **more}])
        else:
            stream.write(f"{run_id}\n")
            if status != "stopped":
                print_stderr(translate("Follow it: {command}", command=f"tao show {run_id}"))
    return 0
