"""What a suite compares: configurations of agent, model, strategy, dialect, policy and seed, named by what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from taoloop.config.document import is_config_file
from taoloop.errors import ConfigError
from taoloop.evals.suite import AXES, Axis, Suite
from taoloop.translation import Translator

translate = Translator("evals")

_FIELDS: dict[Axis, str] = {
    "agents": "agent",
    "models": "model",
    "strategies": "strategy",
    "dialects": "dialect",
    "policies": "policy",
    "seeds": "seed",
}
"""The field of a configuration that each axis sets."""

PLAIN = "agent"
"""The name where nothing differs and the suite names no agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One of the things that are compared. None: as the agent or the suite says."""

    name: str
    """Unique among those of an evaluation: the values in which they differ, or the name of the agent."""
    agent: str | None = None
    """An agent file or `module:attribute`; None: an agent with the suite's tools and nothing else."""
    model: str | None = None
    """The model."""
    strategy: str | None = None
    """The strategy."""
    dialect: str | None = None
    """The dialect."""
    policy: str | None = None
    """A policy file or the name of a profile."""
    seed: int | None = None
    """Where the chance in the suite's trouble begins; models are not told."""

    @property
    def settings(self) -> dict[str, Any]:
        """What it sets, by name."""
        values = {name: getattr(self, name) for name in _FIELDS.values()}
        return {name: value for name, value in values.items() if value is not None}


def configurations_of(suite: Suite, chosen: Mapping[Axis, Sequence[Any]]) -> tuple[Configuration, ...]:
    """The product of the axes: `chosen` values, as a command line gives them, in place of those of the suite.

    Agents that are chosen without a model keep their own, whatever models the suite has for its scripts.

    Raises:
        ConfigError: a value is there twice.
    """
    defaults: dict[Axis, Any] = {"agents": suite.agent, "models": None if chosen.get("agents") else suite.model}
    axes = {
        axis: tuple(chosen.get(axis) or ()) or tuple(suite.compare.get(axis, ())) or (defaults.get(axis),)
        for axis in AXES
    }
    if chosen.get("agents") and not chosen.get("models"):
        axes["models"] = (None,)
    for axis, values in axes.items():
        if len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            message = translate("{value!r} appears twice among the {axis} to compare.", value=twice, axis=axis)
            raise ConfigError(message, hint=translate("Remove one of the two."))
    return tuple(_combinations(axes))


def _combinations(axes: Mapping[Axis, Sequence[Any]]) -> Iterator[Configuration]:
    labels = {axis: _labels(axis, values) for axis, values in axes.items()}
    differing = [axis for axis in AXES if len(axes[axis]) > 1]
    for indices in product(*(range(len(axes[axis])) for axis in AXES)):
        index_of = dict(zip(AXES, indices, strict=True))
        name = " / ".join(labels[axis][index_of[axis]] for axis in differing) or labels["agents"][0]
        fields: dict[str, Any] = {_FIELDS[axis]: axes[axis][index] for axis, index in index_of.items()}
        yield Configuration(name=name, **fields)


def _labels(axis: Axis, values: Sequence[Any]) -> list[str]:
    """Short names of the values of an axis: files by their stem, unless two have the same."""
    if axis == "seeds":
        return [f"seed {value}" for value in values]
    short = [_short(value) for value in values]
    return short if len(set(short)) == len(short) else [str(value) for value in values]


def _short(value: str | None) -> str:
    if value is None:
        return PLAIN
    return Path(value).stem if is_config_file(value) else value
