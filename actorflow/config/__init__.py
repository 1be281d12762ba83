"""Every knob: what it is, what it may be, and how it is read.

Open ``settings.py`` first: frozen dataclasses with their defaults.  ``knobs.py`` is the table of names, ranges and
Flink's keys, ``checks.py`` judges values, ``policies.py`` says what is promised and what is kept.  ``text.py``,
``values.py``, ``keys.py``, ``flink.py`` and ``reading.py`` turn files and command lines into settings, ``telling.py``
lists and explains them; these load on use.  Nothing here reads a file, the environment or a clock.
"""

from actorflow.config.policies import Ending, Guarantee, Retention
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
    "NoRestart",
    "Restart",
    "Retention",
    "Settings",
    "duration_text",
    "milliseconds",
    "parse_duration",
    "parse_size",
    "size_text",
)
