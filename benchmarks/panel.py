"""The pages of `tao panel` over a database with many runs: lists, searches, a long run, live events, and what it costs.

    scripts/check-panel --collect-only      # once: installs Playwright beside the virtual environment
    python benchmarks/panel.py [--json] [--runs N] [--steps N] [--folder FOLDER] [--repeat N]

Makes N runs (100,000; target: a minute) and one of 10,000 steps, starts `tao panel` over them, and asks it by HTTP and
with headless Chromium. Without Playwright or Chromium only what HTTP tells is measured, and it says so. Each figure is
the median of the repetitions. Targets:

- the list of runs, at its beginning, far down, and filtered, with its counters: 100 ms
- a search with its counters, once its index is made: 200 ms
- the page of the long run, from the list: its first events on screen in 300 ms, a jump to nine tenths of its steps in
  300 ms (as an address, and with the control of the page), 20 MB of JavaScript heap after both
- an event of another process on screen, in the list and in the page of its run, 100 ms after its commit
- all scripts of the pages: 25 KB with gzip
- a run of 200 steps, whose calls take 20 ms each, at most a tenth slower while the list and its page are open; the runs
  alternate, and two of the same kind differ by as much. Beside it `tao run` with 1,000 steps that wait for nothing: it
  shares the processors with the panel and the browser, so it has no target
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from http.cookiejar import CookieJar
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from run_lists import describe, keep, make, trace

from taoloop import Agent, Limits, tool
from taoloop.journals.sqlite.journal import SqliteJournal

LONG_RUN = "20270201-long"
LIVE_RUN = "20270202-live"
DRIVEN_STEPS = 1_000
WAITING_STEPS, CALL_S = 200, 0.02
EVENTS_OF_A_STEP = 3

TAO = (sys.executable, "-c", "import sys; from taoloop.cli import main; sys.exit(main())")

LISTS = {
    "newest": "/runs",
    "far down": "/runs?cursor=5000",
    "by status": "/runs?status=too_many_errors",
    "by agent": "/runs?agent=agent2",
    "by key and day": "/runs?key=key3&since=2023-12-01",
    "nothing fits": "/runs?agent=nobody",
}
SEARCHES = {
    "common word": "check",
    "two words": "the invoice",
    "rare word": "4711",
    "an error": "no answer in time",
    "Chinese": "发票",
    "Chinese, rare": "编号 4710",
}
LIMITS = {
    "made": 60_000.0,
    "list": 100.0,
    "search": 200.0,
    "long run": 300.0,
    "live": 100.0,
    "heap": 20e6,
    "scripts": 25e3,
    "run, watched": 1.1,
}
"""By the begin of the name of a figure: milliseconds, bytes, or how many times as long."""

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
ARGUMENTS = ("no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update")
PACKAGES = Path(__file__).parent.parent / ".venv" / "check-panel" / "packages"

WATCH = """
window.whenShown = (selector, scrolls) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error(`${selector} is not on screen`)), 30_000);
  const look = () => {
    const element = document.querySelector(selector);
    if (scrolls) element?.scrollIntoView({block: "center"});
    const box = element?.getBoundingClientRect();
    if (!box || box.top >= innerHeight || box.bottom <= 0 || box.height === 0) return requestAnimationFrame(look);
    setTimeout(() => resolve(performance.timeOrigin + performance.now()));  // after the frame that shows it
  };
  requestAnimationFrame(look);
});
"""
"""Resolves to the time, in milliseconds since the epoch, when what a selector names has been painted in the window."""


class Panel(NamedTuple):
    """A panel that runs, and a person who is logged in."""

    url: str
    login: str
    client: urllib.request.OpenerDirector

    def get(self, path: str) -> str:
        """The text of a page."""
        with self.client.open(self.url + path) as response:
            text: str = response.read().decode()
            return text


@contextmanager
def serve(path: Path) -> Iterator[Panel]:
    """`tao panel` over a database, in a process of its own."""
    arguments = [*TAO, "panel", "--db", str(path), "--port", "0"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        match = re.search(r"(http://[^/]+)/login\S+", process.stdout.readline())
        assert match is not None
        client = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        panel = Panel(match[1], match[0], client)
        client.addheaders = [("Sec-Fetch-Site", "none")]  # as of a link that a person opened
        client.open(panel.login).close()
        try:
            yield panel
        finally:
            process.terminate()


@contextmanager
def writer(path: Path) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A process that commits a run, or a step of one, when it is asked to; what it committed, and when."""
    arguments = [sys.executable, __file__, "--write", str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def commit(what: str) -> dict[str, Any]:
            print(what, file=stdin, flush=True)
            committed: dict[str, Any] = json.loads(stdout.readline())
            return committed

        yield commit
        stdin.close()


async def write(path: Path) -> None:
    """The other side of `writer`: for each line `run` or `step` a commit, and a line that says which."""
    agents, random = [await describe()], Random(2)  # noqa: S311  # reproducible
    events = trace(0, agents, random, calls=10_000)
    async with SqliteJournal(path) as journal:
        lease = await journal.begin(LIVE_RUN)
        await journal.append(lease, events[:1])
        last, count = 0, 0
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            if line == "run":
                count += 1
                await keep(journal, f"20270203-{count:08}", trace(count, agents, random))
                selector = f"#r-20270203-{count:08}"
            else:
                last += EVENTS_OF_A_STEP
                await journal.append(lease, events[last - EVENTS_OF_A_STEP + 1 : last + 1])
                selector = f"#e-{last}"
            print(json.dumps({"at": time.time() * 1000, "selector": selector}), flush=True)


async def fill(path: Path, runs: int, steps: int) -> float:
    """Make the database; the milliseconds that the runs took, without the long one."""
    made_s = await make(path, runs)
    async with SqliteJournal(path) as journal:
        await keep(journal, LONG_RUN, trace(0, [await describe()], Random(1), calls=steps - 1))  # noqa: S311  # reproducible
    return made_s * 1000


def median_ms(ask: Callable[[], object], repeat: int) -> float:
    """The median of how long a call takes."""
    taken = []
    for _ in range(repeat):
        began = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def ask_lists(panel: Panel, repeat: int) -> dict[str, float]:
    """How long pages of the list take by HTTP."""
    began = time.perf_counter()
    panel.get("/runs?q=first")
    figures = {"index of the search, once": (time.perf_counter() - began) * 1000}
    following = re.search(r'rel="next" href="([^"]+)"', panel.get("/runs"))
    assert following is not None
    lists = {**LISTS, "second page": unescape(following[1])}
    for name, path in lists.items():
        figures[f"list: {name}"] = median_ms(lambda path=path: panel.get(path), repeat)  # type: ignore[misc]  # its default
    for name, text in SEARCHES.items():
        path = f"/runs?q={quote(text)}"
        figures[f"search: {name}"] = median_ms(lambda path=path: panel.get(path), repeat)  # type: ignore[misc]  # its default
    filtered = "/runs?q=check&status=completed&agent=agent1"
    figures["search: with a filter"] = median_ms(lambda: panel.get(filtered), repeat)
    return figures


def script_bytes() -> float:
    """All scripts that the pages load, with gzip each."""
    folder = files("taoloop.serve.panel") / "static"
    return sum(len(gzip.compress(file.read_bytes(), 9)) for file in folder.iterdir() if file.name.endswith(".js"))


@contextmanager
def browse() -> Iterator[Any]:
    """A browser; None where there is none."""
    if PACKAGES.is_dir():
        sys.path.append(str(PACKAGES))
    try:
        playwright = import_module("playwright.sync_api")
    except ImportError:
        print("Without Playwright nothing is measured in a browser: scripts/check-panel installs it.", file=sys.stderr)
        yield None
        return
    if CHROMIUM is None:
        print("Without Chromium nothing is measured in a browser: install chromium-headless-shell.", file=sys.stderr)
        yield None
        return
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=[f"--{name}" for name in ARGUMENTS])
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        context.add_init_script(WATCH)
        yield context
        browser.close()


