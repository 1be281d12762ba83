"""Settings: their defaults, their names here and in Flink, and every mistake told at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actorflow.config import (
    Buffers,
    Checkpoints,
    Debloat,
    Ending,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    Guarantee,
    NoRestart,
    Restart,
    Retention,
    Settings,
    duration_text,
    milliseconds,
    parse_duration,
    parse_size,
    size_text,
)
from actorflow.config.flink import ALIASES, FIXED, FLINK, PAIRED, known_flink_keys
from actorflow.config.knobs import KNOBS
from actorflow.config.reading import parse_assignments
from actorflow.config.telling import as_mapping, changed_nothing, known_settings
from actorflow.errors import InvalidConfig

MS, SECOND, MINUTE = timedelta(milliseconds=1), timedelta(seconds=1), timedelta(minutes=1)
EXECUTION = "execution.checkpointing."
NETWORK = "taskmanager.network.memory."


def problems_of(mapping: Mapping[str, object], **how: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidConfig) as refused:
        Settings.from_mapping(mapping, **how)
    return refused.value.problems


def problem_of(mapping: Mapping[str, object], **how: Any) -> str:
    (problem,) = problems_of(mapping, **how)
    return problem


def complaints_about(mapping: Mapping[str, object]) -> tuple[str, ...]:
    """Return what is wrong with a mapping, if anything is; whatever else is raised comes through."""
    try:
        Settings.from_mapping(mapping)
    except InvalidConfig as refused:
        return refused.problems
    return ()


# ── defaults ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_defaults_are_those_of_the_documentation() -> None:
    assert (
        Settings(
            parallelism=1,
            max_parallelism=None,
            state="memory",
            restart=None,
            stop_within=MINUTE,
            show_records=True,
            checkpoints=Checkpoints(
                storage=None,
                every=None,
                every_during_backlog=None,
                timeout=10 * MINUTE,
                min_pause=timedelta(0),
                max_concurrent=1,
                tolerable_failures=0,
                retained=1,
                retention=Retention.RETAIN_ON_CANCELLATION,
                guarantee=Guarantee.EXACTLY_ONCE,
                align_at_most=None,
                force_unaligned=False,
                actors_per_in_flight_file=5,
                incremental=True,
                inline_below=20_480,
                compression=None,
                savepoints=None,
                create_subdir=True,
            ),
            buffers=Buffers(
                per_channel=2,
                floating_per_gate=8,
                most_per_channel=10,
                overdraft=5,
                records=256,
                bytes=262_144,
                flush_after=100 * MS,
                debloat=None,
            ),
        )
        == Settings()
    )


def test_restart_strategies_begin_with_flinks_defaults() -> None:
    assert FixedDelay(attempts=1, delay=SECOND) == FixedDelay()
    assert FailureRate(max_failures=1, interval=MINUTE, delay=SECOND) == FailureRate()
    assert (
        ExponentialDelay(
            first=SECOND, at_most=MINUTE, multiplier=1.5, reset_after=60 * MINUTE, jitter=0.1, attempts=None
        )
        == ExponentialDelay()
    )
    assert Debloat(target=SECOND, period=200 * MS, samples=20, threshold_percent=25) == Debloat()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), NoRestart()),
        (Settings(checkpoints=Checkpoints(every=SECOND)), ExponentialDelay()),
        (Settings(checkpoints=Checkpoints(every=SECOND), restart=NoRestart()), NoRestart()),
        (Settings(restart=FixedDelay(attempts=3)), FixedDelay(attempts=3)),
    ],
)
def test_a_job_starts_again_by_itself_when_it_takes_checkpoints(settings: Settings, expected: Restart) -> None:
    assert expected == settings.restart_strategy


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().parallelism = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        (Retention.NO_EXTERNALIZED_CHECKPOINTS, []),
        (Retention.DELETE_ON_CANCELLATION, [Ending.FAILED]),
        (Retention.RETAIN_ON_CANCELLATION, [Ending.CANCELED, Ending.FAILED, Ending.SUSPENDED]),
    ],
)
def test_each_retention_keeps_what_the_table_of_3_7_says(retention: Retention, kept: list[Ending]) -> None:
    assert kept == [ending for ending in Ending if retention.keeps(ending)]


# ── durations and sizes ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("250ms", 250),
        ("10s", 10_000),
        ("5min", 300_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
        ("0", 0),
        ("0s", 0),
        ("1.5s", 1_500),
        (" 10 s ", 10_000),
        ("+3s", 3_000),
    ],
)
def test_a_duration_is_read(text: str, expected_ms: int) -> None:
    assert expected_ms == milliseconds(parse_duration(text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("10", "needs a unit"),
        (10, "needs a unit"),
        ("10 minutes", "minutes are 'min'"),
        ("10m", "minutes are 'min'"),
        ("10us", "none of"),
        ("1.0001s", "whole number of milliseconds"),
        ("-1s", "negative"),
        ("soon", "is not a duration"),
        ("", "is not a duration"),
        ("1e3s", "is not a duration"),
        ("9" * 50 + "s", "longer"),
        ("9999999999999999d", "longer"),
        (True, "not bool"),
        (None, "not NoneType"),
        ([1], "not list"),
    ],
)
def test_what_is_no_duration_is_refused(text: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20KiB", 20_480), (20_480, 20_480), ("1MiB", 1 << 20), ("0", 0), ("0.5KiB", 512), ("3B", 3), ("1GiB", 1 << 30)],
)
def test_a_size_is_read(text: object, expected: int) -> None:
    assert expected == parse_size(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("20KB", "1,024 bytes are 1KiB"),
        ("20k", "KiB"),
        ("5M", "MiB"),
        ("0.3B", "whole"),
        ("-1", "negative"),
        ("x", "is not"),
    ],
)
def test_what_is_no_size_is_refused(text: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        parse_size(text)


@given(st.integers(0, 10**14))
def test_a_duration_comes_back_from_its_text(ms: int) -> None:
    assert ms * MS == parse_duration(duration_text(ms * MS))


@given(st.integers(0, 2**60))
def test_a_size_comes_back_from_its_text(size: int) -> None:
    assert size == parse_size(size_text(size))


# ── what is refused where it is made ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Settings(parallelism=0), "parallelism"),
        (lambda: Settings(parallelism=32_769), "parallelism"),
        (lambda: Settings(parallelism=True), "parallelism"),
        (lambda: Settings(parallelism=1.0), "parallelism"),  # type: ignore[arg-type]
        (lambda: Settings(parallelism=None), "parallelism"),  # type: ignore[arg-type]
        (lambda: Settings(max_parallelism=0), "max_parallelism"),
        (lambda: Settings(max_parallelism=40_000), "max_parallelism"),
        (lambda: Settings(stop_within=60), "stop_within"),  # type: ignore[arg-type]
        (lambda: Settings(stop_within=-SECOND), "stop_within"),
        (lambda: Settings(show_records="no"), "show_records"),  # type: ignore[arg-type]
        (lambda: Settings(state="disk"), "state"),
        (lambda: Settings(checkpoints={}), "checkpoints"),  # type: ignore[arg-type]
        (lambda: Settings(buffers=None), "buffers"),  # type: ignore[arg-type]
        (lambda: Settings(restart="none"), "restart"),  # type: ignore[arg-type]
        (lambda: Checkpoints(storage=""), "checkpoints.storage"),
        (lambda: Checkpoints(storage="a\0b"), "checkpoints.storage"),
        (lambda: Checkpoints(storage=3), "checkpoints.storage"),  # type: ignore[arg-type]
        (lambda: Checkpoints(every=timedelta(0)), "checkpoints.every"),
        (lambda: Checkpoints(every=timedelta(microseconds=1_500)), "checkpoints.every"),
        (lambda: Checkpoints(timeout=timedelta(0)), "checkpoints.timeout"),
        (lambda: Checkpoints(min_pause=-MS), "checkpoints.min_pause"),
        (lambda: Checkpoints(max_concurrent=0), "checkpoints.max_concurrent"),
        (lambda: Checkpoints(tolerable_failures=-1), "checkpoints.tolerable_failures"),
        (lambda: Checkpoints(retained=0), "checkpoints.retained"),
        (lambda: Checkpoints(retention="RETAIN_ON_CANCELLATION"), "checkpoints.retention"),  # type: ignore[arg-type]
        (lambda: Checkpoints(guarantee=Retention.DELETE_ON_CANCELLATION), "checkpoints.guarantee"),  # type: ignore[arg-type]
        (lambda: Checkpoints(inline_below=(1 << 20) + 1), "checkpoints.inline_below"),
        (lambda: Checkpoints(inline_below=-1), "checkpoints.inline_below"),
        (lambda: Checkpoints(actors_per_in_flight_file=0), "checkpoints.actors_per_in_flight_file"),
        (lambda: Buffers(per_channel=0), "buffers.per_channel"),
        (lambda: Buffers(floating_per_gate=-1), "buffers.floating_per_gate"),
        (lambda: Buffers(most_per_channel=0), "buffers.most_per_channel"),
        (lambda: Buffers(overdraft=-1), "buffers.overdraft"),
        (lambda: Buffers(records=0), "buffers.records"),
        (lambda: Buffers(bytes=0), "buffers.bytes"),
        (lambda: Buffers(flush_after=-MS), "buffers.flush_after"),
        (lambda: Debloat(samples=0), "buffers.debloat.samples"),
        (lambda: Debloat(threshold_percent=101), "buffers.debloat.threshold_percent"),
        (lambda: FixedDelay(attempts=-1), "restart.attempts"),
        (lambda: FixedDelay(delay=-MS), "restart.delay"),
        (lambda: FailureRate(max_failures=0), "restart.max_failures"),
        (lambda: FailureRate(interval=timedelta(0)), "restart.interval"),
        (lambda: ExponentialDelay(first=timedelta(0)), "restart.first"),
        (lambda: ExponentialDelay(multiplier=0.9), "restart.multiplier"),
        (lambda: ExponentialDelay(multiplier=float("nan")), "restart.multiplier"),
        (lambda: ExponentialDelay(multiplier=float("inf")), "restart.multiplier"),
        (lambda: ExponentialDelay(jitter=1.1), "restart.jitter"),
        (lambda: ExponentialDelay(jitter=-0.1), "restart.jitter"),
        (lambda: ExponentialDelay(reset_after=timedelta(0)), "restart.reset_after"),
        (lambda: ExponentialDelay(attempts=0), "restart.attempts"),
    ],
)
def test_a_value_that_can_not_be_is_refused_by_name(make: Any, name: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        make()

    (problem,) = refused.value.problems
    assert problem.startswith(f"{name} ")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: Settings(parallelism=8, max_parallelism=4), ("max_parallelism", "parallelism")),
        (lambda: Checkpoints(min_pause=SECOND, max_concurrent=2), ("min_pause", "max_concurrent")),
        (lambda: Checkpoints(every_during_backlog=MINUTE), ("every_during_backlog", "every")),
        (lambda: Checkpoints(every=MINUTE, every_during_backlog=SECOND), ("every_during_backlog", "every")),
        (lambda: ExponentialDelay(first=MINUTE, at_most=SECOND), ("at_most", "first")),
    ],
)
def test_what_contradicts_each_other_is_refused_by_both_names(make: Any, names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidConfig) as refused:
        make()

    (problem,) = refused.value.problems
    assert all(name in problem for name in names)


def test_unaligned_checkpoints_contradict_concurrent_ones_and_at_least_once() -> None:
    with pytest.raises(InvalidConfig) as refused:
        Checkpoints(align_at_most=SECOND, max_concurrent=2, guarantee=Guarantee.AT_LEAST_ONCE)

    later, concurrent, at_least_once = refused.value.problems
    assert "later version" in later
    assert "max_concurrent = 2" in concurrent
    assert "guarantee = AT_LEAST_ONCE" in at_least_once


@pytest.mark.parametrize(
    "make",
    [
        lambda: Settings(state="lmdb"),
        lambda: Settings(state="rocksdb"),
        lambda: Checkpoints(align_at_most=timedelta(0)),
        lambda: Checkpoints(force_unaligned=True),
        lambda: Checkpoints(compression="zstd"),
        lambda: Checkpoints(savepoints="/savepoints"),
        lambda: Buffers(debloat=Debloat()),
    ],
)
def test_what_this_version_can_not_do_is_refused_and_not_ignored(make: Any) -> None:
    with pytest.raises(InvalidConfig, match="comes with a later version"):
        make()


def test_all_mistakes_of_a_group_are_told_at_once() -> None:
    with pytest.raises(InvalidConfig) as refused:
        Checkpoints(every=timedelta(0), retained=0, max_concurrent=2, min_pause=SECOND, compression="zstd")

    assert 4 == len(refused.value.problems)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(parallelism=32_768, max_parallelism=32_768),
        Settings(checkpoints=Checkpoints(every=MS, every_during_backlog=timedelta(0), timeout=MS)),
        Settings(checkpoints=Checkpoints(max_concurrent=3, tolerable_failures=2**31 - 1, inline_below=0)),
        Settings(buffers=Buffers(per_channel=8, floating_per_gate=0, overdraft=0, records=1, flush_after=timedelta(0))),
        Settings(restart=ExponentialDelay(first=SECOND, at_most=SECOND, multiplier=1, jitter=0, attempts=1)),
        Settings(restart=FixedDelay(attempts=0, delay=timedelta(0)), stop_within=timedelta(0)),
    ],
)
def test_the_edges_of_what_is_allowed_are_allowed(settings: Settings) -> None:
    assert settings == replace(settings)


# ── mappings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_our_names_are_read_nested_and_dotted() -> None:
    expected = Settings(parallelism=4, checkpoints=Checkpoints(every=10 * SECOND, retained=3))

    assert expected == Settings.from_mapping({"parallelism": 4, "checkpoints": {"every": "10s", "retained": 3}})
    assert expected == Settings.from_mapping(
        {"parallelism": "4", "checkpoints.every": "10s", "checkpoints.retained": "3"}
    )


def test_a_file_is_read() -> None:
    settings = Settings.from_mapping(
        tomllib.loads("""
            parallelism = 2
            restart = "none"
            buffers = { per_channel = 2, overdraft = 3, bytes = "64KiB" }

            [checkpoints]
            storage = "/var/lib/scores"
            every = "10s"
            retention = "delete-on-cancellation"
            guarantee = "at_least_once"
            incremental = false

            [execution.checkpointing]
            timeout = 120_000
        """),
        source="job.toml",
    )

    assert (
        Settings(
            parallelism=2,
            restart=NoRestart(),
            buffers=Buffers(per_channel=2, overdraft=3, bytes=65_536),
            checkpoints=Checkpoints(
                storage="/var/lib/scores",
                every=10 * SECOND,
                timeout=2 * MINUTE,
                retention=Retention.DELETE_ON_CANCELLATION,
                guarantee=Guarantee.AT_LEAST_ONCE,
                incremental=False,
            ),
        )
        == settings
    )


def test_nothing_said_is_the_base() -> None:
    base = Settings(parallelism=3)

    assert Settings() == Settings.from_mapping({})
    assert base == Settings.from_mapping({}, base=base)
    assert base == Settings.from_mapping({"checkpoints": {}, "execution": {"checkpointing": {}}}, base=base)


def test_values_of_the_fields_own_types_are_taken_as_they_are() -> None:
    checkpoints = Checkpoints(every=SECOND)

    merged = Settings().merged(
        {"checkpoints": checkpoints, "restart": FixedDelay(attempts=2), "buffers.flush_after": 5 * MS}
    )

    assert (
        Settings(checkpoints=checkpoints, restart=FixedDelay(attempts=2), buffers=Buffers(flush_after=5 * MS)) == merged
    )


def test_none_undoes_what_was_said_below() -> None:
    base = Settings(checkpoints=Checkpoints(every=SECOND, storage="/x"), max_parallelism=8)

    settings = base.merged({"checkpoints.every": "none", "checkpoints.storage": "none", "max_parallelism": None})

    assert Settings() == settings


def test_all_mistakes_of_a_mapping_are_told_at_once_each_by_its_key_and_source() -> None:
    problems = problems_of(
        {
            "paralelism": 4,
            "checkpoints": {"every": "10", "retained": "many", "evry": 1},
            "taskmanager.numberOfTaskSlots": 2,
            f"{EXECUTION}min-pause": "1 s",
            f"{EXECUTION}max-concurrent-checkpoints": 2,
            "buffers.records": 0,
            "show_records": "perhaps",
            "restart": "sometimes",
        },
        source="job.toml",
    )

    told = "\n".join(problems)
    assert "paralelism (job.toml) = 4 is not a setting; the nearest is parallelism" in told
    assert "checkpoints.every (job.toml) = '10' needs a unit: '10ms', '10s', '10min'" in told
    assert "checkpoints.retained (job.toml) = 'many' must be a whole number" in told
    assert "checkpoints.evry (job.toml) = 1 is not a setting; the nearest is checkpoints.every" in told
    assert "taskmanager.numberOfTaskSlots (job.toml) = 2 means nothing here: there are no task managers" in told
    assert (
        f"{EXECUTION}min-pause (job.toml) = 1s contradicts {EXECUTION}max-concurrent-checkpoints (job.toml) = 2" in told
    )
    assert "buffers.records (job.toml) = 0 must be at least 1" in told
    assert "show_records (job.toml) = 'perhaps' must be true or false" in told
    assert "restart (job.toml) = 'sometimes' must be one of none, fixed-delay" in told
    assert 9 == len(problems)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("evry", "checkpoints.every"),
        ("every", "checkpoints.every"),
        ("checkpoints.interval", "checkpoints.every"),
        ("checkpoints.num_retained", "checkpoints.retained"),
        ("checkpoints.mode", "checkpoints.guarantee"),
        ("checkpoint.every", "checkpoints.every"),
        ("buffer.records", "buffers.records"),
        ("restart.tries", "restart.type"),
        (f"{EXECUTION}intervall", f"{EXECUTION}interval"),
        (f"{NETWORK}buffer-per-channel", f"{NETWORK}buffers-per-channel"),
        ("restart-strategy.fixed-delay.attempt", "restart-strategy.fixed-delay.attempts"),
    ],
)
def test_an_unknown_key_is_told_with_the_nearest_known_one(key: str, nearest: str) -> None:
    assert f"{key} = 'x' is not a setting; the nearest is {nearest}" == problem_of({key: "x"})


def test_a_table_where_a_value_belongs_and_the_other_way_round_are_told() -> None:
    assert "must be a table" in problem_of({"checkpoints": "10s"})
    assert "parallelism.of = 4 is not a setting" in problem_of({"parallelism": {"of": 4}})
    assert "checkpoint = {} is not a setting" in problem_of({"checkpoint": {}})
    assert "must be a whole number" in problem_of({"parallelism": [4]})
    assert "5 = 4 is not a setting" in problem_of({5: 4})  # type: ignore[dict-item]


def test_one_setting_said_twice_and_differently_is_refused() -> None:
    problem = problem_of({"checkpoints.every": "10s", f"{EXECUTION}interval": "20 s"})

    assert "checkpoints.every" in problem
    assert f"{EXECUTION}interval are one setting" in problem
    assert (
        10 * SECOND
        == Settings.from_mapping({"checkpoints.every": "10s", f"{EXECUTION}interval": 10_000}).checkpoints.every
    )


def test_a_long_value_is_cut_short_in_the_message() -> None:
    assert len(problem_of({"parallelism": "x" * 10_000})) < 200


# ── layers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_later_layers_win_and_only_the_result_is_judged() -> None:
    file = {"checkpoints": {"max_concurrent": 2, "min_pause": "1s", "every": "1min"}}

    settings = Settings.from_layers([("job.toml", file), ("-D", {"checkpoints.max_concurrent": "1"})])

    assert Checkpoints(max_concurrent=1, min_pause=SECOND, every=MINUTE) == settings.checkpoints
    assert "contradicts" in problem_of(file)


def test_mistakes_of_all_layers_are_told_together_each_with_its_source() -> None:
    with pytest.raises(InvalidConfig) as refused:
        Settings.from_layers(
            [("job.toml", {"evry": 1, "checkpoints.min_pause": "1s"}), ("-D", {"checkpoints.max_concurrent": "2"})]
        )

    unknown, contradiction = refused.value.problems
    assert "evry (job.toml)" in unknown
    assert "checkpoints.min_pause (job.toml) = 1s contradicts checkpoints.max_concurrent (-D) = 2" in contradiction


def test_assignments_are_parsed_and_what_is_none_is_told() -> None:
    assert {"a.b": "1", "c": "x=y", "d": ""} == parse_assignments(["a.b=0", "a.b = 1", "c=x=y", "d="])
    with pytest.raises(InvalidConfig, match="'parallelism' is not of the form key=value"):
        parse_assignments(["parallelism", "c=1"])


def test_an_assignment_that_changes_nothing_is_told() -> None:
    before = Settings(checkpoints=Checkpoints(every=10 * SECOND))
    asked = {"parallelism": "4", "checkpoints.every": "10s", "checkpoints.retained": "2", "buffers": {"records": 5}}
    after = before.merged(asked).merged({"parallelism": 2})  # the job says 2

    assert (
        "-D parallelism changes nothing: something above it says that parallelism is 2",
        "-D checkpoints.every changes nothing: checkpoints.every is 10s already",
    ) == changed_nothing(asked, before=before, after=after)


def test_flinks_keys_and_paired_keys_that_change_nothing_are_told_too() -> None:
    asked = {
        "restart-strategy": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        f"{EXECUTION}unaligned.enabled": "false",
        "execution.buffer-timeout.enabled": "true",
    }
    before = Settings(restart=FixedDelay(attempts=3))

    told = changed_nothing(asked, before=before, after=before)

    assert 4 == len(told)
    assert all("changes nothing" in sentence for sentence in told)


# ── restart strategies ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"restart": "none"}, NoRestart()),
        ({"restart": "default"}, None),
        ({"restart": {"type": "fixed-delay", "attempts": 3, "delay": "2s"}}, FixedDelay(attempts=3, delay=2 * SECOND)),
        ({"restart": "fixed-delay", "restart.attempts": "3"}, FixedDelay(attempts=3)),
        (
            {"restart": {"type": "failure-rate", "max_failures": 2, "interval": "5min"}},
            FailureRate(max_failures=2, interval=5 * MINUTE),
        ),
        (
            {"restart": {"type": "exponential-delay", "first": "2s", "multiplier": "2", "attempts": "none"}},
            ExponentialDelay(first=2 * SECOND, multiplier=2.0),
        ),
        ({"restart-strategy": "off"}, NoRestart()),
        ({"restart-strategy.type": "disable"}, NoRestart()),
        (
            {"restart-strategy.type": "fixeddelay", "restart-strategy.fixed-delay.delay": 500},
            FixedDelay(delay=500 * MS),
        ),
        (
            {
                "restart-strategy.type": "failurerate",
                "restart-strategy.failure-rate.max-failures-per-interval": 3,
                "restart-strategy.failure-rate.failure-rate-interval": "5 min",
                "restart-strategy.failure-rate.delay": "10 s",
            },
            FailureRate(max_failures=3, interval=5 * MINUTE, delay=10 * SECOND),
        ),
        (
            {
                "restart-strategy": {
                    "type": "exponentialdelay",
                    "exponential-delay": {
                        "initial-backoff": "2 s",
                        "max-backoff": "2 min",
                        "backoff-multiplier": 2.0,
                        "reset-backoff-threshold": "10 min",
                        "jitter-factor": 0.2,
                        "attempts-before-reset-backoff": 2**31 - 1,
                    },
                }
            },
            ExponentialDelay(first=2 * SECOND, at_most=2 * MINUTE, multiplier=2.0, reset_after=10 * MINUTE, jitter=0.2),
        ),
    ],
)
def test_a_restart_strategy_is_read(mapping: dict[str, object], expected: Restart | None) -> None:
    assert expected == Settings.from_mapping(mapping).restart


def test_fields_go_on_from_the_strategy_below_and_a_new_type_begins_afresh() -> None:
    base = Settings(restart=ExponentialDelay(first=2 * SECOND, jitter=0.5))

    assert ExponentialDelay(first=3 * SECOND, jitter=0.5) == base.merged({"restart.first": "3s"}).restart
    assert FixedDelay(attempts=3) == base.merged({"restart": "fixed-delay", "restart.attempts": 3}).restart
    assert NoRestart() == base.merged({"restart": "none"}).restart
    assert None is base.merged({"restart": "default"}).restart


def test_a_field_of_another_strategy_is_refused() -> None:
    assert "restart.first = '1s' does not belong to the restart strategy fixed-delay" == problem_of(
        {"restart": "fixed-delay", "restart.first": "1s"}
    )
    assert "does not belong to the restart strategy none" in problem_of(
        {"restart-strategy": "none", "restart-strategy.fixed-delay.attempts": 3}
    )
    # The same field name, but said of another strategy in Flink's words.
    assert "does not belong to the restart strategy failure-rate" in problem_of(
        {"restart-strategy": "failure-rate", "restart-strategy.fixed-delay.delay": "1 s"}
    )


def test_a_field_without_a_strategy_is_refused() -> None:
    assert "restart.attempts needs restart.type" in problem_of({"restart.attempts": 3})


def test_mistakes_within_a_strategy_carry_the_key_as_it_was_written() -> None:
    problems = problems_of(
        {
            "restart-strategy": "exponential-delay",
            "restart-strategy.exponential-delay.initial-backoff": "2 min",
            "restart-strategy.exponential-delay.max-backoff": "1 min",
            "restart-strategy.exponential-delay.jitter-factor": 7,
        }
    )

    jitter, backoff = problems
    prefix = "restart-strategy.exponential-delay."
    assert f"{prefix}jitter-factor = 7.0 must be at most 1.0" == jitter
    assert f"{prefix}max-backoff = 1min is below {prefix}initial-backoff = 2min; the longest" in backoff


# ── Flink's keys ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"parallelism.default": 4}, {"parallelism": 4}),
        ({"pipeline.max-parallelism": 256}, {"max_parallelism": 256}),
        ({"pipeline.max-parallelism": -1}, {"max_parallelism": None}),
        ({"state.backend.type": "hashmap"}, {"state": "memory"}),
        ({"state.backend": "hashmap"}, {"state": "memory"}),
        ({f"{EXECUTION}interval": 10_000}, {"checkpoints.every": 10 * SECOND}),
        ({f"{EXECUTION}interval": "10000"}, {"checkpoints.every": 10 * SECOND}),
        ({f"{EXECUTION}interval": "3 min"}, {"checkpoints.every": 3 * MINUTE}),
        ({f"{EXECUTION}interval": "3m"}, {"checkpoints.every": 3 * MINUTE}),
        ({f"{EXECUTION}interval": "10 seconds"}, {"checkpoints.every": 10 * SECOND}),
        (
            {f"{EXECUTION}interval": 10_000, f"{EXECUTION}interval-during-backlog": 0},
            {"checkpoints.every": 10 * SECOND, "checkpoints.every_during_backlog": timedelta(0)},
        ),
        ({f"{EXECUTION}timeout": "1 h"}, {"checkpoints.timeout": 60 * MINUTE}),
        ({f"{EXECUTION}min-pause": 500}, {"checkpoints.min_pause": 500 * MS}),
        ({f"{EXECUTION}max-concurrent-checkpoints": 3}, {"checkpoints.max_concurrent": 3}),
        ({f"{EXECUTION}tolerable-failed-checkpoints": 5}, {"checkpoints.tolerable_failures": 5}),
        ({f"{EXECUTION}num-retained": 5}, {"checkpoints.retained": 5}),
        ({"state.checkpoints.num-retained": 5}, {"checkpoints.retained": 5}),
        (
            {f"{EXECUTION}externalized-checkpoint-retention": "NO_EXTERNALIZED_CHECKPOINTS"},
            {"checkpoints.retention": Retention.NO_EXTERNALIZED_CHECKPOINTS},
        ),
        ({f"{EXECUTION}mode": "AT_LEAST_ONCE"}, {"checkpoints.guarantee": Guarantee.AT_LEAST_ONCE}),
        ({f"{EXECUTION}dir": "/x"}, {"checkpoints.storage": "/x"}),
        ({"state.checkpoints.dir": "/x"}, {"checkpoints.storage": "/x"}),
        ({f"{EXECUTION}storage": "filesystem", f"{EXECUTION}dir": "/x"}, {"checkpoints.storage": "/x"}),
        ({"state.checkpoint-storage": "jobmanager"}, {"checkpoints.storage": None}),
        ({f"{EXECUTION}create-subdir": False}, {"checkpoints.create_subdir": False}),
        ({"state.checkpoints.create-subdir": "false"}, {"checkpoints.create_subdir": False}),
        ({f"{EXECUTION}incremental": "false"}, {"checkpoints.incremental": False}),
        ({"state.backend.incremental": False}, {"checkpoints.incremental": False}),
        ({f"{EXECUTION}data-inline-threshold": "4kb"}, {"checkpoints.inline_below": 4_096}),
        ({"state.storage.fs.memory-threshold": 100}, {"checkpoints.inline_below": 100}),
        ({f"{EXECUTION}snapshot-compression": False}, {"checkpoints.compression": None}),
        ({f"{EXECUTION}unaligned": False}, {"checkpoints.align_at_most": None}),
        ({f"{EXECUTION}unaligned.enabled": "false", f"{EXECUTION}aligned-checkpoint-timeout": "30 s"}, {}),
        ({f"{EXECUTION}unaligned.forced": False}, {"checkpoints.force_unaligned": False}),
        (
            {f"{EXECUTION}unaligned.max-subtasks-per-channel-state-file": 3},
            {"checkpoints.actors_per_in_flight_file": 3},
        ),
        (
            {f"{EXECUTION}Unaligned.Max-Subtasks-per-Channel-State-File": 3},
            {"checkpoints.actors_per_in_flight_file": 3},
        ),
        ({f"{NETWORK}buffers-per-channel": 4}, {"buffers.per_channel": 4}),
        ({f"{NETWORK}floating-buffers-per-gate": 4}, {"buffers.floating_per_gate": 4}),
        ({f"{NETWORK}max-buffers-per-channel": 4}, {"buffers.most_per_channel": 4}),
        ({f"{NETWORK}max-overdraft-buffers-per-gate": 0}, {"buffers.overdraft": 0}),
        ({f"{NETWORK}buffer-debloat.enabled": "false"}, {"buffers.debloat": None}),
        ({"taskmanager.memory.segment-size": "32kb"}, {"buffers.bytes": 32_768}),
        ({"taskmanager.memory.segment-size": "1 mb"}, {"buffers.bytes": 1 << 20}),
        ({"execution.buffer-timeout.interval": "50 ms"}, {"buffers.flush_after": 50 * MS}),
        ({"execution.buffer-timeout": 0}, {"buffers.flush_after": timedelta(0)}),
        ({"execution.buffer-timeout.enabled": True, "state.changelog.enabled": "false"}, {}),
        ({"state.backend.local-recovery": False, f"{EXECUTION}checkpoints-after-tasks-finish": True}, {}),
    ],
)
def test_a_key_of_flinks_is_read(mapping: dict[str, object], expected: dict[str, object]) -> None:
    assert Settings().merged(expected) == Settings.from_mapping(mapping)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ({"state.backend": "rocksdb"}, "comes with a later version"),
        ({f"{EXECUTION}unaligned.enabled": True}, "comes with a later version"),
        ({f"{EXECUTION}unaligned.forced": True}, "comes with a later version"),
        ({f"{EXECUTION}snapshot-compression": "true"}, "comes with a later version"),
        ({f"{EXECUTION}savepoint-dir": "/x"}, "comes with a later version"),
        ({"state.savepoints.dir": "/x"}, "comes with a later version"),
        ({f"{NETWORK}buffer-debloat.enabled": True}, "comes with a later version"),
        ({f"{NETWORK}buffer-debloat.target": "1 s"}, "comes with a later version"),
        ({"buffers": {"debloat": {"target": "1s"}}}, "comes with a later version"),
        ({"state.changelog.enabled": True}, "comes with a later version"),
        ({"state.backend.changelog.storage": "filesystem"}, "comes with a later version"),
        ({"dstl.dfs.base-path": "/x"}, "comes with a later version"),
        ({"state.backend.local-recovery": True}, "comes with a later version"),
        ({f"{EXECUTION}local-backup.enabled": True}, "comes with a later version"),
        ({"taskmanager.state.local.root-dirs": "/x"}, "comes with a later version"),
        ({f"{EXECUTION}unaligned.interruptible-timers.enabled": True}, "come with a later version"),
        ({"execution.savepoint-restore-mode": "CLAIM"}, "means nothing here"),
        ({"execution.state-recovery.path": "/x"}, "--from"),
        ({f"{EXECUTION}write-buffer-size": 4_096}, "means nothing here"),
        ({"state.storage.fs.write-buffer-size": 4_096}, "means nothing here"),
        ({f"{EXECUTION}checkpoints-after-tasks-finish": False}, "is not possible"),
        ({f"{EXECUTION}cleaner.parallel-mode": False}, "is not possible"),
        ({"execution.buffer-timeout.enabled": False}, "is not possible"),
        ({f"{NETWORK}fraction": 0.1}, "travel by reference"),
        ({"taskmanager.network.request-backoff.initial": 100}, "means nothing here"),
        ({"taskmanager.network.detailed-metrics": True}, "is not possible"),
        ({"taskmanager.memory.min-segment-size": 256}, "means nothing here"),
        ({"jobmanager.execution.failover-strategy": "region"}, "restarts the whole job"),
        ({"jobmanager.rpc.address": "localhost"}, "there is no job manager"),
        ({"high-availability": "zookeeper"}, "means nothing here"),
        ({"kubernetes.cluster-id": "a"}, "means nothing here"),
        ({"pipeline.auto-watermark-interval": 200}, "come with a later version"),
        ({"state.latency-track.keyed-state-enabled": True}, "is not possible"),
        ({"metrics.reporters": "prom"}, "means nothing here"),
    ],
)
def test_a_key_of_flinks_that_can_not_be_honoured_is_refused_by_name_with_the_reason(
    mapping: dict[str, object], why: str
) -> None:
    problem = problem_of(mapping, source="flink.yaml")

    (key,) = mapping
    assert problem.startswith(f"{key}")
    assert "(flink.yaml)" in problem
    assert why in problem


def test_unaligned_with_more_than_one_concurrent_checkpoint_is_refused_in_flinks_words() -> None:
    problems = problems_of(
        {
            f"{EXECUTION}unaligned.enabled": True,
            f"{EXECUTION}aligned-checkpoint-timeout": "30 s",
            f"{EXECUTION}max-concurrent-checkpoints": 2,
            f"{EXECUTION}mode": "AT_LEAST_ONCE",
        }
    )

    assert any(
        f"{EXECUTION}unaligned.enabled = 30s contradicts {EXECUTION}max-concurrent-checkpoints = 2" in problem
        for problem in problems
    )
    assert any(f"contradicts {EXECUTION}mode = AT_LEAST_ONCE" in problem for problem in problems)


@pytest.mark.parametrize(
    ("mapping", "complaint"),
    [
        ({f"{EXECUTION}storage": "filesystem"}, "needs a folder"),
        ({f"{EXECUTION}storage": "jobmanager", f"{EXECUTION}dir": "/x"}, "contradicts"),
        ({f"{EXECUTION}storage": "tape"}, "must be jobmanager or filesystem"),
        ({"checkpoints.storage": "/x", f"{EXECUTION}dir": "/y"}, "are one setting"),
        ({"checkpoints.align_at_most": "none", f"{EXECUTION}unaligned.enabled": False}, "are one setting"),
        ({f"{EXECUTION}interval": "ten"}, "a number of milliseconds"),
        ({f"{EXECUTION}interval": "10 fortnights"}, "none of ms, s, min, h, d"),
        ({f"{EXECUTION}interval": "none"}, "a number of milliseconds"),
        ({f"{EXECUTION}data-inline-threshold": "4 stone"}, "none of b, kb, mb"),
        ({f"{EXECUTION}incremental": "maybe"}, "must be true or false"),
        ({f"{EXECUTION}unaligned.enabled": "maybe"}, "must be true or false"),
        ({"state.backend": "filesystem"}, "must be one of hashmap"),
        ({"restart-strategy": "fall-back"}, "must be one of none"),
    ],
)
def test_what_flinks_keys_say_wrongly_is_told(mapping: dict[str, object], complaint: str) -> None:
    assert complaint in problem_of(mapping)


def test_a_folder_named_by_a_later_layer_is_enough() -> None:
    layers: list[tuple[str, dict[str, object]]] = [
        ("flink.yaml", {f"{EXECUTION}storage": "filesystem"}),
        ("-D", {"checkpoints.storage": "/x"}),
    ]

    assert "/x" == Settings.from_layers(layers).checkpoints.storage


# ── the table, and telling ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_table_holds_each_field_once() -> None:
    groups = (Settings, Checkpoints, Buffers, Debloat, NoRestart, FixedDelay, FailureRate, ExponentialDelay)
    declared = sorted(
        (group.group, field.name)
        for group in groups
        for field in fields(group)
        if not (group is Settings and field.name in {"checkpoints", "buffers"})
    )

    assert declared == sorted((knob.group, knob.field) for knob in KNOBS)


def test_every_key_of_flinks_leads_somewhere() -> None:
    for alias, key in ALIASES.items():
        assert alias not in FLINK
        assert key in {*FLINK, *PAIRED, *FIXED} or "means nothing here" in problem_of({key: "x"})
    assert len(known_flink_keys()) > 80


def test_all_settings_are_listed_with_default_and_flinks_keys() -> None:
    listed = {(setting.name, setting.strategy): setting for setting in known_settings()}

    assert len(KNOBS) == len(listed)
    every = listed["checkpoints.every", ""]
    assert ("none", (f"{EXECUTION}interval",), "") == (every.default, every.flink, every.later)
    assert "20KiB" == listed["checkpoints.inline_below", ""].default
    assert "1.5" == listed["restart.multiplier", "exponential-delay"].default
    assert "default" == listed["restart", ""].default
    assert "state.backend" in listed["state", ""].flink
    assert "later version" in listed["state", ""].later
    assert all(setting.says for setting in listed.values())


durations = st.integers(1, 10**9).map(lambda ms: ms * MS)
strategies = st.one_of(
    st.none(),
    st.just(NoRestart()),
    st.builds(FixedDelay, attempts=st.integers(0, 99), delay=durations),
    st.builds(FailureRate, max_failures=st.integers(1, 99), interval=durations, delay=durations),
    st.builds(
        ExponentialDelay,
        first=st.just(MS),
        at_most=durations,
        multiplier=st.floats(1, 10),
        jitter=st.floats(0, 1),
        attempts=st.none() | st.integers(1, 99),
    ),
)


@given(
    st.builds(
        Settings,
        parallelism=st.integers(1, 128),
        max_parallelism=st.none() | st.integers(128, 32_768),
        restart=strategies,
        show_records=st.booleans(),
        checkpoints=st.builds(
            Checkpoints,
            storage=st.none() | st.sampled_from(["/var/lib/a b", "s3://bucket/x=y", "file:///x"]),
            every=st.none() | durations,
            retained=st.integers(1, 99),
            retention=st.sampled_from(Retention),
            guarantee=st.sampled_from(Guarantee),
            inline_below=st.integers(0, 1 << 20),
        ),
        buffers=st.builds(Buffers, bytes=st.integers(1, 1 << 40), flush_after=durations),
    )
)
def test_settings_come_back_from_their_text(settings: Settings) -> None:
    assert settings == Settings.from_mapping(as_mapping(settings))
    assert settings == Settings.from_mapping(as_mapping(settings), base=Settings(restart=FixedDelay(attempts=7)))


@given(
    st.dictionaries(
        st.text(max_size=30),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=5,
    )
)
def test_whatever_a_mapping_holds_it_is_read_or_refused(mapping: dict[str, object]) -> None:
    assert "" not in complaints_about(mapping)


@given(
    st.sampled_from([*(knob.name for knob in KNOBS), *known_flink_keys()]),
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.binary(max_size=3),
        st.lists(st.integers(), max_size=2),
        st.timedeltas(),
    ),
)
def test_whatever_value_a_known_key_has_it_is_read_or_refused(key: str, value: object) -> None:
    assert all(key in problem for problem in complaints_about({key: value}))
