"""Resources of Kubernetes that carry configurations of the plugin: `kind: WasmPlugin`, as Higress stores them.

`spec.defaultConfig` and the `config` of each entry of `spec.matchRules` are whole configurations. Higress chooses among
them by the host, the route or the service of a request; here each is an agent, which clients choose by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from taoloop.config.document import ConfigDocument
from taoloop.config.settings_reader import LITERAL, SettingsReader
from taoloop.tools.yaml12 import FieldPath

KIND = "WasmPlugin"

_Texts = tuple[Annotated[str, LITERAL], ...]
_DEPLOYMENT = (
    *("url", "sha256", "phase", "priority", "failStrategy", "imagePullPolicy", "imagePullSecret", "pluginName"),
    *("selector", "targetRef", "targetRefs", "match", "type", "verificationKey", "vmConfig"),
)
"""Fields of `spec` that only say how and where the proxy runs the plugin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRule:
    """An entry of `spec.matchRules`."""

    config: dict[str, Any] | None = None
    """The configuration."""

    config_disable: bool = False
    """Whether the plugin is off where the rule matches."""

    domain: _Texts = ()
    """The hosts for which the rule holds."""

    ingress: _Texts = ()
    """The routes for which the rule holds."""

    service: _Texts = ()
    """The services for which the rule holds."""

    route_type: Annotated[str, LITERAL] = ""
    """The kind of the routes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSpec:
    """`spec` of the resource, without the fields that deploy it."""

    default_config: dict[str, Any] | None = None
    """The configuration where no rule matches."""

    default_config_disable: bool = False
    """Whether the plugin is off where no rule matches."""

    match_rules: tuple[MatchRule, ...] = ()
    """Configurations for some hosts, routes or services."""


def is_wasm_plugin(data: Mapping[str, Any]) -> bool:
    """Whether a file is such a resource."""
    return data.get("kind") == KIND and isinstance(data.get("spec"), dict)


def plugin_configs(reader: SettingsReader) -> dict[str, ConfigDocument]:
    """The configurations in the resource that `reader` reads, by the names of their agents: the default one first.

    The default one is called as the file is; that of a rule as the first domain, ingress or service of the rule, or
    with its number. What is switched off or not supported is a warning.

    Raises:
        AgentFileError: there is no configuration in it, or a field is of the wrong type.
    """
    document = reader.document
    data = {name: value for name, value in document.data["spec"].items() if name not in _DEPLOYMENT}
    spec = reader.read(PluginSpec, ("spec",), data, mode="lenient")
    configs: dict[str, ConfigDocument] = {}
    position: FieldPath = ("spec", "defaultConfig")
    if spec.default_config and spec.default_config_disable:
        reader.warn(("spec", "defaultConfigDisable"), "it is true, so `defaultConfig` is no agent.")
    elif spec.default_config:
        configs[document.path.stem] = document.under(position)
    for number, rule in enumerate(spec.match_rules):
        position = ("spec", "matchRules", number)
        if rule.config_disable:
            reader.warn((*position, "configDisable"), "it is true, so this rule is no agent.")
        elif not rule.config:
            reader.warn(position, "it has no `config`, so it is no agent.")
        else:
            configs[_free_name(rule, number, document, configs)] = document.under((*position, "config"))
            if len(matched := (*rule.domain, *rule.ingress, *rule.service)) > 1:
                reader.warn(position, f"its agent is called {matched[0]!r}, and has none of the rule's other names.")
    if not configs:
        hint = "Fill in `spec.defaultConfig`, or `config` of an entry of `spec.matchRules`."
        raise document.error(("spec",), "it has no configuration that is switched on.", hint=hint)
    if any(name != document.path.stem for name in configs):
        message = "clients choose an agent by its name, as `model`; hosts, routes and services choose none here."
        reader.warn(("spec", "matchRules"), message)
    return configs


def _free_name(rule: MatchRule, number: int, document: ConfigDocument, configs: Mapping[str, Any]) -> str:
    """The name of the agent of a rule, which no other one has."""
    name = next(iter((*rule.domain, *rule.ingress, *rule.service)), f"{document.path.stem}-{number + 1}")
    return name if name not in configs else f"{name}-{number + 1}"
