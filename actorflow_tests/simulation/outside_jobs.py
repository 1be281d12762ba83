"""Jobs between broker and database, and the storms in which they must lose and double nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import actorflow as af
from actorflow.connectors import function, generator
from actorflow.simulation.chance import Chance
from actorflow.simulation.inputs import records_of
from actorflow.simulation.play import Played, play_seed
from actorflow.simulation.scenario import AboutOutput, AboutState, Expectation, Fault, Input, Output, Scenario, Step
from actorflow.simulation.subject import Subject
from actorflow.simulation.weather import (
    After,
    At,
    FailRequests,
    Kill,
    LoseAnswers,
    Moment,
    OnBroker,
    OnDatabase,
    Partition,
    Pause,
    Replace,
    Service,
    SlowRequests,
    Stall,
    Trigger,
    Way,
    Weather,
)

RECORDS = 120

SAME: tuple[Expectation, ...] = (
    AboutOutput(compare="same as the calm run"),
    AboutState(compare="same as the calm run"),
)

_ENTRIES = (
    "SinkPrepared",
    "CheckpointAcknowledged",
    "ManifestWritten",
    "CheckpointCompleted",
    "SinkCommitted",
    "ActorRestored",
)
_OPERATIONS = {
    Service.BROKER: ("init", "append", "commit", "transactions", "read", "*"),
    Service.DATABASE: ("begin", "insert", "get", "*sert", "commit*", "prepare", "*"),
}


def make(index: int) -> int:
    return index


def six(value: int) -> int:
    return value % 6


def add(state: int | None, value: int) -> tuple[int, tuple[int, int]]:
    """A running sum; where the records of a key come in their order, there is one right output."""
    total = (state or 0) + value
    return total, (value, total)


def nowhere(row: tuple[int, int]) -> None:
    raise AssertionError("a stand-in takes this place")


def running_sums(job: af.Job) -> af.Stream[tuple[int, int]]:
    """Numbers at a pace, and their running sums by key."""
    numbers = job.read(generator.numbers(RECORDS, splits=3, per_second=600), name="numbers")
    return numbers.key_by(six).stateful_map(add, name="sum")


def sums() -> af.Job:
    job = af.Job("sums")
    running_sums(job).write(function.call(nowhere), name="rows")
    return job


def scenario(
    weather: Sequence[Weather | Fault] = (),
    *,
    build: Callable[[], af.Job] = sums,
    lives: tuple[int, ...] = (2,),
    every_ms: int | None = 120,
    steps: tuple[Step, ...] = (),
    expectations: tuple[Expectation, ...] = SAME,
    outputs: tuple[Output, ...] = (),
    from_broker: bool = True,
    per_second: float = 400.0,
    records: int = RECORDS,
    settings: dict[str, object] | None = None,
) -> tuple[Scenario, Subject]:
    """A story of a job whose numbers come from a topic of three partitions, and what is played."""
    environment: dict[str, object] = {"checkpoints.timeout": "2s", "checkpoints.tolerable_failures": 3}
    if every_ms is not None:
        environment["checkpoints.every"] = f"{every_ms}ms"
    said = Scenario(
        title="between broker and database",
        job=f"{build.__module__}:{build.__name__}",
        environment=environment | (settings or {}),
        inputs=(
            Input(
                source="numbers",
                make=f"{__name__}:make",
                count=records,
                per_second=per_second,
                splits=3,
                broker=from_broker,
            ),
        ),
        outputs=outputs,
        lives=lives,
        steps=steps,
        weather=tuple(one if isinstance(one, Fault) else Fault(weather=one) for one in weather),
        expectations=expectations,
        calm_within_ms=120_000,
    )
    subject = Subject(
        build,
        inputs={one.source: records_of(one) for one in said.inputs},
        outputs={one.sink: one.stand_in for one in outputs},
        is_ended=bool(steps),
    )
    return said, subject


def played(told: tuple[Scenario, Subject], seed: int) -> Played:
    """Play a seed of a story."""
    return play_seed(told[0], seed, told[1])


def storm(seed: int, service: Service) -> tuple[tuple[Fault, ...], tuple[int, ...]]:
    """Draw weather over everything that a service does, with kills in the first lives; and the parallelism of lives."""
    chance = Chance(seed, "a storm over", service.value)
    on = OnBroker if service is Service.BROKER else OnDatabase
    operations = _OPERATIONS[service]
    moments = (Moment.BEFORE, Moment.DURING, Moment.UNANSWERED, Moment.AFTER)

    def when() -> Trigger:
        match chance.below("trigger", 5):
            case 0:
                return At(chance.below("at", 500))
            case 1 | 2:
                return After(_ENTRIES[chance.below("entry", len(_ENTRIES))], occurrence=1 + chance.below("nth", 4))
            case _:
                operation = operations[chance.below("operation", len(operations))]
                moment = moments[chance.below("moment", len(moments))]
                return on(operation, "*", moment, 1 + chance.below("nth request", 5))

    def some(most: int) -> int:
        return 1 + chance.below("count", most)

    kills = [Fault(weather=Kill(when()), life=life + 1, perhaps=True) for life in range(some(3))]
    kinds: dict[str, Callable[[], Weather]] = {
        "lost commits": lambda: LoseAnswers(when(), service, "commit*", count=some(3)),
        "lost answers": lambda: LoseAnswers(when(), service, count=some(4)),
        "refused": lambda: FailRequests(when(), service, count=some(5)),
        "slow": lambda: SlowRequests(when(), service, count=some(3), by_ms=700),
        "stall": lambda: Stall(when(), service, 200 + chance.below("stall", 4_000)),
        "partition": lambda: Partition(
            when(),
            None,
            300 + chance.below("partition", 4_000),
            tuple(Way)[chance.below("way", 3)],
            (None, service, Service.STORE)[chance.below("which", 3)],
        ),
        "replace": lambda: Replace(when(), None, 300 + chance.below("replace", 3_000)),
        "pause": lambda: Pause(when(), None, 900),
    }
    more = [Fault(weather=kind(), perhaps=True) for name, kind in kinds.items() if chance.happens(name, 0.35)]
    return (*kills, *more), tuple(1 + chance.below("parallelism", 3) for _ in range(3))
