"""Take, process, flush: the loop of an actor.

An actor is one coroutine with a mailbox, a chain of synchronous operators, perhaps a source or an async lane at its
head, and outputs or a sink at its end.  It does one thing at a time, so nothing here needs a guard.

Batches take the synchronous road.  Everything else (barriers, commits, the end) is rare and takes the careful road: the
machine ``protocol.alignment`` decides, this module carries out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio

from actorflow.abc.connectors import Sink, SinkWriter
from actorflow.abc.state import StateBackend
from actorflow.abc.world import World
from actorflow.dataflow.chaining import Chain
from actorflow.errors import AbortReason, ActorflowError, OperatorFailed
from actorflow.model import journal
from actorflow.model.elements import Barrier, Batch, CancelMarker, EndOfInput
from actorflow.model.ids import ActorId
from actorflow.model.manifest import Redistribution
from actorflow.protocol import alignment as align
from actorflow.protocol.fencing import CommitPermit
from actorflow.protocol.lifecycle import ActorStatus
from actorflow.runtime.async_lane import AsyncLane
from actorflow.runtime.committer import Committer
from actorflow.runtime.mailbox import Channel, Mailbox
from actorflow.runtime.output import Output
from actorflow.runtime.pace import breathe
from actorflow.runtime.sheltered import CLOSE_WITHIN_S
from actorflow.runtime.snapshots import Instant
from actorflow.runtime.source_reader import SourceReader

__all__ = (
    "COMMITTABLES",
    "IN_FLIGHT",
    "SPLITS",
    "Actor",
    "Ask",
    "CheckpointDone",
    "Drain",
    "Inject",
    "Reports",
)

SPLITS = "actorflow.splits"
"""The list state in which a source keeps its splits and their positions."""

IN_FLIGHT = "actorflow.in_flight"
"""The list state in which an async lane keeps the inputs of its unfinished calls."""

COMMITTABLES = "actorflow.committables"
"""The list state in which a sink keeps what it prepared and nobody is known to have committed."""


@dataclass(frozen=True, slots=True)
class Inject:
    """Control mail for a source: begin this checkpoint here."""

    barrier: Barrier
    halt: bool = False


@dataclass(frozen=True, slots=True)
class CheckpointDone:
    """Control mail: a checkpoint completed (``permit``) or was aborted (``None``)."""

    checkpoint_id: int
    permit: CommitPermit | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """Control mail for a source: end here, for good."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Control mail: do this between two batches, as no two methods of a sink's writer may run at the same time."""

    function: Callable[[], Awaitable[None]]


class Reports(Protocol):
    """Whom an actor tells what became of it."""

    def took_snapshot(self, actor: Actor, instant: Instant) -> None: ...

    def declined(self, actor: ActorId, checkpoint_id: int, reason: AbortReason, detail: str = "") -> None: ...

    def ended(self, actor: ActorId) -> None: ...

    def committed(self, actor: ActorId, checkpoint_id: int) -> None: ...


