"""How are triggers and weather said in a scenario, and written back?

A trigger is ``at``, ``after`` or ``on``; weather is one verb, whose value says whom it strikes, and a few words beside
it.  Where a process or a machine is meant, ``true`` is the one in which the trigger occurred.

One table of verbs serves reading and writing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from actorflow.simulation.scenario_words import (
    COUNT,
    DURATION,
    FIELDS_OF,
    NAME,
    SOME_DURATION,
    TEXT,
    Kind,
    Word,
    nearest,
    one_of,
    read_where,
    write_where,
)
from actorflow.simulation.weather import (
    After,
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
    Moment,
    OnBroker,
    OnDatabase,
    OnDisk,
    OnObject,
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

__all__ = (
    "TRIGGERS",
    "VERBS",
    "Verb",
    "read_target",
    "read_trigger",
    "verb_of",
    "verbs_of",
    "write_target",
    "write_trigger",
    "write_words",
)

TRIGGERS = ("at", "after", "on")

OPERATIONS: dict[str, tuple[str, ...]] = {
    "object": ("put", "put_if_absent", "get", "list", "delete", "sweep"),
    "disk": (
        *("create", "write", "sync", "rename", "link", "remove", "make_folder", "remove_folder", "sync_folder"),
        *("open", "read", "size", "list_folder", "list_tree"),
    ),
    "broker": (
        *("init", "commit", "abort", "append", "read", "offsets", "end_of_epoch"),
        *("create", "partitions", "transactions"),
    ),
    "database": (
        *("get", "insert", "upsert", "delete", "create", "rows", "begin", "commit", "rollback"),
        *("prepare", "commit_prepared", "rollback_prepared", "prepared"),
    ),
}
"""What is done to each seam, by the word that names it."""

_ON: dict[str, type[OnObject]] = {"object": OnObject, "disk": OnDisk, "broker": OnBroker, "database": OnDatabase}
_SERVICES = ("broker", "database")
_TORN: dict[str, tuple[str, ...]] = {"object": ("put", "put_if_absent"), "disk": ("write",)}


def _operation(seam: str) -> Kind:
    def read(value: Any) -> str:
        pattern = TEXT.read(value)
        if not any(fnmatchcase(operation, pattern) for operation in OPERATIONS[seam]):
            raise ValueError(f"matches nothing that is done to the {seam}; {nearest(pattern, OPERATIONS[seam])}")
        return str(pattern)

    return Kind(read)


def _signed(value: Any) -> int:
    if isinstance(value, str) and value.strip().startswith("-"):
        return -int(SOME_DURATION.read(value.strip()[1:]))
    return int(SOME_DURATION.read(value))


def _signed_back(ms: int) -> str:
    return f"-{DURATION.write(-ms)}" if ms < 0 else str(DURATION.write(ms))


def _ppm(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not value or abs(value) > 500_000:
        raise ValueError("must be a whole number of millionths, not 0, between -500_000 and 500_000")
    return value


def _one_of(choices: type[StrEnum]) -> Kind:
    texts = one_of(choice.value for choice in choices)
    return Kind(lambda value: choices(texts.read(value)), str)


_MOMENT = Word("moment", "moment", _one_of(Moment))
_OCCURRENCE = Word("occurrence", "occurrence", COUNT)
_PROCESS = Word("process", "process", NAME)
_LATER = Word("later", "later_ms", DURATION)
_FOR = Word("for", "ms", SOME_DURATION, required=True)
_COUNT = Word("count", "count", COUNT)
_BY = Word("by", "by_ms", SOME_DURATION, required=True)
_AIMS_AT = Word("aims_at", "step", NAME)


def _pattern_on(seam: str) -> Word:
    return Word("path" if seam == "disk" else "name", "pattern", TEXT)


def operation_words(seam: str) -> tuple[Word, ...]:
    """Return the words of a table that names an operation on a seam."""
    return (Word(seam, "operation", _operation(seam), required=True), _pattern_on(seam), _PROCESS)


AFTER = (_OCCURRENCE, _LATER, _PROCESS)


# ── triggers ─────────────────────────────────────────────────────────────────────────────────

Tell = Callable[[str], None]
ReadWords = Callable[[Mapping[str, Any], tuple[Word, ...], str], "dict[str, Any] | None"]
"""Reads a table by its words; the text says where it stands.  ``None`` when something was wrong, which it told."""


def read_trigger(word: str, value: Any, tell: Tell, read_words: ReadWords) -> Trigger | None:
    """Read what stands behind ``at``, ``after`` or ``on``; ``None`` when something was wrong, and told."""
    try:
        if word == "at":
            return At(DURATION.read(value))
        if not isinstance(value, Mapping):
            such_as = '{ journal = "SnapshotTaken" }' if word == "after" else '{ object = "put", name = "*" }'
            raise ValueError(f"must be a table such as {such_as}")
    except ValueError as error:
        tell(f"{word} = {value!r} {error}")
        return None
    return _read_after(value, tell, read_words) if word == "after" else _read_on(value, tell, read_words)


def _read_after(table: Mapping[str, Any], tell: Tell, read_words: ReadWords) -> After | None:
    entry = table.get("journal")
    if entry not in FIELDS_OF:
        shown = nearest(entry, FIELDS_OF) if isinstance(entry, str) else "say journal = and its name"
        tell(f"after: {'no entry' if entry is None else repr(entry)} is not an entry of the journal; {shown}")
        return None
    own = [word.name for word in AFTER]
    found = read_words({name: value for name, value in table.items() if name in own}, AFTER, "after")
    said = {name: value for name, value in table.items() if name not in {*own, "journal"}}
    where, wrong = read_where(entry, said)
    for sentence in wrong:
        tell(f"after: {sentence}")
    return None if wrong or found is None else After(entry, where=where, **found)


def _read_on(table: Mapping[str, Any], tell: Tell, read_words: ReadWords) -> OnObject | None:
    seams = [seam for seam in OPERATIONS if seam in table]
    if len(seams) != 1:
        tell(f"on: needs one of {', '.join(OPERATIONS)}, and the operation on it")
        return None
    found = read_words(table, (*operation_words(seams[0]), _MOMENT, _OCCURRENCE), "on")
    if found is None:
        return None
    torn = _TORN.get(seams[0], ())
    if found.get("moment") is Moment.TORN and not any(fnmatchcase(name, found["operation"]) for name in torn):
        tell(
            f"on: moment = 'torn' is for {' and '.join(torn) or 'objects and disks'}, and not for {found['operation']}"
        )
        return None
    return _ON[seams[0]](**found)


def write_trigger(trigger: Trigger) -> tuple[str, Any]:
    """Return a trigger's word, and what stands behind it."""
    match trigger:
        case At(ms=ms):
            return "at", DURATION.write(ms)
        case After(entry=entry, where=where):
            return "after", {"journal": entry, **write_where(where), **write_words(trigger, AFTER)}
        case _:
            seam = next(seam for seam, kind in _ON.items() if type(trigger) is kind)
            return "on", write_words(trigger, (*operation_words(seam), _MOMENT, _OCCURRENCE))


