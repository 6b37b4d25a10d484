"""The options of a run, a resume and a fork, for methods that pass them on; `Agent.run` says what each one does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import Tier
from taoloop.core.policy import Policy, Profile

if TYPE_CHECKING:
    from taoloop.core.message import Message
    from taoloop.models.base import DeltaListener
    from taoloop.runtime.engine.attachment_sources import AttachmentSource
    from taoloop.runtime.runner import Listener
else:
    from taoloop.lazy_exports import lazy_types

    globals().update(lazy_types({"core": "Message", "models": "DeltaListener", "runtime": "AttachmentSource Listener"}))


class SubmitOptions(TypedDict, total=False):
    """What every new run takes that is stored with it, whoever drives it."""

    max_steps: int | None
    """The steps that it may take, in place of the agent's."""
    limits: Limits | None
    """Its limits, in place of the agent's."""
    allow: Sequence[str] | None
    """The only tools that it may call."""
    history: Sequence[Message | Mapping[str, Any]]
    """Earlier turns of the conversation, as messages."""
    run_id: str | None
    """Its id; None makes one."""
    images: Sequence[AttachmentSource]
    """The images and files of the task."""
    user: str
    """The person for whom it is."""
    session: str
    """The conversation whose next turn it is."""
    lessons_from: Sequence[str]
    """The runs whose lessons it reads."""
    started_by: str
    """Who asks for it, and how that is known."""


class NewRunOptions(SubmitOptions, total=False):
    """What every new run takes that is driven where it begins, beside its task and its `deps`."""

    parent: str | None
    """The run whose call it is."""
    verbose: bool
    """Whether each step is printed."""
    on_delta: DeltaListener | None
    """Called with each piece of a reply."""


class StreamedRunOptions(NewRunOptions, total=False):
    """What `Agent.stream` takes: no listener for the events that it gives."""

    after: str | None
    """The run that it continues."""


class TurnOptions(NewRunOptions, total=False):
    """What a turn of a conversation takes, which knows the run before it."""

    on_event: Listener | None
    """Called with every event once the journal has it."""


class RunOptions(StreamedRunOptions, TurnOptions, total=False):
    """What `Agent.run` takes."""


class StreamedResumeOptions(TypedDict, total=False):
    """What `Agent.stream_resume` takes beside the run and its `deps`."""

    max_steps: int | None
    """The steps that the run may take, in place of its own limit."""
    limits: Limits | None
    """Its limits from here on."""
    approved_tiers: tuple[Tier, ...] | None
    """The tiers that are approved in advance from here on."""
    policy: Policy | Profile | None
    """The policy that judges from here on."""
    take_over: bool
    """Whether it is resumed although another process may be at work on it."""
    kill_holder: bool
    """Whether such a process is ended first."""
    verbose: bool
    """Whether each step is printed."""
    on_delta: DeltaListener | None
    """Called with each piece of a reply."""


class ResumeOptions(StreamedResumeOptions, total=False):
    """What `Agent.resume` takes."""

    on_event: Listener | None
    """Called with every event once the journal has it."""
