"""The form of Higress' plugin `ai-agent`, and the short one that articles print: `llm`, `apis` and what is optional."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import islice
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import WithJsonSchema

from taoloop.config.document import ConfigDocument
from taoloop.config.settings_reader import LITERAL, SECRET, SettingsReader, Span, checked, expected
from taoloop.core.agent_spec import Limits
from taoloop.core.decision import Act, Problem
from taoloop.core.effects import ModelRequest
from taoloop.core.events import RunStarted
from taoloop.core.message import ModelReply
from taoloop.core.policy import Policy
from taoloop.core.text import Language
from taoloop.core.trace import Trace
from taoloop.core.views.transcript import Result
from taoloop.dialects import get_dialect
from taoloop.errors import ConfigError, RunExists, ToolSourceError
from taoloop.models.openai import OpenAIModel
from taoloop.models.providers import Endpoint
from taoloop.policy import tainted
from taoloop.runtime.agent import Agent
from taoloop.runtime.bound_agent import bind
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.output_type import OutputValidator
from taoloop.serve.gateway.config.host_overrides import HostOverrides
from taoloop.serve.gateway.config.model import ANY_OBJECT, ServedAgent
from taoloop.serve.gateway.higress.apis import (
    DEFAULT_TIMEOUT_MS,
    ApiReader,
    is_short_entry,
    require_host,
    service_origin,
)
from taoloop.serve.gateway.higress.wasm_plugin import is_wasm_plugin, plugin_configs
from taoloop.serve.texts import TEXTS
from taoloop.tools.openapi.document import parse_values

if TYPE_CHECKING:
    from taoloop.journals.base import Journal
    from taoloop.runtime.runner import Listener


def response_schema(value: Any, _reader: SettingsReader) -> dict[str, Any]:
    """The JSON Schema in a mapping, or in a text in JSON or YAML.

    Raises:
        ConfigError: it is neither a mapping nor a text with one in JSON or YAML, or not a valid JSON Schema.
    """
    if isinstance(value, str):
        try:
            value = parse_values(value.encode(), "the text")
        except ToolSourceError as error:
            raise ConfigError(error.message) from None
    if not isinstance(value, dict):
        raise ConfigError("a JSON Schema is expected: a mapping, or a text that holds one in JSON or YAML.")
    return OutputValidator(value).schema


async def rewrite_as_json(
    served: ServedAgent, schema: Mapping[str, Any], journal: Journal, result: Result, on_event: Listener | None = None
) -> Result:
    """A separate run without tools, whose answer is that of the completed run as JSON that matches the schema.

    A reply that does not match is sent back once. Where that fails, the status of the returned run says so.
    """
    outer = result.trace
    language = outer.agent.language
    writer = Agent(
        model=bind(served.agent).model,
        name=f"{outer.agent.name}-json",
        strategy="standard",
        dialect="native",
        language=language,
        output_type=dict(schema),
        limits=Limits(max_steps=1),
        closing_turn=False,
        max_output_tokens=outer.agent.max_output_tokens,
        model_timeout_s=served.agent.model_timeout_s,
        journal=journal,
        secrets=served.agent.secrets,
    )
    task = TEXTS.text(language, "rewrite_as_json", question=outer.task, answer=result.answer)
    labels = outer.started.labels if outer.started is not None else {}
    started = RunStarted(
        task=task,
        agent=replace(writer.spec_for(task), temperature=0.0),
        nonce=new_nonce(),
        parent=outer.run_id,
        depth=1,
        tainted=tainted(outer),
        authority=outer.started.authority if outer.started is not None else None,
        labels=labels,
    )
    run_id = f"{outer.run_id}.json"
    try:
        return await bind(writer).start(journal, Trace(run_id), started, listener=on_event)
    except RunExists:  # the client repeats its request, or left in the meantime
        trace = Trace(run_id, await journal.load(run_id))
        return Result.of(trace) if trace.status == "completed" else await writer.resume(run_id, on_event=on_event)


_NAMES = ("role", "system", "form_fenced", "form_fenced_answer", "observation")
_FILLED = ("form_fenced", "form_fenced_answer")
_EXAMPLE_TEXTS = ("question", "thought1", "observation", "thought2")


def agent_prompts(language: Language, example: FormExample) -> dict[str, str]:
    """The prompt texts of an agent by name, for `Agent(prompts=…)`, with the texts of the form example."""
    folder = files("taoloop.serve.gateway.higress").joinpath("texts", language)
    texts = {name: folder.joinpath(f"{name}.txt").read_text(encoding="utf-8") for name in _NAMES}
    own = {name: getattr(example, name).replace("$", "$$") for name in _EXAMPLE_TEXTS}
    return {**texts, **{name: Template(texts[name]).safe_substitute(own) for name in _FILLED}}


POLICY = Policy(pin="keywords")
"""Reading runs, the rest is put before a person. What the task calls for is judged by its words, so that a run makes
no other calls of the model than those that such a file is known to make."""

_LANGUAGES: dict[str, Language] = {"EN": "en", "CH": "zh"}
_TEMPLATES: dict[Language, str] = {"en": "enTemplate", "zh": "chTemplate"}
_IGNORED_TEXTS = ("actionInput", "finalAnswer", "begin")
_HTTPS_PORT = 443


def _url_path(path: str, _reader: SettingsReader) -> str:
    if "://" in path or any(char.isspace() or not char.isprintable() for char in path) or "#" in path:
        raise expected("a path such as /v1/chat/completions")
    return path if path.startswith("/") else f"/{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSettings:
    """What `llm` says: the model, and how far it goes."""

    api_key: Annotated[str, SECRET] = field(repr=False)
    """Sent as `Authorization: Bearer …`."""

    service_name: str
    """The name of the model's service; --resolve can send it elsewhere."""

    service_port: Annotated[int, Span(1, 65535)] | None = None
    """443 is called by https, any other by http; in the short form it is 443 where it is absent."""

    domain: Annotated[str, checked(require_host)]
    """The host."""

    path: Annotated[str, checked(_url_path)]
    """The path of the chat endpoint; requests go exactly there."""

    model: str
    """The name of the model."""

    max_iterations: Annotated[int, Span(0)] = 15
    """How many tool calls at most."""

    max_execution_time: Annotated[int, Span(0)] = DEFAULT_TIMEOUT_MS
    """How long one model call may take, in ms."""

    max_tokens: Annotated[int, Span(0)] = 1000
    """The longest reply of one model call, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormExample:
    """The texts of the form example in the English prompt; one that is absent has its default."""

    question: Annotated[str, LITERAL] = "input question to answer"
    """After `Question:`."""

    thought1: Annotated[str, LITERAL] = "consider previous and subsequent steps"
    """After the first `Thought:`."""

    observation: Annotated[str, LITERAL] = "action result"
    """After `Observation:`."""

    thought2: Annotated[str, LITERAL] = "I know what to respond"
    """After the last `Thought:`."""

    action_input: Any = None
    """Accepted; has no effect."""

    final_answer: Any = None
    """Accepted; has no effect."""

    begin: Any = None
    """Accepted; has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChineseFormExample(FormExample):
    """The same in the Chinese prompt."""

    question: Annotated[str, LITERAL] = "输入要回答的问题"
    """After `Question:`."""

    thought1: Annotated[str, LITERAL] = "考虑之前和之后的步骤"
    """After the first `Thought:`."""

    observation: Annotated[str, LITERAL] = "行动结果"
    """After `Observation:`."""

    thought2: Annotated[str, LITERAL] = "我知道该回应什么"
    """After the last `Thought:`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """What `promptTemplate` says."""

    language: str = "EN"
    """CH for Chinese; anything else is English."""

    en_template: FormExample = FormExample()
    """The texts of the English prompt."""

    ch_template: ChineseFormExample = ChineseFormExample()
    """The texts of the Chinese prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonResponse:
    """What `jsonResp` says."""

    enable: bool = False
    """Whether the final answer is reshaped to JSON."""

    json_schema: Annotated[
        Any, checked(response_schema), WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}]})
    ] = None
    """The schema of the answer, as a mapping or as a text; without it any JSON object will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AiAgentFields:
    """The fields of an `ai-agent` file."""

    llm: LlmSettings
    """The model."""

    apis: tuple[Any, ...]
    """The services whose operations are the tools."""

    prompt_template: PromptTemplate = PromptTemplate()
    """The language, and the texts of the form example."""

    json_resp: JsonResponse = JsonResponse()
    """Whether the final answer is made JSON."""

    return_response_template: Annotated[str, LITERAL] = ""
    """Accepted; not needed here."""


SETTING_NAMES = {"max_steps": "maxIterations", "max_tool_calls": "maxIterations", "max_output_tokens": "maxTokens"}
"""What such a file calls the settings of an agent, besides its limits in time."""


def is_ai_agent(data: Mapping[str, Any]) -> bool:
    """Whether a file is one of the plugin, as it is or in a resource of Kubernetes, and no agent file."""
    return "llm" in data or "apis" in data or is_wasm_plugin(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class AiAgentFile:
    """What is in a file of the plugin."""

    agents: Mapping[str, ServedAgent]
    """The agents by name; the default one is first."""

    warnings: tuple[str, ...]
    """What does not make the file unusable."""

    has_default: bool
    """Whether the first agent answers where a request names none."""


def is_short(data: Mapping[str, Any]) -> bool:
    """Whether an entry of `apis` is written in the short form."""
    entries = data.get("apis")
    return isinstance(entries, list) and any(map(is_short_entry, entries))


def read_higress(document: ConfigDocument, env: Mapping[str, str], services: HostOverrides) -> AiAgentFile:
    """The agents of such a file: one with the name of the file, or those of a resource of Kubernetes.

    `env` holds the variables for `${NAME}`.

    Raises:
        AgentFileError: a field is missing, of the wrong type, or out of range; names the file, the line and the field.
    """
    if not is_wasm_plugin(document.data):
        reader = SettingsReader(document, env)
        served = _read_agent(reader, document.path.stem, services)
        return AiAgentFile(agents={served.name: served}, warnings=tuple(reader.warnings), has_default=True)
    resource = SettingsReader(document, env)
    configs, agents, warnings = plugin_configs(resource), dict[str, ServedAgent](), resource.warnings
    for name, config in configs.items():
        reader = SettingsReader(config, env)
        agents[name] = _read_agent(reader, name, services)
        warnings += reader.warnings
    has_default = document.path.stem in agents or len(agents) == 1
    return AiAgentFile(agents=agents, warnings=tuple(warnings), has_default=has_default)


def _read_agent(reader: SettingsReader, name: str, services: HostOverrides) -> ServedAgent:
    fields = reader.read(AiAgentFields, (), reader.document.data, mode="lenient")
    llm = fields.llm
    reader.keep_secret(("llm", "apiKey"), llm.api_key)
    if llm.api_key.lower().startswith("bearer "):
        reader.warn(("llm", "apiKey"), "it begins with Bearer, which is sent before it anyway.")
    model = _model(reader, llm, services, is_flat=is_short(reader.document.data))
    tools = ApiReader(reader, services).tools(fields.apis)
    language, example = _prompt(reader, fields.prompt_template)
    agent = Agent(
        name=name,
        model=model,
        tools=tools,
        dialect="fenced",
        language=language,
        prompts=agent_prompts(language, example),
        limits=Limits(max_steps=llm.max_iterations + 1, max_tool_calls=llm.max_iterations),
        closing_turn=False,  # the reply after the last call is the last one
        policy=POLICY,
        max_output_tokens=llm.max_tokens,
        model_timeout_s=llm.max_execution_time / 1000,
        secrets=reader.secrets,
    )
    if (template := fields.return_response_template) and template.count("%s") != 1:
        reader.warn(("returnResponseTemplate",), "it has no single %s; it is not used here anyway.")
    response = fields.json_resp
    reshape = (response.json_schema or ANY_OBJECT) if response.enable else None
    limits = {
        "maxIterations": llm.max_iterations,
        "maxExecutionTime": llm.max_execution_time,
        "maxTokens": llm.max_tokens,
    }
    return ServedAgent(name=name, agent=agent, reshape=reshape, setting_names=SETTING_NAMES, file_limits=limits)


def _model(reader: SettingsReader, llm: LlmSettings, services: HostOverrides, *, is_flat: bool) -> FixedUrlModel:
    port = _HTTPS_PORT if llm.service_port is None and is_flat else llm.service_port
    if port is None:
        raise reader.document.error(("llm", "servicePort"), "it is missing, or empty.")
    own = service_origin(llm.domain, port)
    host = services.host_header(own, llm.service_name, llm.domain).get("Host", "")
    base = services.base_of(llm.service_name, llm.domain)
    if not base and port != _HTTPS_PORT:
        message = f"port {port} is not 443, so apiKey is sent to {llm.domain} without encryption."
        reader.warn(("llm", "servicePort"), message)
    return FixedUrlModel((base or own) + llm.path, llm.model, llm.api_key, host)


def _prompt(reader: SettingsReader, prompt: PromptTemplate) -> tuple[Language, FormExample]:
    """The language of the prompt, and the texts of its form example."""
    language = _LANGUAGES.get(prompt.language)
    if language is None:
        message = f"{prompt.language!r} is neither EN nor CH; it counts as EN."
        reader.warn(("promptTemplate", "language"), message)
    templates = reader.document.data.get("promptTemplate") or {}
    for name in _TEMPLATES.values():
        for field_name in _IGNORED_TEXTS:
            if field_name in (templates.get(name) or {}):
                reader.warn(("promptTemplate", name, field_name), "it has no effect.")
    return language or "en", prompt.ch_template if language == "zh" else prompt.en_template


PROVIDER = "llm"
"""The provider of such a model in traces and messages: `llm:NAME`."""

KEY_FIELD = "llm.apiKey"

_INVENTED_OBSERVATION = "invented_observation"
_MAX_STOPS = 20  # a thought may mention observations before the action


class FixedUrlModel(OpenAIModel):
    """A chat model at exactly one URL. It takes the key as a bearer token, and nothing from the environment.

    Servers often ignore `stop`. Where a reply continues with an observation that the model made up, everything after
    its action is cut off, as the server should have done.
    """

    def __init__(self, url: str, model: str, api_key: str, host: str = "") -> None:
        self._host = host  # the header, where the address is overridden
        super().__init__(Endpoint(provider=PROVIDER, model=model, api_key=api_key, url=url, key_var=KEY_FIELD))

    def _headers(self, body: Mapping[str, Any]) -> Mapping[str, str] | None:
        more = super()._headers(body)
        return {**(more or {}), "Host": self._host} if self._host else more

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply, cut where it should have stopped."""
        return cut_at_stop(await super().complete(request), request)


def cut_at_stop(reply: ModelReply, request: ModelRequest) -> ModelReply:
    """`reply` up to the first stop sequence after its action, where it invents an observation; else unchanged."""
    stops = "|".join(map(re.escape, request.stop))
    ends = [match.start() for match in islice(re.finditer(stops, reply.text), _MAX_STOPS)] if stops else []
    if not ends:
        return reply
    dialect = get_dialect(request.dialect)
    whole = dialect.read(reply, request.tools)
    if not isinstance(whole, Problem) or whole.code != _INVENTED_OBSERVATION:
        return reply
    for end in ends:
        cut = replace(reply, text=reply.text[:end], finish_reason="stop")
        if isinstance(dialect.read(cut, request.tools), Act):
            return cut
    return reply
