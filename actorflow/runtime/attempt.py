"""One incarnation of a running job: built from the plan, restored, run, and taken down again.

Everything that lives here is a child of the attempt's task group, so that cancelling the attempt ends it all and every
exception arrives somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from enum import Enum
from functools import partial
from typing import Any

import anyio

from actorflow.abc.objects import ObjectStore
from actorflow.abc.state import MISSING, StateBackend
from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.dataflow.chaining import Chain, ChainContext
from actorflow.dataflow.plan import OperatorKind, Plan, Vertex
from actorflow.errors import AbortReason, CheckpointAborted, Fenced, StorageFailed
from actorflow.model import journal
from actorflow.model.codec import Codec
from actorflow.model.elements import CheckpointKind
from actorflow.model.ids import ActorId, ChannelId
from actorflow.model.key_groups import key_group, subtask_of, token_of
from actorflow.protocol.alignment import Alignment
from actorflow.protocol.lifecycle import ActorStatus, JobStatus
from actorflow.protocol.machine import Machine
from actorflow.runtime.actor import Actor, Ask, CheckpointDone, Drain, Inject
from actorflow.runtime.async_lane import AsyncLane
from actorflow.runtime.checkpointing import Checkpointing
from actorflow.runtime.collector import Collector
from actorflow.runtime.committer import Committer
from actorflow.runtime.exchanges import make_writer, targets
from actorflow.runtime.handle import CheckpointInfo, OperatorProgress, Progress
from actorflow.runtime.mailbox import Channel, Gate, Mailbox
from actorflow.runtime.output import ExchangeWriter, Output
from actorflow.runtime.ownership import Begin, Ownership
from actorflow.runtime.restorer import Restorer
from actorflow.runtime.sheltered import CLOSE_WITHIN_S
from actorflow.runtime.sinks import open_sink, sweep_sink
from actorflow.runtime.source_reader import SourceReader, SplitAssigner
from actorflow.state.memory import MemoryBackend

__all__ = ("Attempt", "Outcome", "leaves_of")


class Outcome(Enum):
    """How an attempt ended that did not fail."""

    FINISHED = "its input is exhausted and committed"
    FINISHED_BEFORE = "it had finished in an earlier life"
    STOPPED = "it stopped with a last checkpoint"


class Attempt:
    """The actors of one attempt and what they need."""

    def __init__(
        self,
        *,
        plan: Plan,
        settings: Settings,
        world: World,
        store: ObjectStore,
        ownership: Ownership,
        begin: Begin,
        number: int,
        halted: Iterable[str],
        on_running: Callable[[], None],
        on_completed: Callable[[CheckpointInfo], None],
        is_final: Callable[[Exception], bool],
        go: Callable[[JobStatus], None],
    ) -> None:
        self._plan, self._settings, self._world = plan, settings, world
        self._store, self._ownership, self._begin, self._number = store, ownership, begin, number
        self._on_running, self._is_final = on_running, is_final
        self._halted = (*halted,)
        self._codec = Codec(plan.registry)
        self.actors: dict[ActorId, Actor] = {}
        self._assigners: dict[str, SplitAssigner] = {}
        self._outcome: Outcome | None = None
        self._over, self.gone = anyio.Event(), anyio.Event()
        self._failure: BaseException | None = None
        self.has_failed = self.left_uncommitted = False
        self._began_ms = world.clock.now_ms()
        self._phase = "the actors to be built"
        self._group: anyio.abc.TaskGroup
        self._restorer = Restorer(plan=plan, world=world, codec=self._codec, begin=begin)
        self._plan = self._restorer.plan
        self._collector = Collector(world.clock, self._records_in) if world.owns_process else None
        self._checkpointing = Checkpointing(
            plan=self._plan,
            settings=settings,
            world=world,
            store=store,
            ownership=ownership,
            begin=begin,
            codec=self._codec,
            spawn=self.spawn,
            deliver=self._deliver_checkpoint_done,
            inject=self._inject,
            on_completed=on_completed,
            on_final=self._end,
            on_failed=self._fail,
            go=go,
            collector=self._collector,
        )

    # ── run ──────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> Outcome:
        """Build, restore, open, run; return how it ended, or raise what failed."""
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as self._group:
                self._build()
                await self._start()
                await self._over.wait()
                if self._failure is None:
                    with anyio.move_on_after(CLOSE_WITHIN_S):
                        await self._checkpointing.files_settled()
                self._group.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            failure = _plain(group)
        except BaseException as error:  # a cancellation too: everything is taken down first
            failure = error
        failure = self._with_unheard(_joined(self._failure, failure))
        self.has_failed = failure is not None
        try:
            with anyio.CancelScope(shield=True):
                await self._close(failure)
        except BaseException:
            self.has_failed = True
            raise
        finally:
            if self._collector is not None:
                self._collector.end()
            self.gone.set()
        if failure is not None:
            raise failure
        assert self._outcome is not None
        return self._outcome

    async def _start(self) -> None:
        self._phase = "the state to be restored"
        await self._restorer.restore(self.actors)
        await self._open()
        if self._collector is not None:
            self._collector.begin()
            self.spawn(self._collector.run, name="collector")
        for actor in self.actors.values():
            self.spawn(actor.run, name=str(actor.id))
        self._phase = ""
        self._on_running()
        self._checkpointing.start(self.actors)
        self._ask_for_sweeps()

    def _ask_for_sweeps(self) -> None:
        """Remove what older generations left: of each sink in its first actor's turn, of the home beside everything."""
        chains: dict[str, list[Actor]] = {}
        for actor in self.actors.values():
            if actor.sink is not None:
                chains.setdefault(actor.id.operator, []).append(actor)
        for actors in chains.values():
            actors[0].mailbox.put_control(Ask(partial(sweep_sink, actors[0], actors)))
        self.spawn(self._ownership.sweep, name="sweep")

    def spawn(self, function: Callable[..., Coroutine[Any, Any, None]], *args: Any, name: str) -> None:
        """Start a child of this attempt."""
        self._group.start_soon(function, *args, name=name)

    def _records_in(self) -> int:
        return sum(actor.records_in for actor in self.actors.values())

    def _end(self, outcome_kind: CheckpointKind) -> None:
        self._outcome = Outcome.STOPPED if outcome_kind is CheckpointKind.STOP else Outcome.FINISHED
        self._over.set()

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._over.set()

    async def _close(self, failure: BaseException | None) -> None:
        """Take everything down.  When the job ends here, what was permitted is committed first."""
        ends_here = failure is None or not isinstance(failure, Exception) or self._is_final(failure)
        self._checkpointing.stop(AbortReason.JOB_ENDED if ends_here else AbortReason.JOB_RESTARTED)
        if any(isinstance(leaf, Fenced) for leaf in leaves_of(failure)):
            ends_here = False
        async with anyio.create_task_group() as closing:
            for actor in self.actors.values():
                closing.start_soon(self._close_actor, actor, ends_here, name=f"close {actor.id}")

    def _with_unheard(self, failure: BaseException | None) -> BaseException | None:
        """What children raised on their way out, on top of what ended the attempt; an end that came before stays."""
        if failure is None or not isinstance(failure, Exception | anyio.get_cancelled_exc_class()):
            return failure
        for actor in self.actors.values():
            if actor.unheard is not None:
                failure = _joined(actor.unheard, failure)
        return failure

    async def _close_actor(self, actor: Actor, ends_here: bool) -> None:
        """Close one actor.  What can't be closed is told, and changes nothing: all that had to be committed is."""
        try:
            if actor.committer is not None and ends_here:
                await self._finish_commits(actor, actor.committer)
            elif actor.committer is not None:
                actor.committer.abandon()
        except Exception as error:
            self.left_uncommitted = True
            self._tell_of_closing(actor, "what was permitted is committed by the next start", error)
        try:
            await actor.close()
        except Exception as error:
            self._tell_of_closing(actor, "left as it is", error)
        if actor.unheard is not None and not self.has_failed:
            self._tell_of_closing(actor, "left as it is", actor.unheard)

    async def _finish_commits(self, actor: Actor, committer: Committer) -> None:
        with anyio.move_on_after(CLOSE_WITHIN_S, shield=True) as limit:
            await committer.close(self._ownership.published)
        if limit.cancelled_caught:
            raise StorageFailed(f"operator {actor.operators[-1]!r}: committing took longer than {CLOSE_WITHIN_S:g} s")

    def _tell_of_closing(self, actor: Actor, taken: str, error: Exception) -> None:
        self._world.observer.announce(
            journal.FellBack(
                subject=f"closing {actor.id}",
                wanted="a clean end",
                taken=taken,
                why=f"{type(error).__name__}: {error}",
            )
        )

    # ── build ────────────────────────────────────────────────────────────────────────────────

    def _build(self) -> None:
        plan, buffers = self._plan, self._settings.buffers
        mailboxes: dict[ActorId, Mailbox] = {}
        for vertex in plan.vertices:
            for subtask in range(vertex.parallelism):
                mailboxes[ActorId(vertex.name, subtask)] = Mailbox()
        gates: dict[tuple[int, ActorId], Gate] = {}
        writers: dict[ActorId, list[ExchangeWriter]] = {actor_id: [] for actor_id in mailboxes}
        for exchange in plan.exchanges:
            upstream, downstream = plan.vertices[exchange.upstream], plan.vertices[exchange.downstream]
            for subtask in range(upstream.parallelism):
                sender = ActorId(upstream.name, subtask)
                channels = []
                for target in targets(exchange.kind, subtask, upstream.parallelism, downstream.parallelism):
                    receiver = ActorId(downstream.name, target)
                    mailbox = mailboxes[receiver]
                    gate = gates.setdefault((exchange.index, receiver), Gate(buffers.floating_per_gate))
                    channel = Channel(
                        ChannelId(exchange.index, sender, receiver),
                        mailbox,
                        gate,
                        exclusive=buffers.per_channel,
                        most=buffers.most_per_channel,
                        role=exchange.role,
                    )
                    mailbox.channels.append(channel)
                    channels.append(channel)
                writers[sender].append(
                    make_writer(
                        exchange,
                        sender,
                        channels,
                        records=buffers.records,
                        max_parallelism=downstream.max_parallelism,
                        world=self._world,
                        show_records=self._settings.show_records,
                        names=self._plan.registry,
                    )
                )
        for vertex in plan.vertices:
            for subtask in range(vertex.parallelism):
                actor_id = ActorId(vertex.name, subtask)
                self.actors[actor_id] = self._actor(vertex, actor_id, mailboxes[actor_id], Output(writers[actor_id]))

    def _actor(self, vertex: Vertex, actor_id: ActorId, mailbox: Mailbox, output: Output) -> Actor:
        settings, world = self._settings, self._world
        backend: StateBackend = MemoryBackend(self._codec)
        chain = Chain(
            vertex,
            ChainContext(
                subtask=actor_id.subtask,
                backend=backend,
                codec=self._codec,
                clock=world.clock,
                show_records=settings.show_records,
            ),
        )
        first, last = vertex.operators[0], vertex.operators[-1]
        reader = lane = None
        if first.kind is OperatorKind.READ:
            assigner = self._assigners.get(first.name)
            if assigner is None:
                assigner = self._assigners[first.name] = SplitAssigner(first.source, world, first.name)
            reader = SourceReader(
                first.source,
                assigner,
                operator=first.name,
                subtask=actor_id.subtask,
                parallelism=vertex.parallelism,
                world=world,
                signal=mailbox.signal,
                spawn=self.spawn,
            )
            if first.name in self._halted:
                reader.halt()
        elif chain.async_operator is not None:
            lane = AsyncLane(
                chain.async_operator,
                operator=first.name,
                subtask=actor_id.subtask,
                signal=mailbox.signal,
                spawn=self.spawn,
                clock=world.clock,
                show_records=settings.show_records,
            )
        return Actor(
            id=actor_id,
            operators=tuple(operator.name for operator in vertex.operators),
            world=world,
            chain=chain,
            backend=backend,
            mailbox=mailbox,
            output=output,
            alignment=Alignment(
                [channel.id for channel in mailbox.channels],
                settings.checkpoints.guarantee,
            ),
            reports=self._checkpointing,
            flush_after_ms=round(settings.buffers.flush_after.total_seconds() * 1_000),
            # Where nothing is handed over, a batch is no buffer: four times as many records amortize its price better.
            records_per_batch=settings.buffers.records * (1 if vertex.outputs else 4),
            has_side_outputs=bool(vertex.tags),
            reader=reader,
            lane=lane,
            sink=last.sink if last.kind is OperatorKind.WRITE else None,
        )

    async def _open(self) -> None:
        """Open everything before the first record: what can't work is refused here."""
        for actor in self.actors.values():
            self._phase = f"actor {actor.id} in open"
            actor.status = ActorStatus.OPENING
            actor.chain.open()
            if actor.sink is not None:
                await open_sink(
                    actor,
                    generation=self._begin.generation,
                    home=self._ownership.identity,
                    parallelism=self._plan.parallelism_of(actor.id.operator),
                    checkpoints=self._settings.checkpoints,
                    permit=self._begin.permit,
                    restored_checkpoint=self._begin.restored_checkpoint,
                    spawn=self.spawn,
                )
                self._say_when_it_commits(actor)
        for name, assigner in self._assigners.items():
            self._phase = f"source {name} in discover"
            await assigner.discover()
            self.spawn(assigner.keep_discovering, name=f"{name} looks for splits")

    def _say_when_it_commits(self, actor: Actor) -> None:
        """Without periodic checkpoints an exactly-once sink shows nothing before the end; say it early."""
        if (
            self._settings.checkpoints.every is None
            and actor.committer is not None
            and actor.id.subtask == 0
            and self._number == 1
        ):
            self._world.observer.announce(
                journal.SettingIgnored(
                    setting="checkpoints.every",
                    why=f"it is not set, so operator {actor.operators[-1]!r}, which commits with checkpoints, commits "
                    "at those that are asked for and at the end",
                )
            )

    # ── between checkpointing and actors ─────────────────────────────────────────────────────

    def _inject(self, inject: Inject) -> None:
        for actor in self.actors.values():
            if not actor.mailbox.channels:
                actor.mailbox.put_control(inject)

    def _deliver_checkpoint_done(self, done: CheckpointDone) -> None:
        for actor in self.actors.values():
            if done.permit is not None and actor.committer is not None:
                actor.committer.permit(done.permit)
            actor.mailbox.put_control(done)

    # ── what the supervisor asks for ─────────────────────────────────────────────────────────

    async def checkpoint(self) -> CheckpointInfo:
        """Take a checkpoint and wait for it."""
        return await self._checkpointing.request(CheckpointKind.REQUESTED)

    async def stop(self, halted: dict[str, None]) -> CheckpointInfo:
        """Take the last checkpoint; sources that can't be read again give out first what they accepted.

        ``halted`` collects their names: whatever becomes of this attempt, they end because the job stops.
        """
        halted.update(dict.fromkeys(operator.name for operator in self._plan.sources() if operator.source.halt()))
        readers = self._readers(halted)
        for reader in readers:
            reader.halt()
        while not all(reader.is_drained for reader in readers):
            if self._over.is_set() or self.gone.is_set():
                raise CheckpointAborted(AbortReason.JOB_RESTARTED)
            await self._world.clock.sleep(2)
        return await self._checkpointing.request(CheckpointKind.STOP)

    def drain(self) -> None:
        """End every source here; one that can't be read again first gives out what it accepted."""
        ending = [operator.name for operator in self._plan.sources() if operator.source.halt()]
        for reader in self._readers(ending):
            reader.end()
        for actor in self.actors.values():
            if actor.reader is not None and actor.operators[0] not in ending:
                actor.mailbox.put_control(Drain())

    def _readers(self, names: Iterable[str]) -> list[SourceReader]:
        wanted = [*names]
        return [
            actor.reader for actor in self.actors.values() if actor.reader is not None and actor.operators[0] in wanted
        ]

    def query(self, state: str, key: Any) -> Any:
        """The value of a keyed state at this moment."""
        operator, _, name = state.rpartition(".")
        for vertex in self._plan.vertices:
            if any(candidate.name == operator for candidate in vertex.operators):
                break
        else:
            raise KeyError(f"no operator {operator!r} in job {self._plan.job!r}; ask for 'operator.state'")
        token = token_of(key)
        group = key_group(token, vertex.max_parallelism)
        subtask = subtask_of(group, vertex.parallelism, vertex.max_parallelism)
        actor = self.actors[ActorId(vertex.name, subtask)]
        states = actor.chain.states().get(operator, {})
        if name not in states:
            raise KeyError(f"operator {operator!r} has no keyed state {name!r}; it has {sorted(states)}")
        value = actor.backend.table(operator, name, states[name]).peek(token)
        return None if value is MISSING else self._codec.copy(value)

    @property
    def checkpoints_completed(self) -> int:
        """How many checkpoints completed in this attempt."""
        return self._checkpointing.completed_count

    @property
    def checkpoints_failed(self) -> int:
        """How many checkpoints failed in this attempt."""
        return self._checkpointing.failed_count

    def progress(self, completed_before: int, failed_before: int) -> Progress:
        """What the actors have done."""
        chains: dict[str, list[Actor]] = {}
        for actor in self.actors.values():
            chains.setdefault(actor.id.operator, []).append(actor)
        return Progress(
            records_read=sum(actor.records_in for actor in self.actors.values() if actor.reader is not None),
            records_written=sum(actor.records_written for actor in self.actors.values()),
            checkpoints_completed=completed_before + self.checkpoints_completed,
            checkpoints_failed=failed_before + self.checkpoints_failed,
            chains=tuple(
                OperatorProgress(
                    operators=actors[0].operators,
                    records_in=sum(actor.records_in for actor in actors),
                    records_out=sum(actor.output.records_out for actor in actors),
                    waiting_batches=sum(actor.mailbox.statistics()["batches"] for actor in actors),
                )
                for actors in chains.values()
            ),
        )

    def machines(self) -> list[tuple[str, Machine[Any, Any]]]:
        """What decides in this attempt, by name."""
        found = self._checkpointing.machines()
        for actor in self.actors.values():
            found.append((f"actor {actor.id} ({actor.status})", actor.alignment))
            if actor.committer is not None:
                found.append((f"commits of {actor.id}", actor.committer.machine))
        return found

    @property
    def is_running(self) -> bool:
        """Whether state is restored and all actors are open."""
        return not self._phase and not self._over.is_set()

    def waiting_for(self) -> str:
        """A sentence when the job is not simply running (R163)."""
        if self._phase:
            seconds = (self._world.clock.now_ms() - self._began_ms) / 1_000
            restored = self._begin.restored_checkpoint
            since = "" if restored is None else f", since the attempt began that goes on from checkpoint {restored}"
            return f"{self._phase} (for {seconds:.0f} s{since})"
        return self._checkpointing.waiting_for()


def leaves_of(error: BaseException | None) -> list[BaseException]:
    """The failures inside a group, however deep, each once; or the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [] if error is None else [error]
    leaves: list[BaseException] = []
    for inner in error.exceptions:
        leaves += [leaf for leaf in leaves_of(inner) if not any(leaf is other for other in leaves)]
    return leaves


def _plain(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """One failure stays itself; several stay a group, flat."""
    leaves = leaves_of(group)
    if len(leaves) == 1:
        return leaves[0]
    if all(isinstance(leaf, Exception) for leaf in leaves):
        return ExceptionGroup("several actors failed", [leaf for leaf in leaves if isinstance(leaf, Exception)])
    return BaseExceptionGroup("several actors failed", leaves)


def _joined(told: BaseException | None, raised: BaseException | None) -> BaseException | None:
    """What ended the attempt, and what was raised on top of it while it was taken down."""
    if told is None or raised is None or told is raised:
        return told if told is not None else raised
    if isinstance(raised, anyio.get_cancelled_exc_class()):
        return told
    return _plain(BaseExceptionGroup("", [told, raised]))
