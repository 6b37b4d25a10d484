"""The panel: pages on which people watch runs, replay and compare them, and answer what waits for a person.

The pages are rendered by the server and work without script; htmx, which the wheel contains, makes them live. `Panel`
is the application, which `tao panel` serves alone and the gateway under `/panel`.
"""

from __future__ import annotations
