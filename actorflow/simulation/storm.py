"""When does the weather of a run come, over all its lives, and when does it lift?

Faults are expected life by life.  The weather lifts after many lives or a long time; then the job must come to its end
within the time that its course gives.
"""

from __future__ import annotations

from actorflow.model import journal
from actorflow.simulation.course import Course
from actorflow.simulation.moments import Moments, Visible
from actorflow.simulation.scenario import Fault
from actorflow.simulation.weather import After, At, Kill, Weather
from actorflow.simulation.world import Universe

__all__ = ("Storm",)


class Storm:
    """The weather of one run, or none of it when the run is ``calm``."""

    def __init__(self, universe: Universe, course: Course, visible: Visible | None, *, calm: bool) -> None:
        self._universe, self._course = universe, course
        self.expected: list[Fault] = []
        """What has been expected so far, and in which life."""
        self.life = 1
        self.calm_since: int | None = 0 if calm else None
        self.asked_last_ms = 0
        """When somebody last asked something of the job."""
        self._kills_due = 1 if course.always_kills else 0
        self._unstruck: list[Weather] = []
        self._expect_for_life()
        self.moments = Moments(visible)
        universe.subscribe(self.moments.read)
        if course.always_kills:
            universe.subscribe(self._kill_at_the_last_moment)

    def begin_next_life(self) -> None:
        """Expect what is to come in the next life."""
        self.life += 1
        self.moments.life += 1
        self._expect_for_life()

    def end_life(self) -> None:
        """Expect what is to come after the life that was killed first."""
        if self._kills_due == self.moments.kills == 1 and self._course.second is not None:
            self._kills_due = 2
            self._expect(Fault(weather=self._course.second, life=self.life + 1))

    def _expect_for_life(self) -> None:
        for fault in self._course.faults:
            if max(1, fault.life) == self.life and self.calm_since is None:
                self._expect(fault)

    def _expect(self, fault: Fault) -> None:
        self.expected.append(fault)
        self._universe.expect(fault.weather)

    def _kill_at_the_last_moment(self, line: journal.Line) -> None:
        """A kill that was drawn for something that never came strikes at the final checkpoint."""
        entry = line.entry
        is_final = isinstance(entry, journal.CheckpointTriggered) and entry.kind == "final"
        if is_final and self.moments.kills < self._kills_due:
            at = After("CheckpointTriggered", {"kind": "final"}, process=line.process)
            self._expect(Fault(weather=Kill(at, None, "triggered"), life=self.life))

    # ── calm ──

    def look(self) -> None:
        """Let the weather lift when its time is over."""
        course, now = self._course, self._universe.now_ms()
        if self.calm_since is None and (self.life > course.most_lives or now > course.storm_ms):
            self.lift()

    def lift(self) -> None:
        """Let the weather lift."""
        if self.calm_since is None:
            now = self._universe.now_ms()
            self._unstruck = [*self._universe.sky.waiting(), *self._universe.failing, *self._universe.missed]
            for fault in self.expected:
                if isinstance(fault.weather.when, At) and fault.weather.when.ms > now:
                    self._unstruck.append(fault.weather)
            self.calm_since = now
        self._universe.calm()

    @property
    def unstruck(self) -> list[Fault]:
        """What was expected and had not struck when the weather lifted."""
        return [fault for fault in self.expected if any(fault.weather is one for one in self._unstruck)]

    @property
    def is_calm(self) -> bool:
        """Whether the weather lifted some time ago."""
        return self.calm_since is not None and self._universe.now_ms() > self.calm_since

    @property
    def is_overdue(self) -> bool:
        """Whether the job should have come to its end by now."""
        if self.calm_since is None:
            return False
        since = max(self.calm_since, self.asked_last_ms, self._course.busy_until_ms)
        return self._universe.now_ms() - since > self._course.calm_within_ms
