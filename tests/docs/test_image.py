"""The definition of the image. It is read here and not built: what it names has to exist, and nobody has to be root."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from taoloop.cli.commands.serve import serve_command
from taoloop.serve.gateway.app import ROUTES

ROOT = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_it_copies_files_that_exist_and_that_the_build_may_see() -> None:
    visible = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [arguments.split() for name, arguments in instructions() if name == "COPY" and "--from" not in arguments]
    sources = {source for arguments in copied for source in arguments[:-1]}
    assert sources == visible
    assert all((ROOT / source).exists() for source in sources)


def test_what_it_starts_is_the_command_as_it_is() -> None:
    arguments = {name: json.loads(text) for name, text in instructions() if name in ("ENTRYPOINT", "CMD")}
    assert arguments["ENTRYPOINT"] == ["tao", "serve"]
    options = {option for parameter in serve_command.params for option in parameter.opts}
    assert {argument for argument in arguments["CMD"] if argument.startswith("--")} <= options
    volume = next(text for name, text in instructions() if name == "VOLUME")
    assert f"{volume}/runs.db" in arguments["CMD"]


def test_its_health_check_asks_a_route_at_the_port_that_is_served() -> None:
    check = next(text for name, text in instructions() if name == "HEALTHCHECK")
    match = re.search(r"127\.0\.0\.1:(\d+)(/\w+)", check)
    assert match is not None
    assert ("GET", match[2]) in {(method, path) for method, path, _ in ROUTES}
    assert {text for name, text in instructions() if name == "EXPOSE"} == {match[1]}


def test_it_does_not_run_as_root() -> None:
    users = [text for name, text in instructions() if name == "USER"]
    assert users == ["10001"]
    assert "useradd --uid 10001" in str(instructions())


def test_everything_is_installed_by_hash_from_a_lock_that_has_every_extra() -> None:
    runs = " ".join(text for name, text in instructions() if name == "RUN")
    assert "--require-hashes -r locks/image.txt" in runs
    assert runs.count("pip install") == 2  # the lock, and the wheel that was built
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *(line for lines in extras.values() for line in lines)]
    names = {re.split(r"[\[<>=~; ]", line)[0].lower() for line in needed} - {"taoloop"}
    locked = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "locks" / "image.txt").read_text(), re.MULTILINE))
    assert names <= locked
    line = next(line for line in (ROOT / "scripts" / "lock").read_text().splitlines() if "image.txt" in line)
    within_serve = {"openai", "openapi", "panel"}
    assert set(re.findall(r"--extra (\w+)", line)) == set(extras) - within_serve - {"all"}
