"""Install what a lock pins: with uv where it can be had, which takes a tenth of pip's time, else with pip.

uv does not read the configuration of pip, in which mirrors and certificates are named, so it is handed over here. The
hashes of the lock decide what may be installed; so it does not matter which index offers a version first.

Usage: PYTHON scripts/install_lock.py LOCK [--editable]    into the environment of PYTHON; --editable: this checkout too
       PYTHON scripts/install_lock.py LOCK --target FOLDER into a folder
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
UV = ROOT / ".venv" / ("Scripts/uv.exe" if os.name == "nt" else "bin/uv")
VARIABLES = {  # setting of pip -> variable of uv, and what separates several values
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", " "),
}


def pip_settings() -> dict[str, list[str]]:
    """The settings of pip by name; those of the environment come first."""
    listing = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout
    settings: dict[str, list[str]] = {}
    for line in sorted(listing.splitlines()):  # `:env:` sorts before `global`, `install` and `user`
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        settings.setdefault(name, []).extend(str(ast.literal_eval(value)).split())
    return settings


def uv_environment() -> dict[str, str]:
    """The environment in which uv installs from where pip would."""
    settings = pip_settings()
    environment = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name, (variable, separator) in VARIABLES.items():
        if values := list(dict.fromkeys(settings.get(name, []))):
            environment[variable] = separator.join(values if name != "cert" else values[:1])
    return environment | os.environ


def has_uv() -> bool:
    """Whether uv is in .venv; it is installed with the first lock there."""
    if not UV.exists() and Path(sys.prefix) == ROOT / ".venv":
        lock = ROOT / "locks" / "installer.txt"
        command = [*PIP, "install", "--no-deps", "--require-hashes", "-r", str(lock)]
        subprocess.run(command, capture_output=True, check=False)
    return UV.exists()


def main() -> None:
    """Install the lock of the command line."""
    lock, *options = sys.argv[1:]
    is_editable = "--editable" in options
    target = [option for option in options if option != "--editable"]
    steps = [["install", *target, "--no-deps", "--require-hashes", "-r", lock]]
    if is_editable:
        steps.append(["install", "--no-deps", "--no-build-isolation", "-e", str(ROOT)])
    uv = [str(UV), "--quiet", "pip"]
    for step in steps:
        where = [] if target else ["--python", sys.executable]
        if has_uv() and subprocess.run([*uv, *step, *where], env=uv_environment(), check=False).returncode == 0:
            continue
        subprocess.run([*PIP, *step], check=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
