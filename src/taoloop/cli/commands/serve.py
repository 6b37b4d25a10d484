"""`tao serve`: agents behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from taoloop.cli import options
from taoloop.cli.agent_loading import missing_package
from taoloop.cli.database import database, file_beside, load_environment, make_private
from taoloop.cli.signals import signal_callbacks
from taoloop.cli.translation import interface_language, translate
from taoloop.cli.ui.stdio import print_stderr
from taoloop.errors import ConfigError
from taoloop.journals.addresses import DatabaseAddress
from taoloop.runtime.journal_access import JOURNALS
from taoloop.translation import set_interface_language, translate_error

if TYPE_CHECKING:
    from taoloop.serve.gateway.config.model import GatewayConfig
    from taoloop.serve.gateway.observe.request_log import LogFormat
    from taoloop.serve.gateway.server import GatewayServer


@click.command("serve")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(dir_okay=False))
@click.option("--host", metavar="HOST", help="The address to listen on (default: 127.0.0.1).")
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65_535), help="The port (default: 8080); 0 picks a free one."
)
@options.db_option
@click.option("--check", is_flag=True, help="Show what the file means, and serve nothing.")
@click.option(
    "--resolve",
    metavar="NAME=HOST:PORT",
    multiple=True,
    help="Map a service name or host of the file to another address; repeatable.",
)
@click.option(
    "--allow-origin",
    metavar="ORIGIN",
    multiple=True,
    help="Allow calls from browser pages of this origin (CORS), such as https://chat.example; '*' is every page; "
    "repeatable.",
)
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="A host name that clients use for a server without keys, such as chat.example; repeatable.",
)
@click.option(
    "--protocol",
    type=click.Choice(("agui", "messages", "a2a")),
    multiple=True,
    help="A protocol to serve beside OpenAI's APIs: agui (AG-UI), messages (Anthropic's Messages API) or a2a; "
    "repeatable.",
)
@click.option("--any-model", is_flag=True, help="Let the only agent answer, whatever model a request names.")
@click.option(
    "--log-format", type=click.Choice(("text", "json")), default="text", help="The format of the request log."
)
@click.option("--new-key", metavar="NAME", help="Create an API key, show its entry for the file, and serve nothing.")
def serve_command(file: str | None, **arguments: Any) -> int:
    r"""Serve agents to any OpenAI client: chat completions and responses, streamed or not.

    FILE is an agent file (as for `tao run --agent`), a gateway file with several agents, keys and limits, or a file
    of the Higress plugin `ai-agent`, unchanged. Its fields show which of them it is.

      tao serve agent.yaml                           http://127.0.0.1:8080/v1
      tao serve gateway.yaml --check                 show what the file means, and serve nothing
      tao serve higress.yaml --resolve weather.dns=127.0.0.1:9000
      tao serve --new-key alice                      create a key; put its digest into the file, under keys

      curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \
        -d '{"model": "assistant", "messages": [{"role": "user", "content": "What is the time in Rome?"}]}'

    Every request is a run (`tao runs`). The server listens on this machine only, unless --host or the file says
    otherwise; on any other address it needs keys. A changed file is loaded at once, or after SIGHUP; a broken one
    is reported and ignored.
    """
    _require_extra()
    if arguments["new_key"] is not None:
        return _show_new_key(arguments["new_key"])
    if file is None:
        raise click.UsageError(translate("Name a FILE to serve, such as agent.yaml."))
    env = load_environment()
    from taoloop.serve.gateway.auth.origins import origin_of  # noqa: PLC0415  # the extra is there now
    from taoloop.serve.gateway.config.gateway_file import load_config  # noqa: PLC0415  # as above
    from taoloop.serve.hosts import host_name  # noqa: PLC0415  # as above

    load = partial(
        load_config,
        file,
        env=env,
        resolve=_resolved(arguments["resolve"]),
        host=arguments["host"],
        port=arguments["port"],
        db=arguments["db"],
        any_model=arguments["any_model"] or None,
        allow_origins=_allowed(arguments["allow_origin"], origin_of, "--allow-origin"),
        allow_hosts=_allowed(arguments["allow_host"], host_name, "--allow-host"),
        protocols=arguments["protocol"],
    )
    config = load()
    if arguments["check"]:
        from taoloop.serve.gateway.config.config_summary import config_summary  # noqa: PLC0415  # only for this
        from taoloop.serve.gateway.config.tls import require_valid_certificate  # noqa: PLC0415  # as above
        from taoloop.serve.gateway.server import require_keys_off_localhost  # noqa: PLC0415  # as above

        click.echo(config_summary(config, interface_language()))
        require_keys_off_localhost(config)
        require_valid_certificate(config.tls)
        return 0
    for warning in config.warnings:
        print_stderr(translate("Warning: {warning}", warning=translate_error(warning)))
    path = config.db if config.db is not None else database(None, env)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(config, path, load, arguments["log_format"], env))


async def _serve(
    config: GatewayConfig,
    path: DatabaseAddress,
    load: Callable[[], GatewayConfig],
    log_format: LogFormat,
    env: Mapping[str, str],
) -> int:
    from taoloop.journals.costs import cost_rows  # noqa: PLC0415  # as above
    from taoloop.runtime.engine.clock import SystemClock  # noqa: PLC0415  # as above
    from taoloop.runtime.engine.redaction import redactor_for  # noqa: PLC0415  # as above
    from taoloop.runtime.observation.telemetry import Telemetry  # noqa: PLC0415  # as above
    from taoloop.serve.gateway.observe.request_log import RequestLog  # noqa: PLC0415  # as above
    from taoloop.serve.gateway.quotas import Quotas  # noqa: PLC0415  # as above
    from taoloop.serve.gateway.server import GatewayServer, require_keys_off_localhost  # noqa: PLC0415  # as above
    from taoloop.serve.gateway.shared.counters import SharedCounters  # noqa: PLC0415  # as above
    from taoloop.serve.gateway.shared.database import GatewayDatabase, database_beside  # noqa: PLC0415  # as above

    require_keys_off_localhost(config)
    language = interface_language()
    set_interface_language("en")  # what clients and the log get outside of a run does not follow the locale
    make_private(path, expected=config.db is None)
    own_path = database_beside(file_beside(path, env))
    make_private(own_path, expected=True)
    async with JOURNALS.use(path) as journal:
        database = GatewayDatabase(own_path)
        counters = SharedCounters(database, SystemClock())
        allowances = Quotas(config.limits, spent=await cost_rows(journal, since=_midnight()), counters=counters)
        log = RequestLog(log_format, redactor_for(env, config.secrets))
        telemetry = Telemetry.from_env(env)

        def load_anew() -> GatewayConfig:
            changed = load()
            log.add_secrets(changed.secrets)  # before anything is said of it
            return changed

        process = GatewayServer(
            config,
            journal,
            load=load_anew,
            quotas=allowances,
            telemetry=telemetry,
            on_request=log.request,
            say=log.message,
            database=database,
        )

        def ready(url: str) -> None:
            _spare_the_collector()
            print_stderr(translate("Serving {agents} on {url}/v1", language, agents=", ".join(config.agents), url=url))
            print_stderr(translate("The panel: {link}", language, link=process.panel_link(url)))

        try:
            with signal_callbacks(_signals_of(process)), log.capture_loggers():
                await process.serve(on_ready=ready)
        finally:
            counters.close()
            database.close()
            if telemetry is not None:
                await asyncio.to_thread(telemetry.close)
    return 0


def _signals_of(process: GatewayServer) -> dict[signal.Signals, Callable[[], None]]:
    """What the server does at a signal."""
    signals = {signal.SIGINT: process.request_stop, signal.SIGTERM: process.request_stop}
    if hasattr(signal, "SIGHUP"):  # not on Windows
        signals[signal.SIGHUP] = process.request_reload
    return signals


def _spare_the_collector() -> None:
    """Exclude what was loaded from garbage collection, and collect what requests create less often.

    What exists at the start stays to the end, and scanning it again and again took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The loop of uvloop where it is installed (not on Windows): it saves a tenth of the cost of a request."""
    if find_spec("uvloop") is None:
        return None
    import uvloop  # noqa: PLC0415  # optional

    return uvloop.new_event_loop


def _midnight() -> float:
    from taoloop.runtime.engine.clock import SystemClock  # noqa: PLC0415  # as above

    now = SystemClock.now()
    return now - now % 86_400


def _resolved(entries: tuple[str, ...]) -> dict[str, str]:
    overrides = {}
    for entry in entries:
        name, separator, address = entry.partition("=")
        if not (name and separator and address):
            raise click.UsageError(translate("--resolve {entry!r} is not of the form NAME=HOST:PORT.", entry=entry))
        overrides[name] = address
    return overrides


def _allowed(values: tuple[str, ...], normalize: Callable[[str], str], option: str) -> tuple[str, ...]:
    try:
        return tuple(map(normalize, values))
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.message}", hint=error.hint) from None


def _show_new_key(name: str) -> int:
    from taoloop.serve.gateway.auth.keys import new_key  # noqa: PLC0415  # the extra is there

    secret, key = new_key(name)
    print_stderr(translate("This is the key; it is shown once and stored nowhere:"))
    click.echo(secret)
    print_stderr(translate("In the gateway file:") + "\n")
    click.echo(f"keys:\n  - name: {_in_yaml(key.name)}\n    digest: {key.digest}")
    return 0


def _in_yaml(text: str) -> str:
    """A text as YAML: in quotes only where it would be something else without them."""
    import yaml  # noqa: PLC0415  # only for this

    return yaml.safe_dump({"": text}, allow_unicode=True, width=1_000).partition(": ")[2].rstrip("\n")


def _require_extra() -> None:
    for package in ("aiohttp", "prometheus_client", "httpx2"):
        if find_spec(package) is None:
            raise missing_package("tao serve", package, extra="serve")
