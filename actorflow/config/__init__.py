"""Every knob: what it is, what it may be, and how it is read.

Open ``settings.py`` first: frozen dataclasses with their defaults.  ``knobs.py`` is the table of names, ranges and
Flink's keys, ``checks.py`` judges values, ``policies.py`` says what is promised and what is kept.  ``text.py``,
``values.py``, ``keys.py``, ``flink.py`` and ``reading.py`` turn files and command lines into settings, ``telling.py``
lists and explains them.  Nothing here reads a file, the environment or a clock.
"""

from actorflow.config.policies import Ending, Guarantee, Retention
from actorflow.config.reading import parse_assignments
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
from actorflow.config.telling import KnownSetting, as_mapping, changed_nothing, known_settings
from actorflow.config.text import duration_text, milliseconds, parse_duration, parse_size, size_text

__all__ = (
    "Buffers",
    "Checkpoints",
    "Debloat",
    "Ending",
    "ExponentialDelay",
    "FailureRate",
    "FixedDelay",
    "Guarantee",
    "KnownSetting",
    "NoRestart",
    "Restart",
    "Retention",
    "Settings",
    "as_mapping",
    "changed_nothing",
    "duration_text",
    "known_settings",
    "milliseconds",
    "parse_assignments",
    "parse_duration",
    "parse_size",
    "size_text",
)
