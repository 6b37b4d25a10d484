"""`tao models`: which kinds of models exist, which are configured, and what is missing. Keys are never shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import click

from taoloop.cli import exit_codes as exits
from taoloop.cli import options
from taoloop.cli.dotenv import load_environment
from taoloop.cli.ui.event_view import console_for, write_rows
from taoloop.cli.ui.stdio import capture_stdout
from taoloop.errors import TaoError, UnknownName
from taoloop.models.providers import (
    GENERAL_KEY_VAR,
    PROVIDERS,
    endpoint,
    find_provider,
    missing,
    missing_packages,
    shown_address,
)
from taoloop.models.registry import OFFLINE, default_spec, mock_is_set

_HELP = """Which models can be used here, which variable would configure the others, and which one is the default.

Variables are read from the environment and from a .env file in the current folder. Keys are never shown.

\b
  tao models
  OPENAI_BASE_URL=http://127.0.0.1:8000/v1 tao models     any OpenAI-compatible server
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelState:
    """One kind of model: `spec` to write, whether it can be used, and what is missing or worth knowing."""

    spec: str
    ready: bool
    note: str
    default: bool = False


@click.command("models", help=_HELP)
@options.json_option("One JSON object per kind and line.")
def command(as_json: bool) -> int:
    """Print the table."""
    env = load_environment()
    states = model_states(env)
    with capture_stdout() as stream:
        if as_json:
            for state in states:
                stream.write(json.dumps(asdict(state), ensure_ascii=False) + "\n")
            return exits.OK
        console = console_for(stream)
        rows = [(state.spec, "ready" if state.ready else "missing", state.note) for state in states]
        write_rows(console, rows, ["green" if state.ready else "dim" for state in states])
        console.print(f"default: {default_spec(env)} ({default_reason(env)})", style="bold", soft_wrap=True)
    return exits.OK


def model_states(env: Mapping[str, str]) -> list[ModelState]:
    """Every kind of model, as the environment configures it."""
    default = default_spec(env)
    states = [
        ModelState(
            spec="offline",
            ready=True,
            note="embedded: a small deterministic planner, not a language model; no key, no network",
            default=default == "offline",
        ),
        ModelState(spec="scripted:FILE", ready=True, note="answers from a YAML or JSON list of replies"),
        ModelState(spec="replay:FILE", ready=True, note="answers with the replies of `tao show RUN_ID --json`"),
    ]
    lacking = missing(env)
    return states + [_provider(name, env, lacking.get(name), default) for name in PROVIDERS]


def _provider(name: str, env: Mapping[str, str], variable: str | None, default: str) -> ModelState:
    provider = PROVIDERS[name]
    chosen = _provider_of(default) == name
    spec = default if chosen and ":" in default else f"{name}:NAME"
    try:
        target = endpoint(name, "" if provider.default_model else "NAME", env)
    except TaoError as error:
        note = f"set {variable}" if variable else str(error)
        return ModelState(spec=spec, ready=False, note=note, default=chosen)
    if variable is not None and not provider.needs_key:
        note = f"a local server at {shown_address(target.base_url)}; set {variable} to make it a default"
    else:
        note = f"at {shown_address(target.base_url)}"
    if lacking := missing_packages(name):
        note = f"{' and '.join(lacking)} missing: pip install 'taoloop[{provider.api}]'"
        return ModelState(spec=spec, ready=False, note=note, default=chosen)
    return ModelState(spec=spec, ready=True, note=note, default=chosen)


def default_reason(env: Mapping[str, str]) -> str:
    """Why the default is what it is."""
    if mock_is_set(env) and default_spec(env) == OFFLINE:
        return "AI_MOCK is set"
    if env.get("TAOLOOP_MODEL", "").strip():
        return "TAOLOOP_MODEL says so"
    if env.get("AI_PROVIDER", "").strip():
        return "AI_PROVIDER says so"
    spec = default_spec(env)
    provider = PROVIDERS.get(_provider_of(spec))
    if provider is None:
        return "nothing else is configured"
    variable = provider.key_var if provider.needs_key else provider.model_var
    return f"{variable if env.get(variable, '').strip() else GENERAL_KEY_VAR} is set"


def _provider_of(spec: str) -> str:
    """The name of the provider in a spec, whichever of its names stands there; an empty text if there is none."""
    try:
        return find_provider(spec.partition(":")[0]).name
    except UnknownName:
        return ""
