"""Who says what happened, when a run hangs?  Every machine of the jobs that are alive tells its last events.

The machines are asked of the jobs' own tasks, so that nothing has to be registered while all goes well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from actorflow.model.ids import ActorId, ChannelId
from actorflow.protocol.lifecycle import Life
from actorflow.protocol.machine import Machine
from actorflow.runtime.supervisor import Supervisor
from actorflow.simulation.process import Process
from actorflow.simulation.steps import SimulatedTask, frames

__all__ = ("stories_of",)

_LAST = 6
"""How many of its last events a machine tells."""

_WIDEST = 240


def stories_of(loop: asyncio.AbstractEventLoop) -> str:
    """Tell, for every job that is alive on a loop, in which phase each of its machines is, and how it came there."""
    tasks = [task for task in asyncio.all_tasks(loop) if isinstance(task, SimulatedTask)]
    told: list[str] = []
    for task in sorted(tasks, key=lambda task: task.number):
        for frame in frames(task.get_coro()):
            owner = frame.f_locals.get("self")
            if isinstance(owner, Supervisor) and frame.f_code is Supervisor.run.__code__:
                whose = task.process.identity if isinstance(task.process, Process) else "nobody's"
                told.append(f"the machines of {whose}:")
                for name, machine in owner.machines():
                    told += [_cut(f"  {line}") for line in _story(name, machine)]
    return "\n".join(told)


def _story(name: str, machine: Machine[Any, Any] | Life[Any]) -> Iterator[str]:
    if isinstance(machine, Life):
        yield f"{name}: {' → '.join(machine.story)}"
        return
    yield f"{name} is {_short(machine.phase)} after"
    for event, effects in list(machine.story)[-_LAST:]:
        yield f"  {_short(event)} -> {', '.join(map(_short, effects)) or 'nothing'}"


def _short(value: Any) -> str:
    """Write a value of a machine for people: names instead of types, and no field that is as it always is."""
    match value:
        case ActorId() | ChannelId():
            return str(value)
        case Enum():
            return value.name.lower()
        case list() | tuple():
            return f"[{', '.join(map(_short, value))}]"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(_short, value)))}}}"
        case dict():
            return f"{{{', '.join(f'{_short(key)}: {_short(one)}' for key, one in value.items())}}}"
    if not is_dataclass(value):
        return repr(value)
    told = [(field.name, getattr(value, field.name)) for field in fields(value) if field.repr]
    usual = {field.name: field.default for field in fields(value)}
    said = [f"{name}={_short(one)}" for name, one in told if one != usual[name]]
    return f"{type(value).__name__}({', '.join(said)})" if said else type(value).__name__


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
