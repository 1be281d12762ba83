"""Programs that know nothing of the simulated loop, and what each of them saw, in order.

Run as a script it prints the digest of every trace for some seeds, so that a test can compare interpreters.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from actorflow.abc.world import World
from actorflow.model.journal import CheckpointAcknowledged
from actorflow.simulation import SimulatedLoop, run
from actorflow.simulation.digest import journal_digest
from actorflow.simulation.weather import After, At, FailObjects, Kill, LoseAnswer, Pause, PowerCut, Weather
from actorflow.simulation.world import Ending, Universe

Program = Callable[[list[str]], Awaitable[None]]


async def asyncio_groups(seen: list[str]) -> None:
    async def child(name: int) -> None:
        try:
            for turn in range(4):
                await asyncio.sleep((name * 7 + turn) % 3 / 1_000)
                seen.append(f"{name}.{turn}")
                if (name, turn) == (5, 2):
                    raise ValueError(name)
        except asyncio.CancelledError:
            seen.append(f"{name} cancelled")
            raise
        finally:
            await asyncio.sleep(0)
            seen.append(f"{name} ends")

    try:
        async with asyncio.TaskGroup() as group:
            for name in range(12):
                group.create_task(child(name))
    except* ValueError as errors:
        seen.append(repr(errors.exceptions))


async def asyncio_timeouts(seen: list[str]) -> None:
    lock, gate = asyncio.Lock(), asyncio.Event()

    async def user(name: int) -> None:
        try:
            async with asyncio.timeout(0.004 + name / 1_000):
                async with lock:
                    seen.append(f"{name} holds")
                    await asyncio.sleep(0.002)
                await gate.wait()
                seen.append(f"{name} passes")
        except TimeoutError:
            seen.append(f"{name} too late")

    users = [asyncio.create_task(user(name)) for name in range(8)]
    await asyncio.sleep(0.007)
    gate.set()
    done, pending = await asyncio.wait(users, return_when=asyncio.FIRST_COMPLETED)
    seen.append(f"{[t.get_name() for t in done]} {[t.get_name() for t in pending]}")
    await asyncio.gather(*users)


async def asyncio_generators(seen: list[str]) -> None:
    async def numbers(name: str) -> AsyncIterator[int]:
        try:
            for number in range(10):
                await asyncio.sleep(0.001)
                yield number
        finally:
            await asyncio.sleep(0)
            seen.append(f"{name} closed")

    async def reader(name: str, until: int) -> None:
        async for number in numbers(name):
            seen.append(f"{name} {number}")
            if number == until:
                break

    await asyncio.gather(*(reader(f"r{until}", until) for until in range(1, 6)))
    await asyncio.sleep(0.01)


async def asyncio_threads(seen: list[str]) -> None:
    async def caller(name: int) -> None:
        for turn in range(3):
            seen.append(f"{name} begins {turn}")
            seen.append(await asyncio.to_thread(str.format, "{} worked {}", name, turn))

    await asyncio.gather(*(caller(name) for name in range(6)))


async def anyio_groups(seen: list[str]) -> None:
    async def child(name: int) -> None:
        try:
            await anyio.sleep(0.01)
        except anyio.get_cancelled_exc_class():
            seen.append(f"{name} cancelled")
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.001 * (name % 3))
            seen.append(f"{name} cleaned up")
            raise

    with anyio.move_on_after(0.005) as scope:
        async with anyio.create_task_group() as group:
            for name in range(10):
                group.start_soon(child, name)
    seen.append(f"cancelled {scope.cancelled_caught}")
    try:
        with anyio.fail_after(0.002):
            await anyio.sleep(1)
    except TimeoutError:
        seen.append("too late")


async def anyio_streams(seen: list[str]) -> None:
    send, receive = anyio.create_memory_object_stream[int](2)
    limit = anyio.CapacityLimiter(2)

    async def producer(name: int, mine: MemoryObjectSendStream[int]) -> None:
        async with mine:
            for item in range(5):
                async with limit:
                    await mine.send(name * 10 + item)

    async def consumer(name: str, mine: MemoryObjectReceiveStream[int]) -> None:
        async with mine:
            async for item in mine:
                seen.append(f"{name} {item}")
                await anyio.sleep(0)

    async with anyio.create_task_group() as group, send, receive:
        for name in range(3):
            group.start_soon(producer, name, send.clone())
        group.start_soon(consumer, "a", receive.clone())
        group.start_soon(consumer, "b", receive.clone())


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        asyncio_groups,
        asyncio_timeouts,
        asyncio_generators,
        asyncio_threads,
        anyio_groups,
        anyio_streams,
    )
}


def trace_of(program: Program, seed: int) -> list[str]:
    seen: list[str] = []

    async def main() -> None:
        await program(seen)
        seen.append(f"{asyncio.get_running_loop().time():.6f}")

    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed)) as runner:
        runner.run(main())
    return seen


def storm(seed: int) -> str:
    """A job in small, in bad weather, until its work is done; the digest of all that happened."""

    async def job(world: World) -> int:
        store = world.objects.open("s3://bucket/home" if seed % 2 else "/home")

        async def count(actor: int) -> None:
            done = len(await store.list(f"{actor}/"))
            for number in range(done, 6):
                while world.clock.slice_is_over():
                    await asyncio.sleep(0)
                await store.put_if_absent(f"{actor}/{number}", b"x" * int(world.entropy.uniform("size") * 100))
                await asyncio.to_thread(len, "work")
                world.observer.announce(CheckpointAcknowledged(checkpoint=number, actor=f"count/{actor}"))

        async with anyio.create_task_group() as group:
            for actor in range(4):
                group.start_soon(count, actor)
        return len(await store.list())

    async def main() -> str:
        weather: list[Weather] = [
            Kill(After("CheckpointAcknowledged", occurrence=3 + seed % 5)),
            Pause(After("WeatherStruck", {"verb": "kill"}, later_ms=2), "p", 50),
            FailObjects(At(10), "put*", count=1),
            LoseAnswer(At(20), "put*", count=1),
            PowerCut(At(40 + seed), "m1"),
        ]
        universe = Universe(seed, weather=weather)
        for life in range(20):
            process = await universe.start("p", job)
            outcome = await process.wait()
            if outcome.ending is Ending.RETURNED:
                assert outcome.value == 24, life
                break
        return journal_digest(universe.journal, visible=universe.shelf("bucket").objects.items())

    return run(main, seed=seed)


def digests(seeds: int) -> str:
    lines = [storm(seed) for seed in range(seeds)]
    for name, program in PROGRAMS.items():
        digest = hashlib.sha256()
        for seed in range(seeds):
            digest.update("\n".join(trace_of(program, seed)).encode())
        lines.append(f"{name} {digest.hexdigest()}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(digests(int(sys.argv[1])) + "\n")