@dataclass(slots=True, kw_only=True)
class Actor:
    """One running subtask of a chain."""

    id: ActorId
    operators: tuple[str, ...]
    world: World
    chain: Chain
    backend: StateBackend
    mailbox: Mailbox
    output: Output
    alignment: align.Alignment
    reports: Reports
    flush_after_ms: int
    records_per_batch: int
    reader: SourceReader | None = None
    lane: AsyncLane | None = None
    sink: Sink[Any] | None = None
    committer: Committer | None = None
    writer: SinkWriter[Any] | None = None
    has_side_outputs: bool = False
    restored_finished: bool = False
    restored_committables: list[Any] = field(default_factory=list)
    status: ActorStatus = ActorStatus.CREATED
    records_in: int = 0
    records_handed: int = 0
    open_inputs: int = 0
    _rest: list[list[Any]] = field(default_factory=list)
    _halted_at: int | None = None
    _input_ended: bool = False
    _filling_since_ms: int | None = None
    _channels: dict[Any, Channel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open_inputs = len(self.mailbox.channels)
        self._channels = {channel.id: channel for channel in self.mailbox.channels}
        for channel in self.output.all_channels:
            channel.writer = self.mailbox.signal

    @property
    def records_written(self) -> int:
        """How many records its sink was given."""
        return self.records_handed + self.chain.given_to_each

    # ── life ─────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Run until cancelled; what fails in an operator's code is raised with operator, subtask, key and record."""
        try:
            if self.reader is not None:
                self.reader.open(finished=self.restored_finished)
            self.status = ActorStatus.RUNNING
            self.world.observer.announce(journal.ActorStarted(actor=str(self.id)))
            if self.restored_finished:
                await self._end_of_input(restored=True)
            elif self.reader is None and self.open_inputs == 0:
                await self._end_of_input()
            await self._loop()
        except ActorflowError as error:
            self.status = ActorStatus.FAILED
            self._announce_failure(error)
            raise
        except Exception as error:
            self.status = ActorStatus.FAILED
            failure = OperatorFailed(self.operators[-1], self.id.subtask, cause=f"{type(error).__name__}: {error}")
            self._announce_failure(failure, type(error).__name__)
            raise failure from error

    @property
    def unheard(self) -> ActorflowError | None:
        """What a pump of the source or a call in the lane raised while this actor was being cancelled."""
        found = None if self.reader is None else self.reader.unheard
        return found if found is not None or self.lane is None else self.lane.unheard

    def _announce_failure(self, error: ActorflowError, cause: str | None = None) -> None:
        operator = error.operator if isinstance(error, OperatorFailed) else self.operators[0]
        origin = error.__cause__
        self.world.observer.announce(
            journal.ActorFailed(
                operator=operator,
                subtask=self.id.subtask,
                cause=cause or type(origin if origin is not None else error).__name__,
                detail=str(error),
            )
        )

    async def close(self) -> None:
        """Close the sink and the operators; bounded, and not cut short by the cancellation that led here."""
        with anyio.move_on_after(CLOSE_WITHIN_S, shield=True) as scope:
            try:
                if self.writer is not None:
                    await self.writer.close()
            finally:
                try:
                    self.chain.close()
                finally:
                    self.backend.close()
                    self.status = ActorStatus.CLOSED
        if scope.cancelled_caught:
            self.world.observer.announce(
                journal.FellBack(
                    subject=f"closing {self.operators[-1]}/{self.id.subtask}",
                    wanted="a clean close",
                    taken="left alone",
                    why=f"it took longer than {CLOSE_WITHIN_S:g} s",
                )
            )

    # ── the loop ─────────────────────────────────────────────────────────────────────────────

    async def _loop(self) -> None:
        mailbox, output, clock, chain = self.mailbox, self.output, self.world.clock, self.chain
        control, signal, take = mailbox.control, mailbox.signal, mailbox.try_take
        lane, reader, rest = self.lane, self.reader, self._rest
        load, actor, operators = self.world.load, self.id, self.operators  # a simulated world makes batches slow
        process, process_values, has_side = chain.process, chain.process_values, self.has_side_outputs
        write = None if self.writer is None else self.writer.write
        if self.writer is not None and chain.takes_each:
            chain.writer = self.writer
        size = self.records_per_batch
        turned = False
        while True:
            if control and not rest:
                await self._on_control(control.popleft())
                continue
            if output.remainder:
                output.repay()
            busy = False
            outputs: list[Any] | None = None
            if output.remainder:
                pass  # nothing new before what is in hand has found its place
            elif lane is not None and (ready := lane.take_ready()):
                outputs = process_values(ready)
            elif lane is not None and not lane.has_room:
                # A barrier with nothing before it does not wait for somebody's slow service.
                if (taken := mailbox.try_take_control()) is not None:
                    busy = True
                    await self._on_element(*taken)
            elif rest:
                records = rest.pop()
                if load is not None and (weight := load.before_batch(actor, operators)) is not None:
                    await weight
                outputs = process_values(records)
            elif reader is not None:
                chunk = reader.try_take() if self._halted_at is None else None
                if chunk is not None:
                    records = chunk.records
                    busy = True
                    if records:
                        self.records_in += len(records)
                        if len(records) > size:
                            records = self._cut(records)
                        if load is not None and (weight := load.before_batch(actor, operators)) is not None:
                            await weight
                        outputs = process_values(records)
                elif self._halted_at is None and not self._input_ended and reader.has_ended:
                    await self._end_of_input()
                    busy = True
            elif (taken := take()) is not None:
                channel, element = taken
                busy = True
                if type(element) is not Batch:
                    await self._on_element(channel, element)
                else:
                    self.records_in += len(element.values)
                    if load is not None and (weight := load.before_batch(actor, operators)) is not None:
                        await weight
                    if lane is not None and channel.role == 0:
                        lane.admit(element)
                    else:
                        outputs = process(element, channel.role)
            if outputs is not None:
                turned = True
                if outputs:
                    if write is None:
                        output.emit(outputs)
                    else:
                        try:
                            await write(outputs)
                        except ActorflowError as error:
                            self._note_sink(error)
                            raise
                        except Exception as error:
                            raise self._sink_failed(error, "writing") from error
                        self.records_handed += len(outputs)
                if has_side:
                    self._deliver_sides()
            elif not busy:
                if turned:
                    # One more turn before it waits: what this actor made room for, or gave, is answered within it, so
                    # that a pipeline under load goes round the loop half as often.
                    turned = False
                    await breathe()
                elif output.remainder:
                    await signal.wait()  # a buffer that waits for company is best filled while there is no room for it
                elif reader is not None and reader.is_refilling:
                    reader.is_refilling = False
                    await breathe()
                elif output.is_filling:
                    output.flush()
                elif self._lane_ran_dry():
                    await self._end_of_input()
                else:
                    await signal.wait()
                continue
            if clock.slice_is_over():
                self._flush_in_time(clock.now_ms())
                await breathe()

    def _flush_in_time(self, now_ms: int) -> None:
        """Under steady input nothing is ever idle; what fills slowly leaves after ``flush_after`` all the same."""
        if not self.output.is_filling:
            self._filling_since_ms = None
        elif self._filling_since_ms is None:
            self._filling_since_ms = now_ms
        elif now_ms - self._filling_since_ms >= self.flush_after_ms:
            self._filling_since_ms = None
            self.output.flush()

    def _cut(self, records: list[Any]) -> list[Any]:
        """Cut a source's chunk into batches; return the first, keep the others, last one first.

        A barrier falls behind all of them, because the chunk's position does.
        """
        size = self.records_per_batch
        self._rest.extend(records[start : start + size] for start in range(size, len(records), size))
        self._rest.reverse()
        return records[:size]

    async def _deliver(self, values: list[Any]) -> None:
        if values:
            if self.writer is not None:
                await self._guard_sink(self.writer.write(values), "writing")
                self.records_handed += len(values)
            else:
                self.output.emit(values)
        self._deliver_sides()

    def _deliver_sides(self) -> None:
        side = self.chain.take_side()
        if side:
            for tag, records in side.items():
                self.output.emit_side(tag, records)

    # ── the careful road ─────────────────────────────────────────────────────────────────────

    async def _on_control(self, mail: Any) -> None:
        match mail:
            case Inject(barrier, halt):
                if halt:
                    self._halted_at = barrier.checkpoint_id
                await self._carry_out(self.alignment.on(align.BarrierInjected(barrier)))
            case CheckpointDone(checkpoint_id, None):
                if checkpoint_id == self._halted_at:
                    self._halted_at = None  # the last checkpoint failed, so the job goes on
                await self._carry_out(self.alignment.on(align.CheckpointAborted(checkpoint_id)))
                self.chain.on_aborted(checkpoint_id)
            case CheckpointDone(checkpoint_id, _):
                if self.committer is not None:
                    await self.committer.commit()
                self.chain.on_completed(checkpoint_id)
                self.reports.committed(self.id, checkpoint_id)
            case Drain():
                if self.reader is not None:
                    self.reader.cut()
            case Ask(function):
                await function()
            case _:  # pragma: no cover
                raise AssertionError(f"{self.id} got {mail!r}")

    async def _on_element(self, channel: Channel, element: Any) -> None:
        match element:
            case Barrier():
                self.world.observer.announce(
                    journal.BarrierArrived(
                        checkpoint=element.checkpoint_id, actor=str(self.id), channel=str(channel.id)
                    )
                )
                await self._carry_out(self.alignment.on(align.BarrierArrived(channel.id, element)))
            case CancelMarker(checkpoint_id):
                await self._carry_out(self.alignment.on(align.CancelArrived(channel.id, checkpoint_id)))
            case EndOfInput():
                self.open_inputs -= 1
                if self.open_inputs == 0 and not self._input_ended:
                    await self._end_of_input()
            case _:  # pragma: no cover
                raise AssertionError(f"{self.id} got {element!r} from {channel.id}")

    async def _carry_out(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case align.BlockChannel(channel):
                    self.mailbox.block(self._channels[channel])
                case align.ResumeChannel(channel):
                    self.mailbox.resume(self._channels[channel])
                case align.ResumeAllChannels():
                    for one in self.mailbox.channels:
                        self.mailbox.resume(one)
                case align.StartAlignment(checkpoint_id):
                    self.world.observer.announce(journal.AlignmentStarted(checkpoint=checkpoint_id, actor=str(self.id)))
                case align.ForwardBarrier(barrier):
                    self.output.control(barrier)
                case align.ForwardCancel(checkpoint_id):
                    self.output.control(CancelMarker(checkpoint_id))
                case align.Decline(checkpoint_id, reason):
                    self.reports.declined(self.id, checkpoint_id, reason)
                case align.TakeSnapshot(barrier):
                    await self._take_snapshot(barrier)
                case _:  # pragma: no cover
                    raise AssertionError(f"{self.id} can't carry out {effect!r}")

    async def _take_snapshot(self, barrier: Barrier) -> None:
        checkpoint_id = barrier.checkpoint_id
        if self.writer is not None and self.committer is None:
            # An at-least-once sink must have delivered everything before the barrier, or the checkpoint fails.
            await self._guard_sink(self.writer.flush(), "flushing")
        started = self.world.clock.now_us()
        self.chain.on_snapshot(checkpoint_id)
        lists = list(self.chain.list_states())
        instant = Instant(barrier=barrier, finished=self._input_ended, keyed=self.backend.freeze(), lists=lists)
        if self.reader is not None:
            lists.append((self.operators[0], SPLITS, Redistribution.UNION, self.reader.elements()))
        if self.lane is not None:
            lists.append((self.operators[0], IN_FLIGHT, self.lane.redistribution, self.lane.inputs()))
        if self.committer is not None:
            pending = self.committer.prepare(checkpoint_id)
            lists.append((self.operators[-1], COMMITTABLES, Redistribution.SPLIT, pending))
            instant.rested = self.committer.rested
        self.world.observer.announce(
            journal.SnapshotTaken(
                checkpoint=checkpoint_id, actor=str(self.id), instant_us=self.world.clock.now_us() - started
            )
        )
        self.reports.took_snapshot(self, instant)

    async def _guard_sink(self, doing: Awaitable[None], what: str) -> None:
        try:
            await doing
        except ActorflowError as error:
            self._note_sink(error)
            raise
        except Exception as error:
            raise self._sink_failed(error, what) from error

    def _note_sink(self, error: ActorflowError) -> None:
        error.add_note(f"operator {self.operators[-1]!r}, subtask {self.id.subtask}")

    def _sink_failed(self, error: Exception, what: str) -> OperatorFailed:
        return OperatorFailed(
            self.operators[-1], self.id.subtask, cause=f"{what} raised {type(error).__name__}: {error}"
        )

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def _lane_ran_dry(self) -> bool:
        return self.lane is not None and self.lane.is_empty and self.open_inputs == 0 and not self._input_ended

    async def _end_of_input(self, *, restored: bool = False) -> None:
        """All inputs ended: finish the operators once, pass the end on, and stay for barriers."""
        if self.lane is not None and not self.lane.is_empty:
            return  # the loop comes back when the last call has left the lane
        self._input_ended = True
        if not restored:
            await self._deliver(self.chain.finish())
            if self.writer is not None:
                await self._guard_sink(self.writer.flush(), "flushing")
        if self.committer is not None:
            self.committer.finished()
        self.output.control(EndOfInput())
        self.status = ActorStatus.FINISHED
        self.world.observer.announce(journal.ActorFinished(actor=str(self.id)))
        self.reports.ended(self.id)
