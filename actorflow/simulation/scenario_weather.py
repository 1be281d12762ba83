"""How is weather said in a scenario, and written back?

A fault is one verb, whose value says whom it strikes, and a few words beside it.  Where a process or a machine is
meant, ``true`` is the one in which the trigger occurred.  Faults of operations name a seam and what is done to it.

    after = { journal = "CheckpointCompleted", checkpoint = 2 }
    kill = "match/0"

    at = "3s"
    fail = { object = "put*", name = "*chk-*" }
    count = 2

One table of verbs serves reading and writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actorflow.errors import InvalidConfig
from actorflow.simulation.scenario import Fault
from actorflow.simulation.scenario_kinds import (
    COUNT,
    DURATION,
    JUMP,
    MILLIONTHS,
    NAME,
    SOME_DURATION,
    SWITCH,
    TEXT,
    a_member_of,
    nearest,
)
from actorflow.simulation.scenario_tables import WRONG, Table, Word, Words, short, write_words
from actorflow.simulation.scenario_triggers import OPERATIONS, TRIGGERS, operation_words, read_trigger, write_trigger
from actorflow.simulation.weather import (
    At,
    Drift,
    FailDisk,
    FailObjects,
    FailRequests,
    Jump,
    Kill,
    LoseAnswer,
    LoseAnswers,
    LoseDisk,
    LoseDiskAnswer,
    Partition,
    Pause,
    PowerCut,
    Raise,
    Replace,
    Rewind,
    Service,
    Slow,
    SlowDisk,
    SlowObjects,
    SlowRequests,
    Stall,
    Stop,
    TearDisk,
    TearObjects,
    Trigger,
    Way,
    Weather,
)

__all__ = ("VERBS", "Verb", "read_fault", "write_fault")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: the weather it is, whom its value names, and the words beside it.

    ``names`` is the field that a process, a machine, an operator or a service goes into; ``seam`` says that the value
    is a table which names an operation on it.
    """

    word: str
    weather: type[Weather]
    words: Words = ()
    names: str = ""
    seam: str = ""

    @property
    def may_be_where_it_struck(self) -> bool:
        """Whether ``true`` may stand for a name."""
        return self.names in {"process", "machine", "target"}


_SERVICES = ("broker", "database")
_AIMS_AT = Word("aims_at", "step", NAME)
_BY = Word("by", "by_ms", SOME_DURATION, required=True)
_COUNT = Word("count", "count", COUNT)
_FOR = Word("for", "ms", SOME_DURATION, required=True)
_FROM, _WAY = Word("from", "service", a_member_of(Service)), Word("way", "way", a_member_of(Way))
_SO_MANY, _OF = Word("count", "count", COUNT, required=True), Word("name", "pattern", TEXT)

VERBS = (
    Verb("kill", Kill, (_AIMS_AT,), names="process"),
    Verb("power_cut", PowerCut, (_AIMS_AT,), names="machine"),
    Verb("lose_disk", LoseDisk, (_AIMS_AT,), names="machine"),
    Verb("pause", Pause, (_FOR,), names="process"),
    Verb("stop", Stop, names="process"),
    Verb("replace", Replace, (_FOR,), names="process"),
    Verb("partition", Partition, (_FROM, _FOR, _WAY), names="process"),
    Verb("raise", Raise, names="operator"),
    Verb("slow", Slow, (_BY, Word("for", "for_ms", SOME_DURATION, required=True)), names="operator"),
    Verb("drift", Drift, (Word("millionths", "ppm", MILLIONTHS, required=True),), names="target"),
    Verb("jump", Jump, (Word("by", "by_ms", JUMP, required=True),), names="target"),
    Verb("stall", Stall, (_FOR,), names="service"),
    Verb("rewind", Rewind, (_SO_MANY, _OF), names="service"),
    Verb("fail", FailObjects, (_COUNT,), seam="object"),
    Verb("fail", FailDisk, (_COUNT,), seam="disk"),
    *(Verb("fail", FailRequests, (_COUNT,), seam=service) for service in _SERVICES),
    Verb("tear", TearObjects, (_COUNT,), seam="object"),
    Verb("tear", TearDisk, (_COUNT,), seam="disk"),
    Verb("lose_answer", LoseAnswer, (_COUNT,), seam="object"),
    Verb("lose_answer", LoseDiskAnswer, (_COUNT,), seam="disk"),
    *(Verb("lose_answer", LoseAnswers, (_COUNT,), seam=service) for service in _SERVICES),
    Verb("slow", SlowObjects, (_BY, _COUNT), seam="object"),
    Verb("slow", SlowDisk, (_BY, _COUNT), seam="disk"),
    *(Verb("slow", SlowRequests, (_BY, _COUNT), seam=service) for service in _SERVICES),
)

_WORDS = tuple(dict.fromkeys(verb.word for verb in VERBS))
_ALWAYS = ("life", "perhaps")
"""Words that stand beside every verb."""

