from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from actorflow.simulation import Deadlock, Overdue, SimulatedLoop, run
from actorflow.simulation.steps import current_process
from actorflow_tests.simulation.programs import PROGRAMS, digests, trace_of

ROOT = Path(__file__).parents[2]
SEEDS = 8


def interpreters() -> list[str]:
    found: dict[str, str] = {}
    for python in (sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(11, 15))):
        if python is None:
            continue
        asked = subprocess.run(
            [python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            found.setdefault(asked.stdout, python)
    return list(found.values())


def programs_under(python: str, hash_seed: str) -> str:
    # What the programs import is pure Python, so other interpreters can borrow it from this one.
    path = os.pathsep.join([str(ROOT), str(Path(anyio.__file__).parents[1])])
    answer = subprocess.run(
        [python, "-m", "actorflow_tests.simulation.programs", str(SEEDS)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed},
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


def test_traces_are_equal_on_every_python_and_under_every_hash_seed() -> None:
    expected = digests(SEEDS)
    for number, python in enumerate(interpreters()):
        for hash_seed in ("random", "1") if number == 0 else ("7",):
            assert expected == programs_under(python, hash_seed), (python, hash_seed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_seeds_give_different_orders(name: str) -> None:
    traces = {tuple(trace_of(PROGRAMS[name], seed)) for seed in range(30)}
    assert len(traces) > 10


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_seed_gives_one_order(name: str) -> None:
    assert trace_of(PROGRAMS[name], 3) == trace_of(PROGRAMS[name], 3)


def test_anyio_run_takes_the_loop() -> None:
    async def main() -> str:
        await anyio.sleep(1_000)
        return type(asyncio.get_running_loop()).__name__

    assert anyio.run(main, backend_options={"loop_factory": lambda: SimulatedLoop(1)}) == "SimulatedLoop"


def test_a_day_of_virtual_time_passes_at_once() -> None:
    async def main() -> float:
        for _ in range(24):
            await asyncio.sleep(3_600)
        return asyncio.get_running_loop().time()

    assert run(main) == 86_400


def test_callbacks_of_one_task_keep_their_order() -> None:
    async def main() -> None:
        seen: list[tuple[int, int]] = []

        async def caller(name: int) -> None:
            for number in range(20):
                asyncio.get_running_loop().call_soon(seen.append, (name, number))
                if number % 3 == 0:
                    await asyncio.sleep(0)

        await asyncio.gather(*(caller(name) for name in range(5)))
        for name in range(5):
            assert [number for who, number in seen if who == name] == list(range(20))

    for seed in range(10):
        run(main, seed=seed)


def test_only_the_first_rounds_are_shuffled_when_asked_for_and_later_ones_are_canonical() -> None:
    async def order(rounds: int | None) -> list[list[int]]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.shuffle_rounds = None if rounds is None else loop.rounds + rounds
        seen: list[list[int]] = [[] for _ in range(10)]

        async def walker(name: int) -> None:
            for turn in range(10):
                seen[turn].append(name)
                await asyncio.sleep(0.001)

        await asyncio.gather(*(walker(name) for name in range(6)))
        return seen

    def shuffled(rounds: int | None, seed: int) -> list[bool]:
        return [names != sorted(names) for names in run(order, rounds, seed=seed)]

    for seed in range(1, 6):
        assert not any(shuffled(0, seed))
        assert all(shuffled(None, seed))
        some = run(order, 4, seed=seed)
        assert some[:2] == run(order, None, seed=seed)[:2]
        assert all(names == sorted(names) for names in some[3:])


def test_a_deadlock_names_who_waits_where_and_tells_all_stories() -> None:
    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        loop.stories.append(lambda: "once upon a time")
        other = asyncio.create_task(waits_for_ever(), name="the one that waits")
        await other

    with pytest.raises(Deadlock, match=r"(?s)the one that waits waits in wait .*waits_for_ever.*once upon a time"):
        run(main)


def test_a_program_that_takes_too_long_is_overdue() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(Overdue, match="not finished within 60 virtual seconds"):
        run(main, within=timedelta(minutes=1))


def test_time_passes_for_a_program_that_spins() -> None:
    async def main() -> float:
        async with asyncio.timeout(60):
            try:
                while True:
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                return asyncio.get_running_loop().time()

    assert run(main) == 60


def test_clean_up_runs_after_a_deadlock() -> None:
    seen: list[str] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            seen.append("cleaned up")

    with pytest.raises(Deadlock):
        run(main)
    assert seen == ["cleaned up"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: asyncio.open_connection("localhost", 80),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80),
    ],
)
def test_the_outside_is_refused_by_name(ask: object) -> None:
    async def main() -> None:
        await ask()  # type: ignore[operator]

    with pytest.raises(NotImplementedError, match="a simulated loop has no"):
        run(main)


def test_signal_handlers_are_refused() -> None:
    async def main() -> None:
        asyncio.get_running_loop().add_signal_handler(15, lambda: None)

    with pytest.raises(NotImplementedError, match="signals"):
        run(main)


def test_a_thread_that_calls_back_is_refused() -> None:
    errors: list[BaseException] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def body() -> None:
            try:
                loop.call_soon_threadsafe(lambda: None)
            except RuntimeError as error:
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()

    run(main)
    assert "to_thread" in str(errors[0])


def test_work_off_the_loop_runs_later_whole_and_on_this_thread() -> None:
    async def main() -> None:
        seen: list[str] = []

        def work() -> int:
            seen.append("work")
            return threading.get_ident()

        future = asyncio.get_running_loop().run_in_executor(None, work)
        seen.append("asked")
        assert await future == threading.get_ident()
        assert seen == ["asked", "work"]

        def failing() -> None:
            raise KeyError("no")

        with pytest.raises(KeyError):
            await asyncio.to_thread(failing)

        def stops() -> None:
            raise StopIteration

        with pytest.raises(RuntimeError):
            await asyncio.to_thread(stops)

    run(main)


def test_work_begun_and_cancelled_is_done_or_not_as_the_seed_says() -> None:
    async def main() -> bool:
        done: list[bool] = []
        future = asyncio.get_running_loop().run_in_executor(None, done.append, True)
        future.cancel()
        await asyncio.sleep(1)
        return bool(done)

    assert {run(main, seed=seed) for seed in range(20)} == {True, False}


def test_work_of_a_dying_process_is_settled_by_the_seed() -> None:
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        done: list[bool] = []
        process, context = object(), copy_context()
        context.run(current_process.set, process)
        context.run(loop.run_in_executor, None, done.append, True)
        loop.settle_work(process)
        outcome = bool(done)
        await asyncio.sleep(1)
        assert bool(done) == outcome
        return outcome

    assert {run(main, seed=seed) for seed in range(20)} == {True, False}


def test_a_paused_process_stands_still_and_loses_nothing() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        seen: list[float] = []

        async def ticks() -> None:
            while True:
                await asyncio.sleep(1)
                seen.append(loop.time())

        process, context = object(), copy_context()
        context.run(current_process.set, process)
        ticking = loop.create_task(ticks(), context=context)
        await asyncio.sleep(2.5)
        loop.pause(process)
        await asyncio.sleep(10)
        loop.resume(process)
        await asyncio.sleep(1.9)
        assert seen == [1, 2, 12.5, 13.5]
        assert loop.tasks_of(process) == [ticking]
        loop.bury(process)
        await asyncio.sleep(10)
        assert len(seen) == 4

    run(main)


def test_sets_of_tasks_are_walked_in_the_same_order() -> None:
    """R159: asyncio.wait and as_completed hand out sets."""

    async def main() -> list[str]:
        async def end(name: int) -> int:
            await asyncio.sleep(1)
            return name

        done, _ = await asyncio.wait([asyncio.create_task(end(n), name=str(n)) for n in range(50)])
        return [task.get_name() for task in done]

    assert len({tuple(run(main, seed=4)) for _ in range(20)}) == 1


def test_r129_a_cancellation_in_the_tick_in_which_a_wait_ends_is_not_lost() -> None:
    async def main(offset: int) -> None:
        async def body() -> None:
            while True:
                try:
                    async with asyncio.timeout(0.010):
                        await asyncio.sleep(0.010)
                except TimeoutError:
                    pass

        running = asyncio.create_task(body())
        await asyncio.sleep(0.090 + offset / 5_000)
        running.cancel()
        async with asyncio.timeout(1):
            await asyncio.wait([running])
        assert running.cancelled()

    for offset in range(100):
        run(main, offset, seed=offset)


def test_a_nap_ends_when_it_is_over_and_may_be_cut_short() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        seen: list[float] = []

        async def sleeper(delay: float) -> None:
            await loop.nap(delay)
            seen.append(loop.time())

        tasks = [asyncio.create_task(sleeper(delay)) for delay in (3.0, 1.0, 2.0)]
        await asyncio.sleep(1.5)
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(10)
        assert tasks[2].cancelled()
        assert not loop.unhandled
        return seen

    assert run(main) == [1.0, 3.0]


def test_debug_mode_is_as_it_was_set() -> None:
    loop = SimulatedLoop()
    assert not loop.get_debug()
    loop.set_debug(True)
    assert loop.get_debug()
    loop.set_debug(False)
    assert not loop.get_debug()
    loop.close()


def test_what_begins_while_everything_is_cancelled_ends_before_the_loop_closes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []
    kept: list[asyncio.Task[None]] = []

    async def clean_up(again: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(f"clean-up {again}")
            if again:
                kept.append(asyncio.create_task(clean_up(again - 1)))

    async def main() -> None:
        kept.append(asyncio.create_task(clean_up(3)))
        await asyncio.sleep(0)

    run(main)
    assert seen == ["clean-up 3", "clean-up 2", "clean-up 1", "clean-up 0"]
    assert all(task.done() for task in kept)
    kept.clear()
    gc.collect()
    assert "was destroyed but it is pending" not in caplog.text


def test_what_never_ends_is_dropped_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def stubborn() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        raise ValueError(task.get_name())

    loops: list[SimulatedLoop] = []
    with pytest.raises(Deadlock, match="deadlock"), asyncio.Runner(loop_factory=lambda: made(loops)) as runner:
        runner.run(main())
    assert loops[0].is_closed()
    loops.clear()
    gc.collect()
    assert "was destroyed but it is pending" not in caplog.text


def made(loops: list[SimulatedLoop]) -> SimulatedLoop:
    loops.append(SimulatedLoop())
    return loops[-1]


def test_forgotten_generators_are_closed_at_the_end() -> None:
    closed: list[int] = []

    async def numbers(name: int) -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append(name)

    generators = [numbers(name) for name in range(5)]

    async def main() -> None:
        for generator in generators:
            await anext(generator)

    run(main)
    assert closed == list(range(5))


def test_an_exception_in_a_callback_is_kept_and_told() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        told: list[dict[str, object]] = []
        loop.set_exception_handler(lambda _, context: told.append(context))
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        assert [type(context["exception"]) for context in told] == [ZeroDivisionError]
        assert told == loop.unhandled

    run(main)


def test_many_cancelled_timers_do_not_pile_up() -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        for _ in range(5_000):
            async with asyncio.timeout(100):
                await asyncio.sleep(0)
        return len(loop._timers)

    assert run(main) < 1_000


def test_a_task_factory_is_obeyed() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **options: asyncio.Task(coro, loop=loop, **options))
        assert await asyncio.create_task(asyncio.sleep(1, "slept"), name="sleeper") == "slept"

    run(main)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]
        assert await asyncio.create_task(asyncio.sleep(0, 3)) == 3

    run(main)


def test_a_closed_loop_refuses() -> None:
    loop = SimulatedLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(print)
    assert loop.is_closed()
