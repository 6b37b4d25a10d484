"""The gateway under load for minutes, with clients that retry, kills and reloads: is anything ordered twice or lost?

    python -m checks.gateway.soak [--minutes 10] [--idempotency-key]

64 clients are OpenAI's own Python SDK at its defaults: two retries after connection errors, 408, 409, 429 and 5xx,
unless `x-should-retry` says otherwise. Each orders again and again, every time with another reference. The model obeys;
for some orders it fails before the order, or after it with a status or a broken connection, and the shop breaks off
some connections after it has taken the order. The gateway is killed three times (`kill -9`) and started anew on the
same journal, and its file is changed and loaded twice (`SIGHUP`).

At the end: no reference was ordered twice, none that a client has seen confirmed is missing, no run is `running`, and
the memory of the last process has not grown by more than MAX_GROWTH. Exit code 1 if one of these does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checks.gateway.outside import SHOP, Arrived, Reply, Server, call, completion, serving
from checks.gateway.scene import port_of
from openai import APIConnectionError, APIStatusError, AsyncOpenAI

from taoloop import SqliteJournal

CLIENTS = 64
PAUSE_S = (0.2, 1.0)
KILLS, RELOADS = (0.15, 0.30, 0.45), (0.22, 0.60)
WARM_UP = 0.65  # from here on memory is measured
MAX_GROWTH = 0.15  # of the memory after the warm-up
SETTLE_S = 20.0  # for runs that clients have left
MODES = (
    "plain", "plain", "plain", "plain", "plain", "plain", "500 before", "429 before", "500 after", "cut after",
    "slow after", "shop cut",
)  # fmt: skip

CONFIG = """\
agents:
  clerk:
    description: Version {version}
    model: openai:m
    dialect: native
    policy: {{profile: autonomous, pin: keywords}}
    retry: {{attempts: 1}}
    recover_on_start: true
    tools:
      - openapi: {{document: shop.yaml, base_url: "{shop}", auth: {{key: x}}, retries: 0, operations: [order_product]}}
"""


@dataclass
class Outside:
    """The model and the shop: what was ordered, and when."""

    orders: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """The times of the orders of each reference."""
    failed: Counter[str] = field(default_factory=Counter)
    """How often the model has failed before the order of a reference."""

    def shop(self, request: Arrived) -> Reply:
        order = json.loads(request.body)
        self.orders[order["reference"]].append(time.monotonic())
        is_cut = order["note"] == "shop cut"
        return Reply({"number": len(self.orders)}, 201, is_cut=is_cut, delay_s=0.02)

    def model(self, request: Arrived) -> Reply:
        body = json.loads(request.body)
        task = next(str(message["content"]) for message in body["messages"] if message["role"] == "user")
        order = json.loads(task.partition("<<order_product ")[2].partition(">>")[0])
        reference, mode = order["reference"], order["note"]
        last = body["messages"][-1]
        if last["role"] != "tool":
            if mode.endswith("before") and self.failed[reference] < 1:
                self.failed[reference] += 1
                return Reply({"error": {"message": "busy"}}, int(mode[:3]), delay_s=0.02)
            return Reply(completion("m", "", ("order_product", json.dumps(order))), delay_s=0.05)
        if mode == "500 after":
            return Reply({"error": {"message": "failed"}}, 500, delay_s=0.02)
        if mode == "cut after":
            return Reply(is_cut=True)
        text = "Ordered." if '"number"' in str(last["content"]).replace("\\", "") else "The outcome is not known."
        return Reply(completion("m", text), delay_s=1.0 if mode == "slow after" else 0.05)


def report(line: str) -> None:
    """Show a figure at once."""
    print(line, flush=True)  # noqa: T201  # what this command is for


class Process:
    """`tao serve`, which is killed and started again on the same port and journal."""

    def __init__(self, folder: Path, shop: Server, model: Server) -> None:
        self._folder, self._shop = folder, shop
        self._env = {**os.environ, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "sk-soak"}
        self._log, self._version, self.port = folder / "gateway.log", 0, 0
        self.database = folder / "runs.db"
        (folder / "shop.yaml").write_text(SHOP, encoding="utf-8")
        self.write_config()
        self._process = self.start()

    def write_config(self) -> None:
        self._version += 1
        text = CONFIG.format(shop=self._shop.url, version=self._version)
        (self._folder / "gateway.yaml").write_text(text, encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        program = str(Path(sys.executable).with_name("tao"))
        options = ["--port", str(self.port), "--db", str(self.database)]
        offset = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as written:
            command = [program, "serve", "gateway.yaml", *options]
            process = subprocess.Popen(command, cwd=self._folder, env=self._env, stderr=written)
        self.port = port_of(self._log, process, offset)
        return process

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(20)
        self._process = self.start()

    def reload(self) -> None:
        self.write_config()
        self._process.send_signal(signal.SIGHUP)

    def end(self) -> int:
        self._process.terminate()
        return self._process.wait(60)

    @property
    def rss_mb(self) -> float:
        shown = subprocess.run(
            ["/bin/ps", "-o", "rss=", "-p", str(self._process.pid)], capture_output=True, text=True, check=False
        )
        return int(shown.stdout or 0) / 1024

    @property
    def server_warnings(self) -> int:
        return self._log.read_text(encoding="utf-8").count("Traceback")


@dataclass
class Figures:
    """What the clients have seen."""

    confirmed: dict[str, float] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Time and MB of the process."""
    events: list[tuple[float, str]] = field(default_factory=list)
    """Time and what was done to it."""
    restarts_s: list[float] = field(default_factory=list)
    """How long the gateway was away; the retries of a client last 1 to 2 s, so only a fast restart tries them."""