_UNTIL = "until"
_BESIDE = (*dict.fromkeys(word.name for verb in VERBS for word in verb.words), _UNTIL)


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_fault(table: Table) -> Fault | None:
    """Read a ``[[weather]]``; ``None`` when something is wrong, which is noted."""
    when = read_trigger(table)
    life = table.read_one("life", COUNT, table.said.pop("life", 1))
    perhaps = table.read_one("perhaps", SWITCH, table.said.pop("perhaps", False))
    said = [word for word in table.said if word in _WORDS]
    if len(said) != 1:
        known = (*TRIGGERS, *_WORDS, *_BESIDE, *_ALWAYS)
        table.unknown([word for word in table.said if word not in known], known)
        if said:
            table.tell(f"has {len(said)} verbs, {' and '.join(said)}: each needs a table of its own")
        else:
            table.lacks(f"has no verb: one of {', '.join(_WORDS)}", *_WORDS)
        table.close()
        return None
    verb, struck = _read_target(table, said[0], table.said.pop(said[0]))
    if verb is None:
        table.close()
        return None
    if _UNTIL in table.said and any(word.name == "for" for word in verb.words):
        _read_until(table, when)
    found = table.read(verb.words, beside=(*TRIGGERS, *_ALWAYS))
    if isinstance(when, At) and verb.may_be_where_it_struck and struck.get(verb.names, "") is None:
        table.tell(f"{verb.word} = true is where the trigger occurred, and at a time that is nowhere: say whom")
    if not table.close():
        return None
    assert when is not None
    try:
        return Fault(weather=verb.weather(when, **struck, **found), life=life, perhaps=perhaps)
    except InvalidConfig as impossible:
        table.tell(str(impossible))
        return None


def _read_until(table: Table, when: Trigger | None) -> None:
    """Turn ``until`` into ``for``."""
    until = table.said.pop(_UNTIL)
    if "for" in table.said:
        table.tell("says for and until: one is enough")
        return
    ms = table.read_one(_UNTIL, DURATION, until)
    start = when.ms if isinstance(when, At) else 0
    if when is not None and not isinstance(when, At):
        table.tell("until is a time, and goes with at: say for")
    elif ms is not WRONG and ms <= start:
        table.tell(f"until = {short(until)} is not later than at")
    # What is wrong has been told: that it is missing would be told besides.
    table.said["for"] = f"{max(1, ms - start)}ms" if ms is not WRONG else "1ms"


def _read_target(table: Table, word: str, value: Any) -> tuple[Verb | None, dict[str, Any]]:
    """Read whom a verb strikes, and thereby which of its weathers it is; no verb when that is not to be seen."""
    verbs = [verb for verb in VERBS if verb.word == word]
    on_seams = {verb.seam: verb for verb in verbs if verb.seam}
    by_name = next((verb for verb in verbs if not verb.seam), None)
    if isinstance(value, Mapping) and on_seams:
        seams = [seam for seam in on_seams if seam in value]
        if len(seams) != 1:
            table.tell(f"{word}: needs one of {', '.join(on_seams)}, and the operation on it")
            return None, {}
        service = {"service": Service(seams[0])} if seams[0] in _SERVICES else {}
        return on_seams[seams[0]], service | table.read_within(word, value, operation_words(seams[0]))
    if by_name is None:
        seam = next(iter(on_seams))
        table.tell(f'{word} = {short(value)} must be a table such as {{ {seam} = "{OPERATIONS[seam][0]}" }}')
        return None, {}
    if value is True and by_name.may_be_where_it_struck:
        return by_name, {by_name.names: None}
    name = table.read_one(word, NAME, value)
    if name is WRONG:
        return by_name, {}
    if by_name.names == "service":
        if name in _SERVICES:
            return by_name, {"service": Service(name)}
        table.tell(f"{word} = {short(value)} must be one of {' and '.join(_SERVICES)}; {nearest(name, _SERVICES)}")
        return by_name, {}
    operator, slash, subtask = name.rpartition("/")
    if by_name.weather is Raise and slash and subtask.isascii() and subtask.isdecimal():
        return by_name, {"operator": operator, "subtask": int(subtask)}
    return by_name, {by_name.names: name}


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def write_fault(fault: Fault) -> dict[str, Any]:
    """Return what a ``[[weather]]`` says."""
    weather = fault.weather
    fitting = [verb for verb in VERBS if verb.weather is type(weather)]
    verb = next(one for one in fitting if one.seam not in _SERVICES or one.seam == getattr(weather, "service", ""))
    word, trigger = write_trigger(weather.when)
    said = {word: trigger, verb.word: _write_target(verb, weather), **write_words(weather, verb.words)}
    life = {} if fault.life == 1 else {"life": fault.life}
    return said | life | ({"perhaps": True} if fault.perhaps else {})


def _write_target(verb: Verb, weather: Weather) -> Any:
    if verb.seam:
        return write_words(weather, operation_words(verb.seam))
    if isinstance(weather, Raise) and weather.subtask is not None:
        return f"{weather.operator}/{weather.subtask}"
    name = getattr(weather, verb.names)
    return True if name is None else str(name)
