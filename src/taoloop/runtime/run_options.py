"""The options of a run, a resume and a fork, for methods that pass them on; `Agent.run` says what each one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from taoloop.core.agent_spec import Limits
from taoloop.core.cards.tool_card import Tier
from taoloop.core.policy import Policy, Profile

if TYPE_CHECKING:
    from taoloop.core.message import Message
    from taoloop.models.base import DeltaListener
    from taoloop.runtime.engine.run_artifacts import ImageSource
    from taoloop.runtime.runner import Listener
else:
    from taoloop.lazy_exports import lazy_types

    globals().update(lazy_types({"core": "Message", "models": "DeltaListener", "runtime": "ImageSource Listener"}))


class TurnOptions(TypedDict, total=False):
    """What a turn of a conversation takes beside its task and its `deps`."""

    max_steps: int | None
    limits: Limits | None
    allow: Sequence[str] | None
    history: Sequence[Message]
    run_id: str | None
    parent: str | None
    images: Sequence[ImageSource]
    user: str
    lessons_from: Sequence[str]
    started_by: str
    verbose: bool
    on_event: Listener | None
    on_delta: DeltaListener | None


class RunOptions(TurnOptions, total=False):
    """What `Agent.run` takes beside the task and its `deps`."""

    after: str | None


class StreamedRunOptions(TypedDict, total=False):
    """What `Agent.stream` takes beside the task and its `deps`: no listener for the events that it gives."""

    max_steps: int | None
    limits: Limits | None
    allow: Sequence[str] | None
    history: Sequence[Message]
    after: str | None
    run_id: str | None
    parent: str | None
    images: Sequence[ImageSource]
    user: str
    lessons_from: Sequence[str]
    started_by: str
    verbose: bool
    on_delta: DeltaListener | None


class ResumeOptions(TypedDict, total=False):
    """What `Agent.resume` takes beside the run and its `deps`."""

    max_steps: int | None
    limits: Limits | None
    approved_tiers: tuple[Tier, ...] | None
    policy: Policy | Profile | None
    take_over: bool
    kill_holder: bool
    verbose: bool
    on_event: Listener | None
    on_delta: DeltaListener | None