def write_words(value: Any, words: tuple[Word, ...]) -> dict[str, Any]:
    """Return what a table says: whatever is not as it would be unsaid, and what has to be said."""
    unsaid = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(value)}
    return {
        word.name: word.kind.write(said)
        for word in words
        if word.field in unsaid and ((said := getattr(value, word.field)) != unsaid[word.field] or word.required)
    }


# ── verbs ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: the weather it is, whom its value names, and the words beside it.

    ``names`` is the field that a process, a machine or an operator goes into; ``seam`` says that the value is a table
    which names an operation on it.
    """

    word: str
    weather: type[Weather]
    words: tuple[Word, ...] = ()
    names: str = ""
    seam: str = ""

    @property
    def may_be_where_it_struck(self) -> bool:
        """Whether ``true`` may stand for a name."""
        return self.names in {"process", "machine", "target"}


VERBS = (
    Verb("kill", Kill, (_AIMS_AT,), names="process"),
    Verb("power_cut", PowerCut, (_AIMS_AT,), names="machine"),
    Verb("lose_disk", LoseDisk, (_AIMS_AT,), names="machine"),
    Verb("pause", Pause, (_FOR,), names="process"),
    Verb("stop", Stop, names="process"),
    Verb("replace", Replace, (_FOR,), names="process"),
    Verb(
        "partition",
        Partition,
        (_FOR, Word("way", "way", _one_of(Way)), Word("from", "service", _one_of(Service))),
        names="process",
    ),
    Verb("stall", Stall, (_FOR,), names="service"),
    Verb(
        "rewind", Rewind, (Word("count", "count", COUNT, required=True), Word("name", "pattern", TEXT)), names="service"
    ),
    Verb("raise", Raise, names="operator"),
    Verb(
        "slow",
        Slow,
        (_BY, Word("for", "for_ms", SOME_DURATION, required=True)),
        names="operator",
    ),
    Verb("drift", Drift, (Word("millionths", "ppm", Kind(_ppm), required=True),), names="target"),
    Verb("jump", Jump, (Word("by", "by_ms", Kind(_signed, _signed_back), required=True),), names="target"),
    Verb("fail", FailObjects, (_COUNT,), seam="object"),
    Verb("tear", TearObjects, (_COUNT,), seam="object"),
    Verb("lose_answer", LoseAnswer, (_COUNT,), seam="object"),
    Verb("slow", SlowObjects, (_BY, _COUNT), seam="object"),
    Verb("fail", FailDisk, (_COUNT,), seam="disk"),
    Verb("tear", TearDisk, (_COUNT,), seam="disk"),
    Verb("lose_answer", LoseDiskAnswer, (_COUNT,), seam="disk"),
    Verb("slow", SlowDisk, (_BY, _COUNT), seam="disk"),
    *(Verb("fail", FailRequests, (_COUNT,), seam=service) for service in _SERVICES),
    *(Verb("lose_answer", LoseAnswers, (_COUNT,), seam=service) for service in _SERVICES),
    *(Verb("slow", SlowRequests, (_BY, _COUNT), seam=service) for service in _SERVICES),
)


def verbs_of(word: str) -> list[Verb]:
    """Return what a verb may be: on processes and operators, or on the seams whose operations it fails."""
    return [verb for verb in VERBS if verb.word == word]


def verb_of(weather: Weather) -> Verb:
    """Return the verb of a weather."""
    fit = [verb for verb in VERBS if verb.weather is type(weather)]
    return next(verb for verb in fit if verb.seam not in _SERVICES or getattr(weather, "service", "") == verb.seam)


def read_target(verbs: list[Verb], value: Any, tell: Tell, read_words: ReadWords) -> tuple[Verb, dict[str, Any]] | None:
    """Read whom a verb strikes; ``None`` when something was wrong, and told."""
    word = verbs[0].word
    seams = [verb for verb in verbs if verb.seam]
    named = next((verb for verb in verbs if not verb.seam), None)
    if isinstance(value, Mapping) and seams:
        meant = [verb for verb in seams if verb.seam in value]
        if len(meant) != 1:
            tell(f"{word}: needs one of {', '.join(verb.seam for verb in seams)}, and the operation on it")
            return None
        found = read_words(value, operation_words(meant[0].seam), word)
        service = {"service": Service(meant[0].seam)} if meant[0].seam in _SERVICES else {}
        return None if found is None else (meant[0], found | service)
    if named is None:
        tell(f"{word} = {value!r} must be a table such as {{ {seams[0].seam} = {OPERATIONS[seams[0].seam][0]!r} }}")
        return None
    if value is True and named.may_be_where_it_struck:
        return named, {named.names: None}
    try:
        name = NAME.read(value)
    except ValueError as error:
        tell(f"{word} = {value!r} {error}")
        return None
    if named.names == "service":
        if name not in _SERVICES:
            tell(f"{word} = {value!r} must be one of {' and '.join(_SERVICES)}; {nearest(name, _SERVICES)}")
            return None
        return named, {"service": Service(name)}
    if named.weather is Raise:
        operator, slash, subtask = name.rpartition("/")
        if slash and subtask.isdecimal() and subtask.isascii() and operator:
            return named, {"operator": operator, "subtask": int(subtask)}
    return named, {named.names: name}


def write_target(weather: Weather) -> Any:
    """Return what stands behind the verb of a weather."""
    verb = verb_of(weather)
    if verb.seam:
        return write_words(weather, operation_words(verb.seam))
    if isinstance(weather, Raise) and weather.subtask is not None:
        return f"{weather.operator}/{weather.subtask}"
    name = getattr(weather, verb.names)
    return True if name is None else str(name)