def shown_at(page: Any, selector: str, *, scrolls: bool = False) -> float:
    """When this is on screen, in milliseconds since the epoch; with `scrolls` it is brought into the window."""
    at: float = page.evaluate("([selector, scrolls]) => whenShown(selector, scrolls)", [selector, scrolls])
    return at


def opened_ms(page: Any, url: str, selector: str) -> float:
    """How long it takes from the request of a page until this is on screen."""
    page.goto(url, wait_until="commit")
    at = shown_at(page, selector)
    start: float = page.evaluate("performance.timeOrigin")
    return at - start


def heap_bytes(context: Any, page: Any) -> float:
    """The JavaScript heap of a page, without what could be freed."""
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "JSHeapUsedSize")


def open_long_run(context: Any, panel: Panel, steps: int, repeat: int) -> dict[str, float]:
    """The page of the long run, in a tab of its own each time; the time of a tab to begin does not count."""
    step = steps * 9 // 10
    seq = EVENTS_OF_A_STEP * (step - 1) + 1
    address = f"{panel.url}/runs/{LONG_RUN}"
    opened, jumped, moved, heap = [], [], [], []
    for _ in range(repeat):
        page = context.new_page()
        page.goto(f"{panel.url}/runs")
        opened.append(opened_ms(page, address, "#e-0"))
        page.locator("#run-totals dd").first.wait_for()  # it reads the whole run
        jumped.append(opened_ms(page, f"{address}?step={step}#step-{step}", f"#e-{seq}"))
        page.goto(address)
        began = page.evaluate(
            """(step) => {
              const control = document.getElementById("step");
              control.value = step;
              control.dispatchEvent(new Event("input", {bubbles: true}));
              return performance.timeOrigin + performance.now();
            }""",
            step,
        )
        moved.append(max(shown_at(page, f"[data-step='{step}']"), shown_at(page, f"#e-{seq}")) - began)
        heap.append(heap_bytes(context, page))
        page.close()
    return {
        "long run: first events": statistics.median(opened),
        f"long run: to step {step:,} by address": statistics.median(jumped),
        f"long run: to step {step:,} in the page": statistics.median(moved),
        "heap": statistics.median(heap),
    }


