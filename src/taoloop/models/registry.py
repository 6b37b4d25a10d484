"""From a model spec such as `openai:NAME` to a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError, UnknownName
from taoloop.models.base import Model
from taoloop.translation import Translator, mark

translate = Translator("models")

Env = Mapping[str, str]

OFFLINE = "offline"


def resolve_model(spec: str | None, env: Env | None = None) -> Model:
    """The model that `spec` names; without one, the model that the environment configures, else `offline`.

    Raises:
        UnknownName: no such kind of model.
        MissingKey, MissingExtra: a provider is named but cannot be used; says what to do.
        ConfigError: a script or trace cannot be read.
    """
    env = os.environ if env is None else env
    chosen = spec or default_spec(env)
    if not spec and chosen.partition(":")[0] not in _KINDS:
        variable = "TAOLOOP_MODEL" if env.get("TAOLOOP_MODEL", "").strip() else "AI_PROVIDER"
        hint = translate("It comes from the variable {variable}; correct it there.", variable=variable)
        raise UnknownName("model", chosen, model_kinds(), hint=hint)
    kind, _, rest = chosen.partition(":")
    make = _KINDS.get(kind)
    if make is None:
        near = suggest_names(kind, model_kinds(), at_most=1)
        suggestion = f"{translate('Did you mean {name!r}?', name=near[0])} " if near else ""
        forms = translate("Specs look like offline, scripted:FILE, openai:NAME.")
        raise UnknownName("model", chosen, model_kinds(), hint=suggestion + forms)
    return make(rest, env)


def default_spec(env: Env) -> str:
    """The spec that the environment asks for: TAOLOOP_MODEL, else a provider with a key, else offline.

    Under `AI_MOCK=1` a provider is never asked for: the offline model takes its place.
    """
    from taoloop.models.providers import configured  # noqa: PLC0415  # providers are not needed to run offline

    chosen = env.get("TAOLOOP_MODEL", "").strip()
    if mock_is_set(env):
        return OFFLINE if not chosen or is_provider(chosen) else chosen
    if chosen:
        return chosen
    providers = configured(env)
    return providers[0] if providers else OFFLINE


def mock_is_set(env: Env) -> bool:
    """True if AI_MOCK asks for a run without a key and without a network."""
    return env.get("AI_MOCK", "").strip().lower() not in ("", "0", "false")


def is_provider(spec: str) -> bool:
    """True if the spec names a model of a provider, which needs a network."""
    kind = spec.partition(":")[0]
    return kind in _KINDS and kind not in _LOCAL


def model_kinds() -> tuple[str, ...]:
    """The kinds that a spec can begin with."""
    return tuple(_KINDS)


def _offline(rest: str, _env: Env) -> Model:
    from taoloop.models.offline.planner import OfflineModel  # noqa: PLC0415  # only where it is used

    if rest:
        text = mark("The offline model takes no name, but {name!r} was given.")
        raise ConfigError(translate(text, name=rest), hint=translate("Write just `offline`."))
    return OfflineModel()


def _scripted(rest: str, _env: Env) -> Model:
    from taoloop.models.scripted import ScriptedModel  # noqa: PLC0415  # only where it is used

    if not rest:
        hint = translate("Write scripted:FILE (a YAML or JSON list of replies).")
        raise ConfigError(translate("The scripted model needs a file."), hint=hint)
    return ScriptedModel.from_file(rest)


def _replay(rest: str, _env: Env) -> Model:
    from taoloop.models.replay import ReplayModel  # noqa: PLC0415  # only where it is used

    if not rest:
        hint = translate("Write replay:FILE (JSON lines of tao show).")
        raise ConfigError(translate("The replay model needs a recorded run."), hint=hint)
    return ReplayModel.from_file(rest)


def _provider(name: str) -> Callable[[str, Env], Model]:
    def make(rest: str, env: Env) -> Model:
        from taoloop.models.openai import OpenAIModel  # noqa: PLC0415  # loads a provider's table only when named

        return OpenAIModel.from_env(name, rest, env)

    return make


def _anthropic(rest: str, env: Env) -> Model:
    from taoloop.models.anthropic import AnthropicModel  # noqa: PLC0415  # only where it is used

    return AnthropicModel.from_env("anthropic", rest, env)


_KINDS: dict[str, Callable[[str, Env], Model]] = {
    OFFLINE: _offline,
    "scripted": _scripted,
    "replay": _replay,
    "openai": _provider("openai"),
    "anthropic": _anthropic,
    "azure": _provider("azure"),
    "deepseek": _provider("deepseek"),
    "dashscope": _provider("dashscope"),
    "qwen": _provider("dashscope"),
    "ollama": _provider("ollama"),
    "vllm": _provider("vllm"),
    "llamacpp": _provider("llamacpp"),
}

_LOCAL = (OFFLINE, "scripted", "replay")
