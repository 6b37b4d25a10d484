"""What watches a run from outside while this process drives it: lines in the log with the run's id, and its spans.

Both go by the events of the run, once the journal has them, so nothing is said that is not in the trace; secrets are
redacted there already. Whoever drives a run enters `observe_run`; what neither logs nor exports costs a few lookups.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from taoloop.core.views.transcript import event_text
from taoloop.runtime.observation.telemetry import run_telemetry

if TYPE_CHECKING:
    from taoloop.core.agent_spec import AgentSpec
    from taoloop.core.events import AnyEvent
    from taoloop.core.trace import Trace
    from taoloop.runtime.agent_settings import AgentSettings

    Listener = Callable[[AnyEvent], None]

__all__ = ["RunIdFilter"]

RUN_ID: ContextVar[str] = ContextVar("taoloop_run_id", default="")
"""The id of the run that the current task or thread works for."""

_LOG = logging.getLogger("taoloop.runs")


class RunIdFilter(logging.Filter):
    """A filter of `logging` that gives every record a `run_id`: of the run in which it was written, else empty.

    Add it to a handler, so that it also sees what tools and libraries log while a run calls them:

        handler.addFilter(RunIdFilter())
        handler.setFormatter(logging.Formatter("%(levelname)s [%(run_id)s] %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the id; no record is dropped. The lines of taoloop about a run have its id already."""
        if not hasattr(record, "run_id"):
            record.run_id = RUN_ID.get()
        return True


@contextmanager
def observe_run(
    own: AgentSettings, trace: Trace, spec: AgentSpec, listener: Listener | None
) -> Iterator[Listener | None]:
    """Log and export what a run does in this block; gives the listener that has to be called with each of its events.

    The logger `taoloop.runs` has a line at INFO when the run starts or resumes and when it ends or waits, and at DEBUG
    one for each step. Spans: `taoloop.runtime.observation.telemetry`.
    """
    token = RUN_ID.set(trace.run_id)
    try:
        with ExitStack() as stack:
            if (telemetry := run_telemetry(own.telemetry)) is not None:
                now = own.clock.now()
                listener = stack.enter_context(telemetry.observe(trace, spec, now, listener))
            if _LOG.isEnabledFor(logging.INFO):
                listener = stack.enter_context(_logged(trace, spec, listener))
            yield listener
    finally:
        RUN_ID.reset(token)


@contextmanager
def _logged(trace: Trace, spec: AgentSpec, listener: Listener | None) -> Iterator[Listener | None]:
    """Write the lines of a run; the listener is another one only where each step is logged."""
    extra = {"run_id": trace.run_id, "agent": spec.name}
    begun = "starts" if trace.started is None else "resumes"
    _LOG.info("run %s of %s %s with %s", trace.run_id, spec.name, begun, spec.model, extra=extra)
    try:
        yield _step_logger(trace.run_id, extra, listener) if _LOG.isEnabledFor(logging.DEBUG) else listener
    finally:
        _LOG.info(
            "run %s of %s is %s after %d model calls and %d tokens",
            trace.run_id,
            spec.name,
            trace.status,
            trace.model_calls,
            trace.usage.total_tokens,
            extra={**extra, "status": trace.status},
        )


def _step_logger(run_id: str, extra: dict[str, str], listener: Listener | None) -> Listener:
    """A listener that logs each event in a line and passes it on."""

    def log_event(event: AnyEvent) -> None:
        if text := " ".join(event_text(event).split()):
            _LOG.debug("run %s: %s", run_id, text, extra=extra)
        if listener is not None:
            listener(event)

    return log_event
