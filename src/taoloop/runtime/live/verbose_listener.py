"""What `verbose=True` prints while a run goes on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taoloop.core.events import AnyEvent
    from taoloop.runtime.runner import Listener


def verbose_listener(on_event: Listener | None) -> Listener:
    """A listener that prints the run as it goes, and passes each event on to `on_event`."""
    from taoloop.core.views.transcript import event_text  # noqa: PLC0415  # loads the runtime

    write = sys.stdout.write

    def print_event(event: AnyEvent) -> None:
        write(event_text(event))
        if on_event is not None:
            on_event(event)

    return print_event