def watch_live(context: Any, panel: Panel, path: Path, repeat: int) -> dict[str, float]:
    """How long after its commit an event of another process is on screen; the worst of them, too."""
    figures = {}
    with writer(path) as commit:
        for name, what, address in (("list", "run", "/runs"), ("page of its run", "step", f"/runs/{LIVE_RUN}")):
            page = context.new_page()
            page.goto(panel.url + address)
            late = []
            for _ in range(repeat + 1):
                page.wait_for_timeout(1_500)  # what comes within a second of a refresh of the list waits for the next
                committed = commit(what)
                late.append(shown_at(page, committed["selector"], scrolls=True) - committed["at"])
            page.close()
            figures[f"live: {name}"] = statistics.median(late[1:])
            figures[f"worst live: {name}"] = max(late[1:])
    return figures


NEWEST = "document.querySelector('table.runs tbody th a')?.getAttribute('href')"
"""The address of the first run of the list."""
NEWER = f"(newest) => {NEWEST} !== newest"


@tool(tier="read")
async def look_up(number: int) -> int:
    """A call that takes as long as a quick service."""
    await asyncio.sleep(CALL_S)
    return number


async def drive(path: Path) -> None:
    """A run that waits for its calls, as nearly all do."""
    replies = [{"tool_calls": [{"name": "look_up", "args": {"number": step}}]} for step in range(WAITING_STEPS)]
    limits = Limits(max_steps=None, repeat_tell=None, repeat_stop=None)
    async with SqliteJournal(path) as journal:
        agent = Agent(model=[*replies, {"text": "done"}], tools=[look_up], limits=limits, journal=journal)
        result = await agent.run("Look up")
        assert result.status == "completed", result.reason


