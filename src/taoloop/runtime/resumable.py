"""Whether a run can be gone on with, with the tools as they are now."""

from __future__ import annotations

from taoloop.core.cards import Tier
from taoloop.core.trace import Trace
from taoloop.errors import ConfigError, RunNotResumable
from taoloop.tools.registry import Toolbox

_RANK: dict[Tier | None, int] = {"read": 0, "draft": 1, "write": 2, None: 3, "destructive": 3}


def require_resumable(trace: Trace, toolbox: Toolbox) -> None:
    """Refuse before the run is taken from whoever may hold it.

    Raises:
        RunNotResumable: it never began, or is completed.
        ConfigError: a tool of the run has a stricter tier now, needs a person's yes now, or can no longer be repeated.
        UnknownName: a tool of the run is not there.
    """
    if trace.started is None:
        raise RunNotResumable(f"Run {trace.run_id} never began.", hint="Start a new run.")
    if trace.status == "completed":
        raise RunNotResumable(f"Run {trace.run_id} is completed.", hint="Start a new run.")
    for card in trace.agent.tools:
        known = toolbox.get(card.name).card
        if _RANK[known.tier] > _RANK[card.tier]:
            raise ConfigError(
                f"The tool {card.name!r} had the tier {card.tier!r} when the run began and has {known.tier!r} now.",
                hint="What was judged for the milder tier must not run under the stricter one: start a new run.",
            )
        if known.needs_yes and not card.needs_yes:
            raise ConfigError(
                f"The tool {card.name!r} needs a person's yes for each call now, and did not when the run began.",
                hint="What was judged without it must not run: start a new run.",
            )
        if (card.idempotent and not known.idempotent) or (card.transactional and not known.transactional):
            raise ConfigError(
                f"The tool {card.name!r} could be repeated when the run began, and cannot be any more.",
                hint="What was cut off would be repeated by its old card: start a new run.",
            )