async def order_again_and_again(number: int, url: str, figures: Figures, until: float, *, with_key: bool) -> None:
    """One client."""
    chance = random.Random(number)  # noqa: S311  # a load, not a secret
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=60) as client:
        count = 0
        while time.monotonic() < until:
            count += 1
            reference = f"ref-{number}-{count}"
            order = {"name": "tea", "reference": reference, "note": chance.choice(MODES)}
            task = f"Order a product. {call('order_product', order)}"
            headers = {"Idempotency-Key": reference} if with_key else {}
            try:
                answer = await client.chat.completions.create(
                    model="clerk", messages=[{"role": "user", "content": task}], extra_headers=headers
                )
                text = answer.choices[0].message.content or ""
                if text == "Ordered.":
                    figures.confirmed[reference] = time.monotonic()
                figures.outcomes["confirmed" if text == "Ordered." else "answered otherwise"] += 1
            except APIStatusError as error:
                figures.outcomes[f"{error.status_code} {(error.body or {}).get('code', '')}"] += 1  # type: ignore[attr-defined]  # OpenAI's form
            except APIConnectionError as error:
                figures.outcomes[type(error).__name__] += 1
            await asyncio.sleep(chance.uniform(*PAUSE_S))


async def disturb(process: Process, figures: Figures, start: float, duration_s: float) -> None:
    """The kills and reloads, and the memory in between."""
    planned = sorted([(at, "kill") for at in KILLS] + [(at, "reload") for at in RELOADS])
    while (share := (time.monotonic() - start) / duration_s) < 1:
        if planned and share >= planned[0][0]:
            _, what = planned.pop(0)
            begun = time.monotonic()
            figures.events.append((begun, what))
            await asyncio.to_thread(process.kill if what == "kill" else process.reload)
            if what == "kill":
                figures.restarts_s.append(time.monotonic() - begun)
        figures.memory.append((share, await asyncio.to_thread(lambda: process.rss_mb)))
        await asyncio.sleep(min(2.0, duration_s / 60))


async def soak(process: Process, duration_s: float, *, with_key: bool) -> Figures:
    figures, start = Figures(), time.monotonic()
    url = f"http://127.0.0.1:{process.port}/v1"
    clients = (
        order_again_and_again(number, url, figures, start + duration_s, with_key=with_key) for number in range(CLIENTS)
    )
    await asyncio.gather(disturb(process, figures, start, duration_s), *clients)
    return figures


async def statuses(database: Path) -> Counter[str]:
    """How the runs in the journal stand, once none that clients have left is active any more."""
    ends_at = time.monotonic() + SETTLE_S
    while True:
        async with SqliteJournal(database) as journal:
            counted = Counter(row.status for row in await journal.runs(limit=10_000_000))
        if not counted["running"] or time.monotonic() > ends_at:
            return counted
        await asyncio.sleep(1)


def judged(outside: Outside, figures: Figures, counted: Counter[str], process: Process) -> list[str]:
    """What does not hold; prints the figures."""
    doubles = {reference: times for reference, times in outside.orders.items() if len(times) > 1}
    missing = sorted(figures.confirmed.keys() - outside.orders.keys())
    window = [memory for share, memory in figures.memory if share >= WARM_UP]
    part = max(1, len(window) // 4)
    before, after = statistics.median(window[:part]), statistics.median(window[-part:])
    tasks = sum(figures.outcomes.values())
    report(f"tasks {tasks}, orders {sum(map(len, outside.orders.values()))}, confirmed {len(figures.confirmed)}")
    report("clients saw: " + ", ".join(f"{what} {count}" for what, count in figures.outcomes.most_common()))
    report("runs: " + ", ".join(f"{status} {count}" for status, count in counted.most_common()))
    report(f"memory {before:.0f} MB after the warm-up, {after:.0f} MB at the end; tracebacks {process.server_warnings}")
    report("away after a kill: " + ", ".join(f"{seconds:.1f} s" for seconds in figures.restarts_s))
    kills = [at for at, what in figures.events if what == "kill"]
    for reference, times in list(doubles.items())[:50]:
        is_killed = any(times[0] - 1 < at < times[-1] for at in kills)
        cause = "with a kill between" if is_killed else "WITHOUT a kill between"
        report(f"  ordered {len(times)} times, {times[-1] - times[0]:.2f} s apart, {cause}: {reference}")
    checks = {
        f"{len(doubles)} references were ordered twice": bool(doubles),
        f"{len(missing)} confirmed orders are missing: {missing[:5]}": bool(missing),
        f"{counted['running']} runs are still `running`": counted["running"] > 0,
        f"memory has grown by {after / before - 1:.0%}": after > before * (1 + MAX_GROWTH),
        "nothing was confirmed": not figures.confirmed,
        f"{process.server_warnings} tracebacks in the log": process.server_warnings > 0,
    }
    return [what for what, holds in checks.items() if holds]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/check-gateway --soak")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--idempotency-key", action="store_true", help="clients send Idempotency-Key")
    options = parser.parse_args(arguments)
    outside = Outside()
    shop, model = Server(outside.shop, keeps=False), Server(outside.model, keeps=False)
    with tempfile.TemporaryDirectory() as folder, serving(shop, model):
        process = Process(Path(folder), shop, model)
        try:
            figures = asyncio.run(soak(process, options.minutes * 60, with_key=options.idempotency_key))
            counted: Any = asyncio.run(statuses(process.database))
        finally:
            code = process.end()
        wrong = judged(outside, figures, counted, process)
    wrong += [f"the gateway ended with code {code}"] if code else []
    report("\n".join(f"WRONG: {what}" for what in wrong) or "Everything holds.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