def watched(pages: list[Any], panel: Panel, arguments: list[str], repeat: int) -> tuple[float, float]:
    """How many times as long a process takes while the list and the page of its run are open, and its milliseconds."""
    ratios, alone = [], []
    for _ in range(repeat):
        taken = []
        for is_watched in (False, True):
            pages[0].goto(f"{panel.url}/runs" if is_watched else "about:blank")
            pages[1].goto("about:blank")
            newest = pages[0].evaluate(NEWEST) if is_watched else ""
            began = time.perf_counter()
            with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                if is_watched:
                    pages[0].wait_for_function(NEWER, arg=newest)
                    pages[1].goto(panel.url + pages[0].evaluate(NEWEST))
                assert process.wait() == 0
                taken.append(time.perf_counter() - began)
        ratios.append(taken[1] / taken[0])
        alone.append(taken[0] * 1000)
    return statistics.median(ratios), statistics.median(alone)


def watch_runs(context: Any, panel: Panel, path: Path, repeat: int) -> dict[str, float]:
    """A run that waits for its calls, and `tao run` with a script that answers at once."""
    script = path.with_name("script.json")
    calls = [{"name": "calculator", "args": {"expression": f"{step} + 1"}} for step in range(DRIVEN_STEPS)]
    script.write_text(json.dumps([*({"tool_calls": [call]} for call in calls), {"text": "done"}]))
    command = [*TAO, "run", "Count", "--model", f"scripted:{script}", "--db", str(path)]
    command += ["--max-steps", str(DRIVEN_STEPS + 1)]
    pages = [context.new_page(), context.new_page()]
    figures = {}
    figures["run, watched"], figures["not watched: run"] = watched(
        pages, panel, [sys.executable, __file__, "--drive", str(path)], repeat
    )
    figures["busy run, watched"], figures["not watched: busy run"] = watched(pages, panel, command, repeat)
    return figures


def measure(folder: Path, runs: int, steps: int, repeat: int) -> dict[str, float]:
    """All figures."""
    path = folder / "runs.db"
    figures = {"made": asyncio.run(fill(path, runs, steps)), "scripts": script_bytes()}
    with serve(path) as panel:
        figures |= ask_lists(panel, repeat)
        with browse() as context:
            if context is not None:
                context.new_page().goto(panel.login)
                figures |= open_long_run(context, panel, steps, repeat)
                figures |= watch_live(context, panel, path, 2 * repeat)
                figures |= watch_runs(context, panel, path, repeat)
    return figures


def limit_of(name: str) -> float | None:
    """The target of a figure."""
    return next((limit for begin, limit in LIMITS.items() if name.startswith(begin)), None)


def text_of(name: str, value: float) -> str:
    """A figure with its unit."""
    if name.endswith("run, watched"):
        return f"{value:.2f} times as long"
    if name in ("heap", "scripts"):
        return f"{value / 1e3:,.1f} KB"
    return f"{value:,.1f} ms"


def main(argv: list[str]) -> int:
    """Print the figures; 1 if one is beyond its target."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.drive is not None:
        asyncio.run(drive(options.drive))
        return 0
    if options.write is not None:
        asyncio.run(write(options.write))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(Path(folder), options.runs, options.steps, options.repeat)
    missed = [name for name, value in figures.items() if (limit := limit_of(name)) is not None and value > limit]
    if options.json:
        print(json.dumps({"figures": figures, "missed": missed}))
        return int(bool(missed))
    for name, value in figures.items():
        limit = limit_of(name)
        target = "" if limit is None else f"   target {text_of(name, limit)}{'  MISSED' if name in missed else ''}"
        print(f"  {name:40} {text_of(name, value):>20}{target}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
