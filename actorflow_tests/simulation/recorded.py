"""Records a job in this process, as ``actorflow run --record`` does, and replays it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from actorflow.config import Settings
from actorflow.dataflow.job import Job
from actorflow.model.journal import Line
from actorflow.runtime.handle import JobHandle
from actorflow.simulation.recording import Start, record
from actorflow.simulation.replay import Replayed, replay


class Recorded:
    """A recording under way: each ``run`` is one more life of the same job."""

    def __init__(self, folder: Path, build: Callable[[], Job], **settings: Any) -> None:
        self.path, self.build = folder / "run.rec", build
        self.layers = [("the test", {"checkpoints.storage": str(folder / "home"), **settings})]
        self.lines: list[Line] = []

    def run(self, *, redact: bool = False, begun: Callable[[JobHandle], object] = lambda _: None) -> None:
        record(
            self.path,
            self.build(),
            Settings.from_layers(self.layers),
            Start(target="jobs:job", arguments=["a"], layers=self.layers),
            redact=redact,
            observe=lambda observer: observer.subscribe(self.lines.append),
            begun=begun,
        )

    def replay(self, build: Callable[[], Job] | None = None) -> Replayed:
        def built(target: str, arguments: Any, _folder: str) -> Job:
            assert (target, list(arguments)) == ("jobs:job", ["a"])
            return (build or self.build)()

        return replay(self.path, built)


def files_in(folder: Path) -> dict[str, bytes]:
    """What an outsider sees in an output folder."""
    return {str(path.resolve()): path.read_bytes() for path in folder.glob("[!.]*") if path.is_file()}
