"""How are windows that slide counted, so that a record costs the same however many windows hold it?

A record is added to its *slice* alone: the piece between two neighbouring edges of windows.  What a window gives is
made out of its slices when the watermark completes it, by a *fold* that goes on from the window before (``folds.py``).

What is kept in state is, for each key, one dict: ``{start of a slice: accumulator, …, None: end of the last window that
gave its result}``.  That is all a checkpoint has to hold: folds and the calendar of what is due are made anew out of
it.  The mark under ``None`` is what must not go backwards: watermarks start anew after a restore, and a window that
has given its result does not give it again.

Results come in order of the window's end, then of the key's bytes (semantics 5.5), the same after a restore.  Firing
can stop after any number of keys, for a barrier, and go on.

Measured on the bare structure (CPython 3.11, CPU time, best of seven on a busy machine: 1,000,000 records of 100 keys,
a millisecond apart, batches of 256, watermark a second behind, one window a second; plain is a loop with panes in
dicts that gives as many results), nanoseconds per record:

| | windows of 10 slides | of 100 | 100 over 10 |
|---|---|---|---|
| plain, count | 260 | | |
| ``count()``, running total | 210 | 243 | 1.05 to 1.16 |
| ``largest()``, two stacks | 381 | 411 | 1.03 to 1.21 |

While a snapshot is written the table shares no dict, and a record costs up to three times that.

Late records follow ``lateness.py``; one that is in time for a window that has given its result gives it again.
Refuses to know keys, watermark generators and outputs: tokens come in, ``(token, window, result)`` goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from actorflow.abc.state import MISSING, KeyedTable
from actorflow.dataflow.aggregates import Aggregate
from actorflow.dataflow.due_keys import DueKeys
from actorflow.dataflow.folds import NEVER, Fold, fold_for
from actorflow.dataflow.lateness import MAX_TIME, MIN_TIME, late_by_ms
from actorflow.dataflow.windows import Sliding, Window
from actorflow.model.key_groups import bytes_of_token

__all__ = ("Firing", "Late", "Slices")

Firing = tuple[Any, Window, Any]
"""Token, window and result."""

Late = tuple[int, int]
"""The place in the batch of a record that is late, and by how many milliseconds."""

_MARK: Final = None


class Slices:
    """The sliding windows of one subtask, by event time.

    ``table`` may hold state already: then what is due is found out of it, in one walk over all keys.  ``watermark`` is
    what event time had come to when that was written (of several, the least), so that what was late stays late; bring
    time to it before anything is added, because firing may have been stopped there.
    ``copy`` copies an accumulator that is given away and could be changed in place.
    """

    __slots__ = (
        "_add",
        "_aggregate",
        "_allowed",
        "_copy",
        "_due",
        "_edge",
        "_fence",
        "_folds",
        "_kind",
        "_passed",
        "_size",
        "_slide",
        "_table",
        "_windows",
        "watermark",
    )

    def __init__(
        self,
        table: KeyedTable,
        windows: Sliding,
        aggregate: Aggregate,
        *,
        allowed_ms: int = 0,
        copy: Callable[[Any], Any] | None = None,
        watermark: int = MIN_TIME,
    ) -> None:
        self._table, self._windows, self._aggregate, self._allowed = table, windows, aggregate, allowed_ms
        self._copy = aggregate.result or (copy if aggregate.own is not None else None)
        self._add = aggregate.add
        self._size, self._slide, self._edge = windows.size_ms, windows.slide_ms, windows.edge_ms
        self._kind = fold_for(windows, aggregate)
        self._folds: dict[Any, Fold] = {}
        self._due = DueKeys(self._order)
        self.watermark = watermark
        self._passed = self._fence = windows.end_up_to(watermark + 1)
        outlived = [token for token, slices in table.items() if self._follow(token, slices)]
        for token in outlived:
            self._forget_passed(token)

    # ── records ──

    def add(
        self,
        tokens: Sequence[Any],
        values: Sequence[Any],
        times: Sequence[int],
        firings: list[Firing],
        late: list[Late],
    ) -> None:
        """Add a batch; what completed windows give again goes to ``firings``, late records to ``late``.

        Must not be called between an :meth:`advance` that was stopped and the one that ends it.
        """
        if not times:
            return
        least, fence = min(times), self._fence
        if least < fence or self._slide > self._size:
            # What has passed is taken one by one.  Complete windows hold only slices that have passed and open slices
            # only what has not, so it does not matter that those come first.
            has_gaps = self._slide > self._size
            passed = [index for index, time in enumerate(times) if has_gaps or time < fence]
            self._add_carefully(passed, tokens, values, times, firings, late)
            if len(passed) == len(times):
                return
            tokens, values, times = (_without(passed, column) for column in (tokens, values, times))
            least = min(times)
        table, plain = self._table, self._table.plain
        if plain is not None:
            self._add_open(plain, tokens, values, times, least)
            return
        # The table shares no dict, so each key's slices are loaded once for the batch.
        loaded = [(token, table.load(token)) for token in dict.fromkeys(tokens)]
        view = {token: slices for token, slices in loaded if slices is not MISSING}
        self._add_open(view, tokens, values, times, least)
        for token, slices in view.items():
            table.store(token, slices)

    def _add_open(
        self,
        plain: dict[Any, Any],
        tokens: Sequence[Any],
        values: Sequence[Any],
        times: Sequence[int],
        least: int,
    ) -> None:
        """Add records none of which is before the end of a window that has passed."""
        start = self._windows.slice_of(least)
        if not self._aggregate.only_counts:
            self._gather(plain, tokens, values, times, start)
        elif max(times) < self._windows.slice_end(start):
            self._count_in_one(plain, tokens, start)
        else:
            self._count(plain, tokens, times, start)

    def _count_in_one(self, plain: dict[Any, Any], tokens: Sequence[Any], start: int) -> None:
        """Count records of one slice, as those of most batches are."""
        closing, fold_of = self._windows.first_end(start), self._folds.get
        for token in tokens:
            try:
                slices = plain[token]
            except KeyError:
                slices = plain[token] = {}
            number = slices.get(start)
            if number is not None:
                slices[start] = number + 1
                continue
            slices[start] = 1
            fold = fold_of(token)
            if fold is None or closing < fold.next:
                self._opened(token, fold, closing)

    def _count(self, plain: dict[Any, Any], tokens: Sequence[Any], times: Sequence[int], start: int) -> None:
        """Count records of several slices."""
        windows, fold_of = self._windows, self._folds.get
        end, closing = windows.slice_end(start), windows.first_end(start)
        for token, time in zip(tokens, times, strict=True):
            if not start <= time < end:
                start = windows.slice_of(time)
                end, closing = windows.slice_end(start), windows.first_end(start)
            try:
                slices = plain[token]
            except KeyError:
                slices = plain[token] = {}
            number = slices.get(start)
            if number is not None:
                slices[start] = number + 1
                continue
            slices[start] = 1
            fold = fold_of(token)
            if fold is None or closing < fold.next:
                self._opened(token, fold, closing)

    def _gather(
        self, plain: dict[Any, Any], tokens: Sequence[Any], values: Sequence[Any], times: Sequence[int], start: int
    ) -> None:
        """Put records into accumulators."""
        windows, fold_of = self._windows, self._folds.get
        first, add = self._aggregate.first, self._aggregate.add
        end, closing = windows.slice_end(start), windows.first_end(start)
        for token, value, time in zip(tokens, values, times, strict=True):
            if not start <= time < end:
                start = windows.slice_of(time)
                end, closing = windows.slice_end(start), windows.first_end(start)
            try:
                slices = plain[token]
            except KeyError:
                accumulator = first(value)  # before anything is changed: it may raise
                slices = plain[token] = {}
            else:
                old = slices.get(start)
                if old is not None:
                    slices[start] = add(old, value)
                    continue
                accumulator = first(value)
            slices[start] = accumulator
            fold = fold_of(token)
            if fold is None or closing < fold.next:
                self._opened(token, fold, closing)

    def _opened(self, token: Any, fold: Fold | None, closing: int) -> None:
        """See that a key waits for the first window, which ends at ``closing``, of a slice that has just begun."""
        if fold is None:
            fold = self._new_fold(token, self._passed)
        fold.kept = min(fold.kept, closing - self._slide)
        fold.next = closing
        self._wait(token, fold, closing - 1)

    def _add_carefully(
        self,
        indexes: list[int],
        tokens: Sequence[Any],
        values: Sequence[Any],
        times: Sequence[int],
        firings: list[Firing],
        late: list[Late],
    ) -> None:
        """Add the records at these places, which may belong to a time that has passed, or to no window at all."""
        windows, load, add = self._windows, self._table.load, self._add
        touched: dict[Any, dict[int | None, Any]] = {}
        for index in indexes:
            token, value, time = tokens[index], values[index], times[index]
            start, fold = windows.slice_of(time), self._folds.get(token)
            passed = self._passed if fold is None else max(self._passed, fold.end)
            watermark = max(self.watermark, passed - 1)
            in_none = (time - windows.offset_ms) % self._slide >= self._size
            last = time if in_none else windows.last_end(start) - 1
            if min(last + self._allowed, MAX_TIME) <= watermark:
                late.append((index, late_by_ms(time, watermark)))
                continue
            if in_none:
                continue
            slices = touched.get(token)
            if slices is None:
                slices = load(token)
                if slices is MISSING:
                    slices = {}
                touched[token] = slices
            if start < passed:
                self._add_passed(token, slices, start, value, passed)
                self._fire_again(token, slices, start, passed, firings)
                continue
            old = slices.get(start)
            if old is not None:
                slices[start] = add(old, value)
                continue
            slices[start] = self._aggregate.first(value)
            closing = windows.first_end(start)
            if fold is None or closing < fold.next:
                self._opened(token, fold, closing)
        for token, slices in touched.items():
            self._table.store(token, slices)

    def _add_passed(self, token: Any, slices: dict[int | None, Any], start: int, value: Any, passed: int) -> None:
        """Add a record to a slice before the end of a window that is complete."""
        fold = self._folds.get(token) or self._new_fold(token, passed)
        part = self._aggregate.first(value)
        old = slices.get(start)
        slices[start] = part if old is None else self._add(old, value)
        fold.end = slices[_MARK] = passed  # if that is later, there was nothing in the windows between
        fold.kept = min(fold.kept, start)
        if start >= passed + self._slide - self._size:
            fold.add_passed(part)
            fold.last = max(fold.last, start)
            if fold.next != passed + self._slide:
                fold.next = passed + self._slide
                self._wait(token, fold, fold.next - 1)
        elif fold.next == NEVER:
            self._wait_for_cleanup(token, fold, slices)

    def _fire_again(
        self, token: Any, slices: dict[int | None, Any], start: int, passed: int, firings: list[Firing]
    ) -> None:
        """Give the results of all windows once more that hold a slice, are complete, and are not late.

        Each is what lies left of the slice in it, the slice, and what lies right of it: two merges for each window.
        """
        windows, size, merge = self._windows, self._size, self._aggregate.merge
        watermark = max(self.watermark, passed - 1)
        first = max(windows.first_end(start), windows.end_up_to(watermark - self._allowed + 1) + self._slide)
        ends = range(first, min(windows.last_end(start), passed) + 1, self._slide)
        if not ends:
            return
        inside = sorted(begin for begin in slices if begin is not None and first - size <= begin < ends[-1])
        left: list[tuple[int, Any]] = []
        middle = slices[start]
        for begin in reversed(inside):
            if begin < start:
                left.append((begin, merge(slices[begin], left[-1][1]) if left else slices[begin]))
        right = [begin for begin in reversed(inside) if begin > start]
        for end in ends:
            while right and right[-1] < end:
                middle = merge(middle, slices[right.pop()])
            while left and left[-1][0] < end - size:
                left.pop()
            self._give(token, Window(end - size, end), merge(left[-1][1], middle) if left else middle, firings)

    def _give(self, token: Any, window: Window, accumulator: Any, firings: list[Firing]) -> None:
        copy = self._copy
        firings.append((token, window, accumulator if copy is None else copy(accumulator)))

    # ── time ──

    def advance(self, watermark: int, firings: list[Firing], *, at_most: int | None = None) -> bool:
        """Bring event time to ``watermark``, and give the results of all windows that this completes.

        Stops after ``at_most`` keys, of one window or several, and returns whether all is done; if not, call it again
        with the same watermark before anything is added.  A watermark that is not larger changes nothing.
        """
        self.watermark = max(self.watermark, watermark)
        watermark, due = self.watermark, self._due
        left = NEVER if at_most is None else at_most
        while due.is_due(watermark):
            if left <= 0:
                return False
            time, tokens = due.take(left)
            left -= len(tokens)
            self._fire(time, tokens, firings)
        self._passed = self._windows.end_up_to(watermark + 1)
        self._fence = max(self._fence, self._passed)
        return True

    def _fire(self, time: int, tokens: list[Any], firings: list[Firing]) -> None:
        """Give the results of a window for these keys, which are in order, and see what each waits for next."""
        folds, table, plain = self._folds, self._table, self._table.plain
        slide, edge, keeps, copy = self._slide, self._edge, self._allowed > 0, self._copy
        end = time + 1
        start, after = end - self._size, end + slide
        window, oldest = Window(start, end), self._oldest_asked_for(end)
        again: list[Any] = []  # those whose next window is the one after this
        for token in tokens:
            fold = folds.get(token)
            if fold is None or fold.at != time:
                continue  # it waits for another time by now
            slices = table.load(token) if plain is None else plain[token]
            if fold.next == end:
                accumulator = fold.fire(slices, end)
                slices[_MARK] = end
                firings.append((token, window, accumulator if copy is None else copy(accumulator)))
                if keeps:
                    self._expire(fold, slices, oldest)
                if fold.last >= start + slide or end in slices or (edge and after - edge in slices):
                    fold.next, fold.at = after, after - 1
                    again.append(token)
                else:
                    self._look_ahead(token, fold, slices, end)
            else:
                self._expire(fold, slices, self._oldest_asked_for(fold.end))
                self._look_ahead(token, fold, slices, fold.end)
            if (len(slices) == 1 and _MARK in slices) or not slices:
                del folds[token]
                table.remove(token)
            elif plain is None:
                table.store(token, slices)
        if again:
            self._due.put(after - 1, again)

    def _look_ahead(self, token: Any, fold: Fold, slices: dict[int | None, Any], end: int) -> None:
        """Find the next window that is not empty, when the one after ``end`` is."""
        coming = min((start for start in slices if start is not None and start >= end), default=None)
        if coming is not None:
            fold.next = self._windows.first_end(coming)
            self._wait(token, fold, fold.next - 1)
        else:
            fold.next = NEVER
            self._wait_for_cleanup(token, fold, slices)

    def _wait_for_cleanup(self, token: Any, fold: Fold, slices: dict[int | None, Any]) -> None:
        newest = max((start for start in slices if start is not None), default=None)
        if newest is not None:
            self._wait(token, fold, min(self._windows.last_end(newest) - 1 + self._allowed, MAX_TIME))

    def _oldest_asked_for(self, end: int) -> int:
        """Return before where no window will ask for slices, of a key that has come to the window's end ``end``."""
        following = end + self._slide
        if self.watermark < MAX_TIME:
            following = min(following, self._windows.end_up_to(self.watermark + 1 - self._allowed) + self._slide)
        return following - self._size

    def _expire(self, fold: Fold, slices: dict[int | None, Any], oldest: int) -> None:
        """Forget the slices before ``oldest``."""
        kept = fold.kept
        if oldest <= kept:
            return
        fold.kept = oldest
        if kept == oldest - self._slide and not self._edge:
            slices.pop(kept, None)  # as it is wherever windows follow one another
            return
        kept -= (kept - self._windows.offset_ms) % self._slide
        if (oldest - kept) // self._slide > len(slices):
            for start in [start for start in slices if start is not None and start < oldest]:
                del slices[start]
            return
        for start in range(kept, oldest, self._slide):
            slices.pop(start, None)
            if self._edge:
                slices.pop(start + self._edge, None)

    def _wait(self, token: Any, fold: Fold, time: int) -> None:
        fold.at = time
        self._due.put(time, [token])

    # ── keys ──

    def _new_fold(self, token: Any, end: int) -> Fold:
        order = bytes_of_token(token)
        fold = self._folds[token] = self._kind(self._windows, self._aggregate, order, end, keeps=self._allowed > 0)
        return fold

    def _order(self, token: Any) -> bytes | None:
        fold = self._folds.get(token)
        return None if fold is None else fold.order

    def _follow(self, token: Any, slices: dict[int | None, Any]) -> bool:
        """Go on with a key that was restored; return whether it has slices that nobody will ask for."""
        starts = [start for start in slices if start is not None]
        mark = slices.get(_MARK)
        if mark is None:  # none of its windows was complete when this was written
            mark = min(self._passed, self._windows.first_end(min(starts)) - self._slide)
        fold = self._new_fold(token, mark)
        self._fence = max(self._fence, fold.end)
        fold.kept = min(starts) - self._slide  # the window of the oldest may gain an older one
        oldest = fold.end + self._slide - self._size
        fold.last = max((start for start in starts if start < fold.end), default=fold.last)
        fold.follow(slices, oldest)
        if fold.last >= oldest:
            fold.next = fold.end + self._slide
            self._wait(token, fold, fold.next - 1)
        else:
            self._look_ahead(token, fold, slices, fold.end)
        return not self._allowed and min(starts) < oldest

    def _forget_passed(self, token: Any) -> None:
        """Forget what was kept for late records, now that none are allowed any more."""
        slices, fold = self._table.load(token), self._folds[token]
        oldest = fold.end + self._slide - self._size
        for start in [start for start in slices if start is not None and start < oldest]:
            del slices[start]
        if fold.next == NEVER:
            del self._folds[token]
            self._table.remove(token)
        else:
            self._table.store(token, slices)

    def __len__(self) -> int:
        """How many keys have anything at all."""
        return len(self._folds)


def _without(indexes: list[int], column: Sequence[Any]) -> list[Any]:
    """Return a column without the entries at these places, which are usually few and in order."""
    if len(indexes) > 16:
        gone = set(indexes)
        return [entry for index, entry in enumerate(column) if index not in gone]
    rest = list(column)
    for index in reversed(indexes):
        del rest[index]
    return rest
