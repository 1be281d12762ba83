"""What can be set, what is set, and what did a ``-D`` change?

For ``--help``, for the documentation's tables, and for the line that tells somebody that what he typed had no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actorflow.config.checks import value_text
from actorflow.config.flink import flink_keys_of
from actorflow.config.keys import flatten, interpret
from actorflow.config.knobs import KNOBS
from actorflow.config.reading import flat, strategy_of
from actorflow.config.settings import (
    Buffers,
    Checkpoints,
    Debloat,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    NoRestart,
    Restart,
    Settings,
)

__all__ = ("KnownSetting", "as_mapping", "changed_nothing", "known_settings")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSetting:
    """One line of the list of settings."""

    name: str
    default: str
    says: str
    flink: tuple[str, ...]  # Flink's keys for it, today's first
    strategy: str  # of the restart strategies, the one that it belongs to
    later: str  # why only the default is possible yet; empty when all is


def known_settings() -> tuple[KnownSetting, ...]:
    """Return all settings in the order of the documentation."""
    groups = (
        Settings(),
        Checkpoints(),
        Buffers(),
        Debloat(),
        NoRestart(),
        FixedDelay(),
        FailureRate(),
        ExponentialDelay(),
    )
    defaults = {group.group: group for group in groups}
    return tuple(
        KnownSetting(
            name=knob.name,
            default="default"
            if knob.name == "restart"
            else value_text(getattr(defaults[knob.group], knob.field), knob.kind),
            says=knob.says,
            flink=flink_keys_of(knob),
            strategy=knob.strategy,
            later=knob.later,
        )
        for knob in KNOBS
    )


def as_mapping(settings: Settings) -> dict[str, str]:
    """Return the settings in text, by full name; ``Settings.from_mapping`` gives the same settings back."""
    values, texts = flat(settings), dict[str, str]()
    for knob in KNOBS:
        if knob.name == "restart":
            texts |= _restart_texts(settings.restart)
        elif not knob.strategy and knob.group != "buffers.debloat":
            value = values[knob.name]
            texts[knob.name] = str(value) if isinstance(value, str) else value_text(value, knob.kind)
    return texts


def changed_nothing(
    asked: Mapping[str, object], *, before: Settings, after: Settings, source: str = "-D"
) -> tuple[str, ...]:
    """Return a sentence for each key of ``asked`` that had no effect.

    ``before`` are the settings without ``asked``; ``after`` those that hold in the end, when the job has had its say.
    """
    had, wanted, holds = flat(before), flat(before.merged(asked)), flat(after)
    sentences = []
    for key, value in flatten(asked):
        names = sorted({_setting_of(target) for target, _ in interpret(key, value)})
        if all(wanted[name] == had[name] for name in names):
            already = f"{_told(names, had)} already" if names else "it is never otherwise"
            sentences.append(f"{source} {key} changes nothing: {already}")
        elif all(holds[name] != wanted[name] for name in names):
            sentences.append(f"{source} {key} changes nothing: something above it says that {_told(names, holds)}")
    return tuple(sentences)


def _setting_of(target: str) -> str:
    """Return the setting that a target of :func:`interpret` is, or is a part of."""
    if target.startswith("restart"):
        return "restart"
    return _WHOLE.get(target.partition(".")[0], target)


_WHOLE = {"align": "checkpoints.align_at_most", "storage": "checkpoints.storage"}
_KINDS = {knob.name: knob.kind for knob in KNOBS if not knob.strategy}


def _told(names: list[str], values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} is {value_text(values[name], _KINDS[name])}" for name in names)


def _restart_texts(restart: Restart | None) -> dict[str, str]:
    if restart is None:
        return {"restart.type": "default"}
    strategy = strategy_of(restart)
    knobs = (knob for knob in KNOBS if knob.strategy == strategy)
    return {"restart.type": strategy} | {
        knob.name: value_text(getattr(restart, knob.field), knob.kind) for knob in knobs
    }
