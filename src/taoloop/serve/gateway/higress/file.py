"""The form of Higress' plugin `ai-agent`, and the short one that articles print: `llm`, `apis` and what is optional."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template
from typing import Any, Literal

from taoloop.config.document import ConfigDocument
from taoloop.core.agent_spec import Limits
from taoloop.core.policy import Policy
from taoloop.runtime.agent import Agent
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.config.model import Reshape, ServedAgent
from taoloop.serve.gateway.config.section import ConfigReport, ConfigSection
from taoloop.serve.gateway.higress.apis import ApiReader, is_short_entry
from taoloop.serve.gateway.higress.endpoint import FixedUrlModel
from taoloop.serve.gateway.higress.json_response import read_schema

Language = Literal["en", "zh"]

DEFAULTS: dict[Language, dict[str, str]] = {
    "en": {
        "question": "input question to answer",
        "thought1": "consider previous and subsequent steps",
        "observation": "action result",
        "thought2": "I know what to respond",
    },
    "zh": {
        "question": "输入要回答的问题",
        "thought1": "考虑之前和之后的步骤",
        "observation": "行动结果",
        "thought2": "我知道该回应什么",
    },
}
"""What stands behind `Question:`, the first `Thought:`, `Observation:` and the last `Thought:` of the form example."""

_NAMES = ("role", "system", "form_fenced", "form_fenced_answer", "observation")
_FILLED = ("form_fenced", "form_fenced_answer")


def agent_prompts(language: Language, replaced: Mapping[str, str]) -> dict[str, str]:
    """The prompt texts of an agent by name, for `Agent(prompts=…)`. `replaced` are the texts of its own."""
    folder = files("taoloop.serve.gateway.higress").joinpath("texts", language)
    texts = {name: folder.joinpath(f"{name}.txt").read_text(encoding="utf-8") for name in _NAMES}
    own = {name: text.replace("$", "$$") for name, text in {**DEFAULTS[language], **replaced}.items()}
    return {**texts, **{name: Template(texts[name]).safe_substitute(own) for name in _FILLED}}


TOP = ("llm", "apis", "promptTemplate", "jsonResp", "returnResponseTemplate")
LLM = (
    "apiKey",
    "serviceName",
    "servicePort",
    "domain",
    "path",
    "model",
    "maxIterations",
    "maxExecutionTime",
    "maxTokens",
)

DEFAULT_ITERATIONS = 15
DEFAULT_MODEL_TIMEOUT_MS = 50_000
DEFAULT_MAX_TOKENS = 1000

POLICY = Policy(pin="keywords")
"""Reading runs, the rest is put before a person. What the task calls for is judged by its words, so that a run makes
no other calls of the model than those that such a file is known to make."""

_LANGUAGES: dict[str, Language] = {"EN": "en", "CH": "zh"}
_TEMPLATES: dict[Language, str] = {"en": "enTemplate", "zh": "chTemplate"}
_IGNORED_TEXTS = ("actionInput", "finalAnswer", "begin")
_HTTPS_PORT = 443
_MOST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSettings:
    """What `llm` says."""

    url: str
    host: str
    name: str
    api_key: str = field(repr=False)
    iterations: int
    timeout_ms: int
    max_tokens: int


def is_ai_agent(data: Mapping[str, Any]) -> bool:
    """Whether a file is one of the plugin, and no agent file."""
    return "llm" in data or "apis" in data


def is_short(data: Mapping[str, Any]) -> bool:
    """Whether an entry of `apis` is written in the short form."""
    entries = data.get("apis")
    return isinstance(entries, list) and any(isinstance(entry, Mapping) and is_short_entry(entry) for entry in entries)


def read_higress(document: ConfigDocument, notes: ConfigReport, services: HostOverrides) -> ServedAgent:
    """The one agent of such a file.

    Raises:
        AgentFileError: a field is missing, of the wrong type, or out of range; names the file, the line and the field.
    """
    top = ConfigSection(document, (), notes)
    top.warn_unknown(TOP)
    model = _model(top.inner("llm"), services, is_flat=is_short(document.data))
    tools = ApiReader(document, notes, services).tools()
    language, texts = _prompt(top)
    name = document.path.stem
    agent = Agent(
        name=name,
        model=FixedUrlModel(model.url, model.name, model.api_key, model.host),
        tools=tools,
        dialect="fenced",
        language=language,
        prompts=agent_prompts(language, texts),
        limits=Limits(max_steps=model.iterations + 1, max_tool_calls=model.iterations),
        closing_turn=False,  # the reply after the last call is the last one
        policy=POLICY,
        max_output_tokens=model.max_tokens,
        model_timeout_s=model.timeout_ms / 1000,
        secrets=notes.secrets,
    )
    _response_template(top)
    return ServedAgent(name=name, agent=agent, reshape=_reshape(top))


def _model(section: ConfigSection, services: HostOverrides, *, is_flat: bool) -> LlmSettings:
    section.warn_unknown(LLM)
    service = section.text("serviceName")
    domain = section.host("domain")
    port = section.integer("servicePort", _HTTPS_PORT if is_flat else None, least=1, most=_MOST_PORT)
    path, key = _path(section), section.secret("apiKey")
    scheme = "https" if port == _HTTPS_PORT else "http"
    own = f"{scheme}://{domain}" + ("" if port in (80, _HTTPS_PORT) else f":{port}")
    host = services.host_header(own, service, domain).get("Host", "")
    if not (base := services.base_of(service, domain)):
        base = own
        if scheme == "http":
            section.warn("servicePort", f"port {port} is not 443, so apiKey is sent to {domain} without encryption.")
    return LlmSettings(
        url=base + path,
        host=host,
        name=section.text("model"),
        api_key=key,
        iterations=section.integer("maxIterations", DEFAULT_ITERATIONS),
        timeout_ms=section.integer("maxExecutionTime", DEFAULT_MODEL_TIMEOUT_MS),
        max_tokens=section.integer("maxTokens", DEFAULT_MAX_TOKENS),
    )


def _path(section: ConfigSection) -> str:
    path = section.text("path")
    if "://" in path or any(char.isspace() or not char.isprintable() for char in path) or "#" in path:
        raise section.error("path", f"a path such as /v1/chat/completions is expected, not {path[:60]!r}.")
    return path if path.startswith("/") else f"/{path}"


def _prompt(top: ConfigSection) -> tuple[Language, dict[str, str]]:
    section = top.inner("promptTemplate", needed=False)
    section.warn_unknown(("language", *_TEMPLATES.values()))
    language_code = section.text("language", "EN")
    if language_code not in _LANGUAGES:
        section.warn("language", f"{language_code!r} is neither EN nor CH; it counts as EN.")
    selected = _LANGUAGES.get(language_code, "en")
    texts: dict[str, str] = {}
    for language, name in _TEMPLATES.items():
        template = section.inner(name, needed=False)
        template.warn_unknown((*DEFAULTS[language], *_IGNORED_TEXTS))
        for field_name in _IGNORED_TEXTS:
            if field_name in template.data:
                template.warn(field_name, "it has no effect.")
        values = {key: template.text(key, "", is_prose=True) for key in DEFAULTS[language]}
        if language == selected:
            texts = {key: text for key, text in values.items() if text}
    return selected, texts


def _reshape(top: ConfigSection) -> Reshape | None:
    section = top.inner("jsonResp", needed=False)
    section.warn_unknown(("enable", "jsonSchema"))
    schema = read_schema(section, "jsonSchema")
    return Reshape(schema=schema) if section.boolean("enable", False) else None


def _response_template(top: ConfigSection) -> None:
    template = top.text("returnResponseTemplate", "", is_prose=True)
    if template and template.count("%s") != 1:
        top.warn("returnResponseTemplate", "it has no single %s; it is not used here anyway.")
