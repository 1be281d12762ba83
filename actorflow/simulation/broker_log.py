"""What is in one partition of a topic, and how much of it may a committed reader see?

Entries are records, or marks that say how a transaction ended; both have offsets.  A committed reader stops before the
first record of the oldest transaction that is open (the *stable end*), and steps over marks and over what was
aborted.

A log can be cut at its end (its leader lost what it had confirmed) and at its beginning (retention).  After a cut at
its end a new leader begins, with the next epoch: that is how a reader who was further finds out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from actorflow.simulation.broker_seam import Fetched, LogTruncated, Message, Offsets, Record

__all__ = ("Log",)


@dataclass(frozen=True, slots=True)
class _Entry:
    timestamp_ms: int
    leader_epoch: int
    transaction: int  # whose it is; 0 is nobody's
    message: Message | None  # without one it is the mark of a transaction's end


class Log:
    """One partition; ``name`` is ``topic/partition``."""

    def __init__(self, name: str) -> None:
        self.name, self.leader_epoch = name, 0
        self._first = 0
        self._entries: list[_Entry] = []
        self._leaders: list[tuple[int, int]] = [(0, 0)]  # (epoch, the first offset under it)
        self._open: dict[int, int] = {}  # transaction → offset of its first record
        self._aborted: dict[int, None] = {}
        self._to_come: deque[tuple[int, Message]] = deque()

    # ── writing ──

    @property
    def end(self) -> int:
        """The offset of the next entry."""
        return self._first + len(self._entries)

    def append(self, messages: list[Message], at_ms: int, transaction: int = 0) -> int:
        """Add records; return the first one's offset."""
        offset = self.end
        if transaction:
            self._open.setdefault(transaction, offset)
        self._entries += [_Entry(at_ms, self.leader_epoch, transaction, message) for message in messages]
        return offset

    def mark(self, transaction: int, at_ms: int, *, committed: bool) -> None:
        """Note how a transaction ended."""
        self._open.pop(transaction, None)
        if not committed:
            self._aborted[transaction] = None
        self._entries.append(_Entry(at_ms, self.leader_epoch, transaction, None))

    def schedule(self, at_ms: int, message: Message) -> None:
        """Let a record come at a time; times must not go back."""
        assert not self._to_come or self._to_come[-1][0] <= at_ms, "records come in the order of their times"
        self._to_come.append((at_ms, message))

    def advance(self, now_ms: int) -> None:
        """Add what has come meanwhile."""
        while self._to_come and self._to_come[0][0] <= now_ms:
            at_ms, message = self._to_come.popleft()
            self._entries.append(_Entry(at_ms, self.leader_epoch, 0, message))

    @property
    def coming(self) -> int:
        """How many records are still to come."""
        return len(self._to_come)

    # ── reading ──

    @property
    def stable_end(self) -> int:
        """Where committed readers stop."""
        return min(self._open.values(), default=self.end)

    def offsets(self) -> Offsets:
        """Where it begins and ends."""
        return Offsets(self._first, self.stable_end, self.end, self.leader_epoch)

    def read(self, offset: int, leader_epoch: int | None, most: int) -> Fetched:
        """Committed records from an offset on; raises ``LogTruncated``."""
        self._check(offset, leader_epoch)
        stable_end, first = self.stable_end, self._first
        records: list[Record] = []
        last = None
        while offset < stable_end and len(records) < most:
            entry = self._entries[offset - first]
            if entry.message is not None and entry.transaction not in self._aborted:
                message = entry.message
                records.append(Record(offset, message.value, message.key, entry.timestamp_ms))
            last = entry
            offset += 1
        epoch = leader_epoch if last is None else last.leader_epoch
        return Fetched(tuple(records), offset, epoch, stable_end, self.end)

    def _check(self, offset: int, leader_epoch: int | None) -> None:
        """Refuse an offset that this log does not have, or has no more."""
        end = self.end
        if leader_epoch is not None:
            end = min(end, self._end_of(leader_epoch))
        if self._first <= offset <= end:
            return
        holds = (
            f"it holds {self._first} to {self.end - 1}" if self._entries else f"it is empty and begins at {self.end}"
        )
        if offset < self._first:
            why = "what was there is kept no longer"
        elif offset > self.end:
            why = "what was there has been lost"
        else:
            why = f"what was there from {end} on has been lost, and something else was written there since"
        raise LogTruncated(
            f"{self.name}: there is no going on from offset {offset}: {why}; {holds}",
            offset=offset,
            first=self._first,
            end=end,
        )

    def _end_of(self, leader_epoch: int) -> int:
        return next((start for epoch, start in self._leaders if epoch > leader_epoch), self.end)

    # ── losing ──

    def count_of(self, transaction: int) -> int:
        """How many records of a transaction are here."""
        start = self._open.get(transaction)
        if start is None:
            return 0
        entries = self._entries[max(0, start - self._first) :]
        return sum(1 for entry in entries if entry.transaction == transaction and entry.message is not None)

    def lose(self, count: int, at_ms: int) -> tuple[int, int]:
        """Forget the last entries; return the offsets (first, end) that were lost.  A new leader begins."""
        old_end = self.end
        cut = max(self._first, old_end - count)
        if cut == old_end:
            return cut, cut
        lost = self._entries[cut - self._first :]
        del self._entries[cut - self._first :]
        self.leader_epoch += 1
        self._leaders = [(epoch, start) for epoch, start in self._leaders if start < cut or not start]
        self._leaders.append((self.leader_epoch, cut))
        self._open = {number: start for number, start in self._open.items() if start < cut}
        for entry in lost:  # how a transaction ended is known beside the log too, and is written again
            if entry.message is None and any(kept.transaction == entry.transaction for kept in self._entries):
                self._entries.append(_Entry(at_ms, self.leader_epoch, entry.transaction, None))
        return cut, old_end

    def trim(self, first: int) -> None:
        """Keep nothing before an offset."""
        first = min(max(first, self._first), self.end)
        del self._entries[: first - self._first]
        self._first = first
