"""An agent bound to its model, tools, policy and journal: what drives its runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taoloop.core.agent_spec import AgentSpec, Limits
from taoloop.core.attachments.files import Attachment, File, infos_of
from taoloop.core.cards.tool_card import Tier
from taoloop.core.cards.tool_search import PAGING_TOOL
from taoloop.core.events import Fact, ModelReplied, Resumed, RunStarted
from taoloop.core.handles import READER
from taoloop.core.message import Message
from taoloop.core.policy import Policy, Profile, plain_policy
from taoloop.core.redaction.redactor import Redactor
from taoloop.core.text import language_of, replace_surrogates
from taoloop.core.trace import Trace
from taoloop.core.views.plans import MAKE_PLAN, RUN_STEP
from taoloop.core.views.transcript import Result
from taoloop.errors import ConfigError, RunNotResumable
from taoloop.journals.base import Artifact, Journal, Lease
from taoloop.journals.memory import MemoryJournal
from taoloop.models.base import DeltaListener, Model
from taoloop.models.env_file import load_environment_of_script
from taoloop.policy import CodeRule, reject_unmatchable_rules
from taoloop.runtime.agent_settings import AUTO, AgentSettings, RunInfo, changed_limits
from taoloop.runtime.agent_toolbox import FINDERS, build_toolbox, default_limits, with_paging_tool
from taoloop.runtime.approvals.request import Approver
from taoloop.runtime.chat import has_untrusted_turns, load_history
from taoloop.runtime.engine.agent_description import describe_agent, policy_of_runs
from taoloop.runtime.engine.attachment_sources import AttachmentSource, read_attachments, require_readable
from taoloop.runtime.engine.clock import new_nonce
from taoloop.runtime.engine.hook_setup import hooks_of, require_hooks
from taoloop.runtime.engine.redaction import redactor_for
from taoloop.runtime.engine.run_artifacts import RunArtifacts, describe_images, first_artifacts, with_attachments
from taoloop.runtime.engine.run_dependencies import inherited_deps, resolve_deps, with_deps
from taoloop.runtime.engine.tool_execution import require_transactions
from taoloop.runtime.journal_access import acquire_run, open_journal, require_open, run_lock
from taoloop.runtime.observation.run_observation import observe_run
from taoloop.runtime.plan_steps import with_plan_tools
from taoloop.runtime.resume_facts import AgentChanges, agent_changes, policy_note, replacing_policy, undo_facts
from taoloop.runtime.runner import Listener, Runner
from taoloop.runtime.tool_source import LoadedEntries, resolve_sources
from taoloop.strategies import PlanExecute, Strategy, get_strategy
from taoloop.strategies.plan_execute import PLAN_STEP
from taoloop.tools.toolbox import LoadProblem, Toolbox

if TYPE_CHECKING:
    from taoloop.models.endpoint_balance import EndpointHealth
    from taoloop.models.model_builder import BuiltModel
    from taoloop.runtime.output_type import OutputValidator

MEMORY_RUNS = 256
"""The number of runs that an agent without a journal remembers, so that the last ones can be resumed."""

_LOG = logging.getLogger("taoloop")

_RANK: dict[Tier | None, int] = {"read": 0, "draft": 1, "write": 2, None: 3, "destructive": 3}


def bind(agent: AgentSettings) -> BoundAgent:
    """The agent with the parts that its settings name; bound once, so that all its runs share them."""
    bound: BoundAgent | None = agent.__dict__.get("_bound")
    if bound is None:
        bound = agent.__dict__.setdefault("_bound", BoundAgent(agent))  # atomic: threads may come here at once
    return bound


class BoundAgent:
    """An agent's settings with the parts that they name. A part is made when it is first used.

    Get it from `bind`. It serves any number of runs at once.
    """

    def __init__(self, settings: AgentSettings) -> None:
        self.settings = copy(settings)  # a reference back to the agent would leave both to the garbage collector
        self.memory_journal = MemoryJournal(keep=MEMORY_RUNS)
        self.has_recovered = False
        self._specs: dict[str, AgentSpec] = {}

    # Its parts

    @property
    def model(self) -> Model:
        """The model that answers."""
        return self._built_model.model

    @cached_property
    def env(self) -> Mapping[str, str] | None:
        """The environment variables for model, keys and secrets; None: those of the process.

        Raises:
            EnvFileError: the `.env` file cannot be read.
        """
        own = self.settings
        return load_environment_of_script(report=_LOG.warning) if own.load_env and own.env is None else own.env

    @cached_property
    def _built_model(self) -> BuiltModel:
        from taoloop.models.model_builder import build_model  # noqa: PLC0415  # a run needs it, an idle agent does not

        own = self.settings
        return build_model(
            own.model,
            own.fallback,
            retry=own.retry,
            rate=own.rate,
            prices=own.prices,
            endpoints=own.endpoints,
            env=self.env,
            vision=own.vision,
            response_cache=own.response_cache,
        )

    @property
    def endpoint_health(self) -> tuple[EndpointHealth, ...]:
        """How the endpoints of its model are now; none where it has only one."""
        balanced = self._built_model.balanced
        return () if balanced is None else balanced.health

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools by name, with `read_observation` beside them for long outputs, or `ask_about`."""
        own = self.own_toolbox
        if not self.settings.handoffs:
            return own
        return with_paging_tool([*own, *self.settings.handoff_tools()], handles=self.hides_observations)

    @cached_property
    def own_toolbox(self) -> Toolbox:
        """The tools without those by which the agent hands over."""
        own = self.settings
        toolbox = build_toolbox(
            self._entries.tools, workspace=own.workspace, memory=own.memory, handles=self.hides_observations
        )
        return self._with_plan_tools(toolbox, self.strategy)

    @cached_property
    def _entries(self) -> LoadedEntries:
        return resolve_sources(self.settings.tools)

    @property
    def load_problems(self) -> tuple[LoadProblem, ...]:
        """What the sources of its tools could not give; the rest can be used."""
        return self._entries.problems

    def _with_plan_tools(self, toolbox: Toolbox, strategy: Strategy) -> Toolbox:
        is_planning = isinstance(strategy, PlanExecute)
        return with_plan_tools(toolbox, lambda: self.step_agent, self.settings.approve) if is_planning else toolbox

    def _toolbox_of(self, trace: Trace) -> Toolbox:
        """The tools for a run, which may plan where the agent does not do so any more."""
        return self.toolbox if trace.started is None else self._with_plan_tools(self.toolbox, self._strategy_of(trace))

    @cached_property
    def step_agent(self) -> BoundAgent:
        """Carries out the steps of its plans: the same agent, with the rules of the run around it, but for the plan."""
        own = self.settings
        plain = "" if callable(own.instructions) else own.instructions  # a step has those of the run that planned
        agent = BoundAgent(
            replace(own, strategy=PLAN_STEP, output_type=None, handoffs=(), rules=(), instructions=plain)
        )
        tools = [tool for tool in self.own_toolbox if tool.name not in (MAKE_PLAN, RUN_STEP)]
        agent.__dict__.update(_built_model=self._built_model, toolbox=Toolbox(tools), redactor=self.redactor)
        return agent

    @property
    def paging_tools(self) -> tuple[str, ...]:
        """The tools that accompany every other: they read observations, find tools, and carry out plans."""
        names = (READER if self.hides_observations else PAGING_TOOL, *FINDERS, MAKE_PLAN, RUN_STEP)
        return tuple(name for name in names if name in self.toolbox)

    @property
    def hides_observations(self) -> bool:
        """Whether the model sees handles in place of observations."""
        policy = self.settings.policy
        return isinstance(policy, Policy) and policy.observations == "handles"

    @cached_property
    def policy(self) -> Policy:
        """What the agent may do.

        Raises:
            ConfigError: a rule can never match one of its tools.
        """
        policy = self.settings.policy
        if isinstance(policy, str):
            policy = plain_policy(policy)
        if policy.rules or policy.trusted_tools or policy.trusted_fields:
            reject_unmatchable_rules(policy, {card.name: card for card in self.toolbox.cards})
        return policy

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy that decides what comes next."""
        strategy = self.settings.strategy
        return get_strategy(strategy) if isinstance(strategy, str) else strategy

    @cached_property
    def redactor(self) -> Redactor | None:
        """Replaces secrets; None if the agent stores everything as it is."""
        own = self.settings
        if not own.redact:
            return None
        secrets = own.secrets
        if own.endpoints:
            from taoloop.models.model_builder import endpoint_keys  # noqa: PLC0415  # as above

            keys = endpoint_keys(own.endpoints, self.env)
            secrets = {**secrets, **keys} if isinstance(secrets, Mapping) else (*secrets, *keys.values())
        return redactor_for(self.env, secrets, self.toolbox)

    @cached_property
    def output_validator(self) -> OutputValidator | None:
        """Checks the agent's answers; None if they are texts.

        Raises:
            ConfigError: the output type cannot be described as JSON, or is not a valid schema.
        """
        output_type = self.settings.output_type
        if output_type is None or output_type is str:
            return None
        from taoloop.runtime.output_type import OutputValidator  # noqa: PLC0415  # loads the schema machinery

        return OutputValidator.of(output_type)

    def open_journal(self) -> AbstractAsyncContextManager[Journal]:
        """The agent's journal, open as long as the block runs.

        Raises:
            ConfigError: no asyncio event loop is running.
            JournalError: its file cannot be opened.
        """
        journal = self.settings.journal
        return open_journal(self.memory_journal if journal is None else journal)

    async def close(self) -> None:
        """Close the connections of a model that was named by its spec, and those of the agents among the tools."""
        if "_built_model" in self.__dict__:
            await self._built_model.close()
        if "toolbox" in self.__dict__:
            toolbox = self.__dict__.pop("toolbox")  # agents that hand over to each other meet again here
            for tool in toolbox:
                if tool.runs_inside and tool.name != RUN_STEP:  # whose agent has the same model and tools
                    await bind(tool.handler.agent).close()
            self.toolbox = toolbox

    # The agent as plain data

    def spec_for(self, task: str) -> AgentSpec:
        """The agent as plain data, in the language of `task`.

        Raises:
            ConfigError: a name is unknown, a prompt file is unusable, or a rule of its policy can never match.
        """
        language = self.settings.language
        if language == AUTO:
            language = language_of(task)
        if (spec := self._specs.get(language)) is None:
            spec = self._specs[language] = self._spec_in(language)
        return spec

    def _spec_in(self, language: str) -> AgentSpec:
        return describe_agent(
            self.settings,
            language,
            model=self.model,
            strategy=self.strategy,
            policy=policy_of_runs(self.policy, self.model, self.toolbox.cards),
            tools=self.toolbox.cards_in(language),
            output_schema=self.output_validator.schema if self.output_validator is not None else None,
        )

    # Its runs

    def new_spec(
        self, task: str, limits: Limits | None, max_steps: int | None, allow: Sequence[str] | None
    ) -> AgentSpec:
        """The agent as plain data for one run, with its limits and with only the tools of `allow`.

        Raises:
            ConfigError: the task is no text, or as `spec_for`.
            UnknownName: the agent lacks a tool of `allow`.
        """
        text: object = task  # whatever a caller without types passes
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"The task is {task!r}.", hint="Say in a text what the agent should do.")
        spec = self.spec_for(task)
        if limits is not None or max_steps is not None:
            changed = changed_limits(spec.limits, limits, max_steps)
            spec = replace(spec, limits=default_limits(changed, self.toolbox.cards))
        if allow is None:
            return spec
        allowed = self.toolbox.allow([*allow, *self.paging_tools])
        return replace(spec, tools=allowed.cards_in(spec.language))

    async def first_event(
        self,
        journal: Journal,
        task: str,
        spec: AgentSpec,
        *,
        history: Sequence[Message],
        after: str | None,
        parent: str | None,
        attachments: Sequence[Attachment] = (),
        labels: Mapping[str, str],
    ) -> RunStarted:
        """The first event of a run, with the conversation that it continues.

        Raises:
            RunNotFound, RunNotAnswered: `after` names no run, or one without an answer.
            ConfigError: the history has messages that the model must not read.
        """
        untrusted = has_untrusted_turns(history, handles=self.hides_observations)
        if after is not None:
            history, untrusted = await load_history(journal, after, handles=self.hides_observations)
        return RunStarted(
            task=replace_surrogates(task),
            agent=spec,
            nonce=new_nonce(),
            history=tuple(history),
            parent=parent,
            after=after,
            tainted=untrusted or any(isinstance(item, File) for item in attachments),
            **infos_of(attachments),
            labels=labels,
        )

    def read_attachments(self, sources: Sequence[AttachmentSource]) -> tuple[Attachment, ...]:
        """The images and files of a task; refuses what this agent's model can make nothing of (`require_readable`)."""
        attachments = read_attachments(sources, self.redactor)
        require_readable(attachments, self.model, is_described=self.settings.describe_image is not None)
        return attachments

    async def take_attachments(self, sources: Sequence[AttachmentSource]) -> tuple[Attachment, ...]:
        """Those, with descriptions of images as the runs of this agent take them."""
        return await describe_images(self.read_attachments(sources), self.model, self.settings.describe_image)

    async def load_resumable(self, journal: Journal, run_id: str) -> Trace:
        """A run that this agent can resume (`require_resumable`).

        Raises:
            RunNotFound: the journal has no such run.
        """
        trace = Trace(run_id, await journal.load(run_id))
        self.require_resumable(trace)
        return trace

    def require_resumable(self, trace: Trace) -> None:
        """Refuse a run that this agent cannot resume, before it is acquired.

        Raises:
            RunNotResumable: it never began, is completed, or was abandoned.
            ConfigError: a tool of the run has a stricter tier now, needs approval now, or can no longer be repeated.
            UnknownName: a tool of the run is missing.
        """
        if trace.started is None:
            raise RunNotResumable(f"Run {trace.run_id} never began.", hint="Start a new run.")
        require_open(trace)
        toolbox = self._toolbox_of(trace)
        for card in trace.agent.tools:
            known = toolbox.get(card.name).card
            if _RANK[known.tier] > _RANK[card.tier]:
                raise ConfigError(
                    f"The tool {card.name!r} had the tier {card.tier!r} when the run began and has {known.tier!r} now.",
                    hint="A call that was judged for the milder tier must not run under the stricter one: start a new"
                    " run.",
                )
            if known.requires_approval and not card.requires_approval:
                raise ConfigError(
                    f"The tool {card.name!r} needs a person's approval for each call now, and did not when the run"
                    " began.",
                    hint="A call that was judged without it must not run: start a new run.",
                )
            if (card.idempotent and not known.idempotent) or (card.transactional and not known.transactional):
                raise ConfigError(
                    f"The tool {card.name!r} could be repeated when the run began, and cannot be any more.",
                    hint="An interrupted call would be repeated by its old card: start a new run.",
                )

    async def start(
        self,
        journal: Journal,
        trace: Trace,
        started: RunStarted,
        lessons_from: Sequence[str] = (),
        *,
        decision: ModelReplied | None = None,
        attachments: Sequence[Attachment] = (),
        listener: Listener | None = None,
        on_delta: DeltaListener | None = None,
        approver: Approver | None = None,
        redactor: Redactor | None = None,
        rules: Sequence[CodeRule] = (),
        deps: Any = None,
    ) -> Result:
        """Start the run of `trace` (which is empty) in an open journal, and drive it.

        `decision` is the first decision if it was made in advance: secrets in it are only used for its call.
        `attachments` are the images and files that `started` names, with their bytes; the journal has those of `after`.
        `redactor` knows further secrets, such as those of a parent run; `rules` are asked before the agent's own.
        `lessons_from`: runs whose lessons it reads. `deps` are what tools get; None: what the agent makes for it.

        Raises:
            RunExists: the journal has a run of that id.
            ConfigError: the dependencies do not fit, or the instructions cannot be made of them; nothing was stored.
        """
        facts, first, deps = await self.opening(journal, trace.run_id, started, lessons_from, attachments, deps)
        if decision is not None:
            facts.insert(1, decision)
        lease = await getattr(journal, "begin", journal.create)(trace.run_id)  # one with the first append, if it can
        with run_lock(journal, lease), observe_run(self.settings, trace, started.agent, listener) as listener:
            return await self._drive(
                trace, lease, journal, listener, on_delta, started.agent, approver, redactor, facts, first, rules, deps
            )

    async def opening(
        self,
        journal: Journal,
        run_id: str,
        started: RunStarted,
        lessons_from: Sequence[str] = (),
        attachments: Sequence[Attachment] = (),
        deps: Any = None,
    ) -> tuple[list[Fact], Sequence[Artifact], Any]:
        """The first facts of a run and their artifacts, with its dependencies; checked, and nothing of it is stored.

        Raises:
            ConfigError: as `start`.
        """
        require_transactions(journal, self.toolbox)
        require_hooks(self.settings, self.toolbox)
        started, deps = await with_deps(self.settings, run_id, started, deps)
        first = await first_artifacts(journal, started, attachments)
        facts: list[Fact] = [started]
        most = getattr(self.strategy, "lessons", 0)
        if lessons_from or most:
            from taoloop.runtime.lessons import lesson_notes  # noqa: PLC0415  # few runs read lessons

            facts += await lesson_notes(journal, started, most, lessons_from)
        return facts, first, deps

    def inherited_deps(self, deps: Any) -> Any:
        """The dependencies of the run around one of this agent's, if it can take them; else None."""
        return inherited_deps(self.settings, deps)

    async def continue_run(
        self,
        journal: Journal,
        trace: Trace,
        *,
        limits: Limits,
        approved_tiers: tuple[Tier, ...] | None = None,
        listener: Listener | None = None,
        on_delta: DeltaListener | None = None,
        approver: Approver | None = None,
        redactor: Redactor | None = None,
        rules: Sequence[CodeRule] = (),
        at: int | None = None,
        take_over: bool = True,
        kill_holder: bool = False,
        policy: Policy | Profile | None = None,
        deps: Any = None,
    ) -> Result:
        """Acquire the run of `trace` in an open journal, and drive it; `trace` gets the events that it lacks.

        `policy` takes the place of the run's from here on; calls that were not started are judged again by it. `deps`
        as in `start`: those of the process before are gone.

        Raises:
            ConfigError: the run cannot take this policy over (`replacing_policy`), or the dependencies do not fit.
            FenceLost: the run has other than `at` events: somebody resumed it meanwhile.
            RunHeld: a process is at work on it that is not to be ended, or cannot be (`acquire_run`).
            RunNotResumable: it is completed.
        """
        require_transactions(journal, self.toolbox)
        require_hooks(self.settings, self.toolbox)
        if policy is not None:
            replacing_policy(trace, policy)  # refused before the run is acquired
        info = RunInfo(run_id=trace.run_id, user=trace.user, task=trace.task, agent=self.settings.name)
        deps = await resolve_deps(self.settings, deps, info)
        lease, earlier = await acquire_run(
            journal, trace.run_id, at=at, take_over=take_over, kill_holder=kill_holder
        )  # no other worker can write now
        with run_lock(journal, lease), observe_run(self.settings, trace, trace.agent, listener) as listener:
            for event in (await journal.load(trace.run_id))[len(trace) :]:
                trace.append(event)
            require_open(trace)  # another process may have ended it a moment ago
            changes = self.changes_since(trace, redactor, new_policy=policy)
            if text := str(changes):
                is_warning = changes.changed or changes.policy or changes.new_policy or changes.graph
                level = logging.WARNING if is_warning else logging.INFO
                _LOG.log(level, "run %s continues with %s", trace.run_id, text)
            earlier = earlier if trace.status == "running" else ""  # else the run was left in good order
            limits = default_limits(limits, trace.agent.tools)
            resumed = Resumed(limits=limits, approved_tiers=approved_tiers, earlier_holder=earlier)
            notes = undo_facts(trace) if changes.new_policy is None else [*undo_facts(trace), policy_note(trace)]
            facts = (changes.recorded_in(resumed), *notes)
            return await self._drive(
                trace, lease, journal, listener, on_delta, trace.agent, approver, redactor, facts, (), rules, deps
            )

    def changes_since(
        self, trace: Trace, redactor: Redactor | None = None, *, new_policy: Policy | Profile | None = None
    ) -> AgentChanges:
        """What is another on this agent than when a run was last driven, if `new_policy` replaces the run's.

        Raises:
            ConfigError: the run cannot take this policy over.
        """
        known, own = self._redactor_of_run(redactor), self.settings.policy
        graph = getattr(self.strategy, "description", None)
        return agent_changes(
            trace, self._toolbox_of(trace), self.model.spec, own, known, new_policy=new_policy, graph=graph
        )

    def result_of(self, trace: Trace) -> Result:
        """The result of a run that is finished or waits, with its answer as a value where it has an output type."""
        result = Result.of(trace)
        validator = self._validator_of(trace.agent) if result.answer is not None else None
        return result if validator is None else replace(result, output=validator.value(result.answer or ""))

    async def _drive(
        self,
        trace: Trace,
        lease: Lease,
        journal: Journal,
        listener: Listener | None,
        on_delta: DeltaListener | None,
        spec: AgentSpec,
        approver: Approver | None,
        redactor: Redactor | None,
        facts: Sequence[Fact],
        first: Sequence[Artifact] = (),
        rules: Sequence[CodeRule] = (),
        deps: Any = None,
    ) -> Result:
        """Drive a run from the first facts of this process to its end, or until it waits."""
        validator, handles = self._validator_of(spec), None
        check = validator.check if validator is not None else None
        if spec.policy.observations == "handles":
            from taoloop.runtime.engine.handle_resolver import HandleResolver  # noqa: PLC0415  # only in this mode

            handles = HandleResolver(trace, journal, self.model, check)
        known, own = self._redactor_of_run(redactor), self.settings
        strategy = self._strategy_of(trace)
        artifacts = RunArtifacts(trace, journal, known, self.model, own.describe_image, first)
        runner = Runner(
            trace,
            lease,
            journal=journal,
            strategy=strategy,
            model=self.model,
            toolbox=self._with_plan_tools(self.toolbox, strategy),
            clock=own.clock,
            approver=approver or own.approve,
            listener=listener,
            on_delta=on_delta,
            early_reads=spec.early_reads and not own.hooks,  # what a hook may refuse must not begin before
            check_answer=check,
            rules=(*rules, *own.rules),
            redactor=known,
            handles=handles,
            artifacts=artifacts,
            deps=deps,
            hooks=hooks_of(own, trace, validator),
        )
        for fact in facts:
            runner.note(fact)
        await runner.advance()
        result = self.result_of(trace)
        if trace.has_attachments:
            result = with_attachments(result, await artifacts.results())
        if result.status == "completed" and (trace.started is None or trace.started.plan_step is None):
            self.model.check_used(trace.model_calls)  # for a step of a plan it says nothing: it may ask no model
        return result

    def _redactor_of_run(self, outer: Redactor | None) -> Redactor | None:
        """What removes secrets: the agent's own, and those of the run that called it."""
        return self.redactor if outer is None else outer.merged_with(self.redactor)

    def _strategy_of(self, trace: Trace) -> Strategy:
        """The strategy that the run began with; the agent's own may be one that is not registered."""
        own = self.strategy
        return own if trace.started is None or trace.agent.strategy == own.name else get_strategy(trace.agent.strategy)

    def _validator_of(self, spec: AgentSpec) -> OutputValidator | None:
        """Checks a run's answers: the agent's own validator if the schemas are equal, else one from the run's."""
        if spec.output_schema is None:
            return None
        from taoloop.runtime.output_type import validator_for  # noqa: PLC0415  # loads the schema machinery

        return validator_for(spec.output_schema, self.output_validator)
