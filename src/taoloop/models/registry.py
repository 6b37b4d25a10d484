"""From a model spec such as `openai:NAME` to a model."""

from __future__ import annotations

import os
from collections.abc import Mapping

from taoloop.core.search import suggest_names
from taoloop.errors import ConfigError, UnknownName
from taoloop.models.base import Model
from taoloop.translation import Translator, mark

translate = Translator("models")

Env = Mapping[str, str]

OFFLINE = "offline"

_LOCAL = (OFFLINE, "scripted", "replay")
_HOSTED = ("openai", "openai-responses", "anthropic", "azure", "deepseek", "dashscope", "qwen")
_KINDS = (*_LOCAL, *_HOSTED, "ollama", "vllm", "llamacpp")


def resolve_model(spec: str | None, env: Env | None = None) -> Model:
    """The model that `spec` names; without one, the model that the environment configures, else `offline`.

    Raises:
        UnknownName: no such kind of model.
        MissingKey, MissingExtra: a provider is named but cannot be used; says what to do.
        ConfigError: a script or trace cannot be read.
    """
    env = os.environ if env is None else env
    chosen = spec or default_spec(env)
    kind, _, name = chosen.partition(":")
    if kind in _KINDS:
        return _make_model(kind, name, env)
    if spec:
        raise _unknown_model(chosen, kind)
    variable = "TAOLOOP_MODEL" if env.get("TAOLOOP_MODEL", "").strip() else "AI_PROVIDER"
    hint = translate("It comes from the variable {variable}; correct it there.", variable=variable)
    raise UnknownName("model", chosen, _KINDS, hint=hint)


def require_known_model(specs: str) -> None:
    """Refuse a text of one or several specs (`split_specs`) of which one names no kind of model.

    Raises:
        UnknownName: names the spec, and the kind that may be meant.
    """
    for spec in specs.split("|"):  # the sign in SPEC_SEPARATOR, whose module only runs need
        kind = spec.strip().partition(":")[0]
        if kind and kind not in _KINDS:
            raise _unknown_model(spec.strip(), kind)


def _unknown_model(spec: str, kind: str) -> UnknownName:
    near = suggest_names(kind, _KINDS, at_most=1)
    suggestion = f"{translate('Did you mean {name!r}?', name=near[0])} " if near else ""
    return UnknownName(
        "model", spec, _KINDS, hint=suggestion + translate("Specs look like offline, scripted:FILE, openai:NAME.")
    )


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
    return _KINDS


def _make_model(kind: str, name: str, env: Env) -> Model:
    """The model of a known kind. Each module is imported only where its kind is used."""
    match kind:
        case "offline":
            from taoloop.models.offline.planner import OfflineModel  # noqa: PLC0415  # for this kind only

            if name:
                text = mark("The offline model takes no name, but {name!r} was given.")
                raise ConfigError(translate(text, name=name), hint=translate("Write just `offline`."))
            return OfflineModel()
        case "scripted":
            from taoloop.models.scripted import ScriptedModel  # noqa: PLC0415  # for this kind only

            if not name:
                hint = translate("Write scripted:FILE (a YAML or JSON list of replies).")
                raise ConfigError(translate("The scripted model needs a file."), hint=hint)
            return ScriptedModel.from_file(name)
        case "replay":
            from taoloop.models.replay import ReplayModel  # noqa: PLC0415  # for this kind only

            if not name:
                hint = translate("Write replay:FILE (JSON lines of tao show).")
                raise ConfigError(translate("The replay model needs a recorded run."), hint=hint)
            return ReplayModel.from_file(name)
        case "anthropic":
            from taoloop.models.anthropic import AnthropicModel  # noqa: PLC0415  # for this kind only

            return AnthropicModel.from_env(kind, name, env)
        case "openai-responses":
            from taoloop.models.openai_responses import OpenAIResponsesModel  # noqa: PLC0415  # for this kind only

            return OpenAIResponsesModel.from_env("openai", name, env)
        case _:
            from taoloop.models.openai import OpenAIModel  # noqa: PLC0415  # for this kind only

            return OpenAIModel.from_env(kind, name, env)
