"""Carries out ``protocol.fencing`` over a store: claims the home, publishes manifests, ends and tidies up.

The machine decides; here is only listing, putting and getting, one effect after the other.  What may be deleted is
deleted in the background and by name, manifests first, so that a half-deleted checkpoint is never restored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from actorflow.abc.objects import ObjectStore
from actorflow.abc.world import World
from actorflow.config import Settings
from actorflow.errors import AbortReason, CorruptObject, Fenced, ObjectMissing, RestoreFailed, StorageFailed
from actorflow.model import journal
from actorflow.model.codec import Codec, seal, unseal
from actorflow.model.manifest import Manifest
from actorflow.model.manifest_codec import decode_manifest, encode_manifest
from actorflow.model.paths import MANIFEST_NAME, Home
from actorflow.protocol import fencing
from actorflow.protocol.fencing import CommitPermit, Effect
from actorflow.protocol.fencing_steps import Event
from actorflow.protocol.machine import Machine
from actorflow.protocol.ownership import Base, Claim, FromCheckpoint, FromPath, Latest, Nothing, Path, Told
from actorflow.runtime.snapshot_reader import SnapshotReader
from actorflow.storage.opening import folder_of

__all__ = ("Begin", "Ownership", "Permitted", "Refused", "Taken")

T = TypeVar("T")

TRIES = 4
FIRST_WAIT_MS = 50
"""Reading and listing is tried this often, with waits that double."""

ABORTED = "aborted checkpoint"

ABORTED_HERE = object()
"""What is read where the mark of an aborted checkpoint holds its place."""

NOBODY_KNOWS = 1 << 62
"""Stands for the newest published checkpoint where that can't be told: nothing is discarded then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Where an attempt starts, and with which right."""

    generation: int
    permit: CommitPermit | None
    next_id: int
    retained: tuple[int, ...]
    manifest: Manifest | None
    reader: SnapshotReader | None
    restored_checkpoint: int | None
    restored_from: str
    foreign: bool
    allow_unclaimed: bool


@dataclass(frozen=True, slots=True)
class Permitted:
    """The checkpoint completed."""

    permit: CommitPermit


@dataclass(frozen=True, slots=True)
class Taken:
    """An older generation stands in its place."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The checkpoint did not complete."""

    reason: AbortReason
    detail: str = ""


class Ownership:
    """One process's hold on one home."""

    def __init__(
        self,
        world: World,
        store: ObjectStore,
        settings: Settings,
        job: str,
        *,
        resume_from: str,
        rewind: bool,
        check_fit: Callable[[Manifest, bool], object],
    ) -> None:
        """``check_fit(manifest, allow_unclaimed)`` raises ``IncompatibleState`` when a snapshot doesn't fit the job."""
        checkpoints = settings.checkpoints
        self._check_fit = check_fit
        self._by_path: tuple[SnapshotReader, Manifest] | None = None
        self._world, self._store, self._job = world, store, job
        self.home = Home(job if checkpoints.create_subdir else "")
        self._location = checkpoints.storage
        self._codec = Codec()
        self.allow_unclaimed = False
        self._resume_from, self._rewind = resume_from, rewind
        self._machine: fencing.Fencing
        self.generation = 0
        self._next_id = 1
        self._sweeps: list[fencing.Sweep] = []
        self._aborted: list[int] = []
        self._sealed: dict[int, bytes] = {}

    def machines(self) -> list[tuple[str, Machine[Any, Any]]]:
        """What decides here, by name; nothing before the home is located."""
        machine = getattr(self, "_machine", None)
        return [] if machine is None else [("owner", machine)]

    async def locate(self) -> None:
        """Find out where the home really is, before anything else.

        A folder is known by its absolute path with every link followed: two ways to one folder are one home (R052),
        and a home is the same from whatever folder the process was started.
        """
        self._location = await self._resolve(self._location)
        told: Told
        match self._resume_from:
            case "latest":
                told = Latest()
            case "nothing":
                told = Nothing()
            case path:
                real = await self._resolve(path) or path
                told = Path(path=real, rewind=self._rewind, own_checkpoint=self._own_checkpoint(real))
        self._machine = fencing.Fencing(told, host=self._world.host, process=self._world.process)

    async def _resolve(self, location: str | None) -> str | None:
        if location is None or ("://" in location and not location.startswith("file:")):
            return location
        return await self._world.disk.resolve(folder_of(location))

    # ── names for people ─────────────────────────────────────────────────────────────────────

    @property
    def identity(self) -> str:
        """The home, as people and sinks see it; a home in memory is nobody else's."""
        if self._location is None:
            return f"memory of process {self._world.process}: {self._job}"
        return f"{self._location.rstrip('/')}/{self.home.prefix}".rstrip("/")

    @property
    def is_in_memory(self) -> bool:
        """Whether the home ends with this process."""
        return self._location is None

    def path_of(self, checkpoint_id: int) -> str:
        """Where a checkpoint lies: what ``--from`` takes."""
        return f"{self.identity}/chk-{checkpoint_id}"

    def _own_checkpoint(self, path: str) -> int | None:
        folder = path.removesuffix(f"/{MANIFEST_NAME}").rstrip("/")
        parent, _, name = folder.rpartition("/")
        if self._location is None or parent != self.identity:
            return None
        return self.home.checkpoint_of(f"{self.home.prefix}{name}/x")

    # ── carrying out ─────────────────────────────────────────────────────────────────────────

    async def _feed(self, event: Event) -> list[Any]:
        """Give the machine an event and carry out what follows; return the effects that are answers."""
        answers: list[Any] = []
        effects = deque(self._machine.on(event))
        while effects:
            effect = effects.popleft()
            answer = await self._carry_out(effect, answers)
            if answer is not None:
                effects.extend(self._machine.on(answer))
        return answers

    async def _carry_out(self, effect: Effect, answers: list[Any]) -> Event | None:
        home, store = self.home, self._store
        match effect:
            case fencing.ListOwners():
                return await self._owners()
            case fencing.WriteClaim(claim):
                body = seal("claim", 1, self._codec.encode(claim.to_fields()))
                return fencing.ClaimAnswered(await self._put(home.owner(claim.generation), body))
            case fencing.ReadClaim(generation):
                return fencing.ClaimRead(await self._read_claim(generation))
            case fencing.ListHome():
                return await self._list_home()
            case fencing.ReadBase(generation):
                name = home.base(generation)
                fields = await self._read(name, "base")
                if fields is None:
                    raise StorageFailed(f"{name} is gone: was it deleted by hand while job {self._job!r} started?")
                return fencing.BaseRead(Base.from_fields(fields, name))
            case fencing.ReadManifest(checkpoint_id):
                manifest = await self._read_manifest(checkpoint_id)
                if manifest is None:
                    return fencing.ManifestRead(checkpoint_id, None)
                if manifest is ABORTED_HERE:
                    return fencing.ManifestRead(checkpoint_id, 0)
                assert isinstance(manifest, Manifest)
                if checkpoint_id in self._sealed and manifest.generation == self.generation:
                    self._announce_manifest(checkpoint_id)  # written after all, though the answer was lost
                return fencing.ManifestRead(checkpoint_id, manifest.generation, manifest.retained)
            case fencing.WriteBase(base):
                if isinstance(base.start, FromPath):
                    await self._open_path(base.start)
                name, body = home.base(base.generation), seal("base", 1, self._codec.encode(base.to_fields()))
                await self._patiently("put", name, lambda: store.put(name, body))
                return fencing.BaseWritten()
            case fencing.PutManifest(checkpoint_id):
                answer = await self._put(home.manifest(checkpoint_id), self._sealed[checkpoint_id])
                if answer is fencing.Answer.WRITTEN:
                    self._announce_manifest(checkpoint_id)
                return fencing.ManifestAnswered(checkpoint_id, answer)
            case fencing.SetFinishedAside():
                await self._patiently("delete", home.finished(), lambda: store.delete(home.finished()))
            case fencing.MarkFinished():
                body = seal("finished", 1, self._codec.encode({"job": self._job, "generation": self.generation}))
                await self._patiently("put", home.finished(), lambda: store.put(home.finished(), body))
            case _:
                answers.append(effect)
        return None

    async def _open_path(self, start: FromPath) -> tuple[SnapshotReader, Manifest]:
        """Open the snapshot that a path names.

        What can't be restored, or does not fit, is refused before it becomes the base that later starts rely on.
        """
        if self._by_path is None:
            reader, manifest = await SnapshotReader.open(start.path, self._world)
            self._check_fit(manifest, start.allow_unclaimed)
            self._by_path = reader, manifest
        return self._by_path

    def _announce_manifest(self, checkpoint_id: int) -> None:
        size = len(self._sealed[checkpoint_id])
        self._announce(journal.ManifestWritten(checkpoint=checkpoint_id, bytes=size))

    async def _put(self, name: str, body: bytes) -> fencing.Answer:
        try:
            created = await self._store.put_if_absent(name, body)
        except StorageFailed as error:
            self._announce(
                journal.StorageRetried(operation="put_if_absent", name=name, attempt=1, cause=type(error).__name__)
            )
            return fencing.Answer.LOST
        return fencing.Answer.WRITTEN if created else fencing.Answer.TAKEN

    async def _patiently(self, operation: str, name: str, action: Callable[[], Awaitable[T]]) -> T:
        """Do something that may be repeated without harm, a few times if need be."""
        for attempt in range(1, TRIES):
            try:
                return await action()
            except (ObjectMissing, CorruptObject):
                raise
            except StorageFailed as error:
                self._announce(
                    journal.StorageRetried(operation=operation, name=name, attempt=attempt, cause=type(error).__name__)
                )
                await self._world.clock.sleep(FIRST_WAIT_MS * 2 ** (attempt - 1))
        try:
            return await action()
        except StorageFailed as error:
            if not isinstance(error, ObjectMissing | CorruptObject):
                self._announce(journal.StorageFailed(operation=operation, name=name, cause=type(error).__name__))
            raise

    async def _get(self, name: str) -> bytes | None:
        """What is there, and would still be after a power cut: everything that follows is built on it."""
        try:
            data = await self._patiently("get", name, lambda: self._store.get(name))
            await self._patiently("settle", name, lambda: self._store.settle(name))
        except ObjectMissing:
            return None
        return data

    async def _read(self, name: str, kind: str) -> dict[str, Any] | None:
        data = await self._get(name)
        if data is None:
            return None
        _, body = unseal(kind, data, name)
        fields = self._codec.decode(body)
        if type(fields) is not dict:
            raise CorruptObject(f"{name}: holds no fields")
        return fields

    async def _read_claim(self, generation: int) -> Claim | None:
        name = self.home.owner(generation)
        fields = await self._read(name, "claim")
        return None if fields is None else Claim.from_fields(fields, name)

    async def _read_manifest(self, checkpoint_id: int) -> Manifest | object | None:
        name = self.home.manifest(checkpoint_id)
        data = await self._get(name)
        if data is None:
            return None
        if _is_aborted(data, name):
            return ABORTED_HERE
        return decode_manifest(data, name)

    async def _list_home(self) -> fencing.HomeListed:
        home = self.home
        names = await self._patiently("list", home.prefix, lambda: self._store.list(home.prefix))
        found = set(names)
        return fencing.HomeListed(
            bases=_sorted(home.base_of(name) for name in names),
            checkpoints=_sorted(home.checkpoint_of(name) for name in names),
            manifests=_sorted(home.manifest_of(name) for name in names),
            finished=home.finished() in found,
        )

    async def _fenced(self, by_generation: int) -> Fenced:
        try:
            claim = await self._read_claim(by_generation)
        except StorageFailed:
            claim = None
        whose = "another process" if claim is None else f"process {claim.process} on {claim.host}"
        return Fenced(
            f"job {self._job!r}: generation {by_generation} of {self.identity} belongs to {whose}, which started after "
            f"this one (generation {self.generation}); this process commits and deletes nothing any more",
            generation=by_generation,
        )

    async def newer_owner(self) -> Fenced | None:
        """Look whether somebody took the home over meanwhile; nobody can tell while storage does not answer.

        For whoever finds things gone that were there: one that stalled while it restored is not told otherwise.
        """
        ours = self._machine.generation
        try:
            newest = max((await self._owners()).generations, default=0)
        except StorageFailed:
            return None
        return await self._fenced(newest) if ours is not None and newest > ours else None

    async def _owners(self) -> fencing.OwnersListed:
        prefix = self.home.owners_prefix
        names = await self._patiently("list", prefix, lambda: self._store.list(prefix))
        claimed = [self.home.generation_of(name) for name in names]
        return fencing.OwnersListed(tuple(sorted(one for one in claimed if one is not None)))

    def _announce(self, entry: journal.Entry) -> None:
        self._world.observer.announce(entry)

    # ── an attempt begins ────────────────────────────────────────────────────────────────────

    async def take(self) -> Begin | None:
        """Claim, look and base; ``None`` when the job has finished before.  Raises ``Fenced`` and ``RestoreFailed``."""
        self._sweeps.clear()
        self._aborted.clear()
        self._by_path = None
        try:
            return await self._take()
        except CorruptObject as error:
            raise RestoreFailed(
                f"{error}; job {self._job!r} can't go on from it: restore that object, or start from another "
                "snapshot (resume_from=PATH, --from PATH) or from nothing (resume_from='nothing', --fresh)"
            ) from error

    async def _take(self) -> Begin | None:
        begin: Begin | None = None
        for answer in await self._feed(fencing.Started(at_ms=self._world.clock.wall_ms())):
            match answer:
                case fencing.AlreadyFinished():
                    return None
                case fencing.StandDown(by_generation):
                    raise await self._fenced(by_generation)
                case fencing.Restore(base, permit, ignored_path):
                    if ignored_path is not None:
                        self._announce(
                            journal.SettingIgnored(
                                setting="resume_from",
                                why=f"this home already started from {ignored_path} once and goes on from its latest "
                                "checkpoint; rewind=True (--rewind) insists",
                            )
                        )
                    begin = await self._begin(base, permit)
                case fencing.Sweep():
                    self._sweeps.append(answer)
                case _:  # pragma: no cover
                    raise AssertionError(f"can't carry out {answer!r}")
        assert begin is not None
        return begin

    async def _begin(self, base: Base, permit: CommitPermit | None) -> Begin:
        # What an earlier attempt of this process had under way may have left nothing in storage.
        self.generation, self._next_id = base.generation, max(self._next_id, base.next_id)
        self._announce(journal.GenerationClaimed(job=self._job, generation=base.generation))
        manifest: Manifest | None = None
        reader: SnapshotReader | None = None
        retained: tuple[int, ...] = ()
        source, foreign = "", False
        match base.start:
            case FromCheckpoint(checkpoint_id, _, retained):
                name = self.home.manifest(checkpoint_id)
                found = await self._read_manifest(checkpoint_id)
                if not isinstance(found, Manifest):
                    raise RestoreFailed(
                        f"{name} is gone, and generation {base.generation} starts from it; restore it, or start from "
                        "another snapshot (--from PATH) or from nothing (--fresh)"
                    )
                manifest = found
                reader = SnapshotReader(self._store, self.home, checkpoint_id, self._world)
                source = self.path_of(checkpoint_id)
            case FromPath(path, allow_unclaimed) as start:
                self.allow_unclaimed = allow_unclaimed
                reader, manifest = await self._open_path(start)
                source, foreign = path, True
        return Begin(
            generation=base.generation,
            permit=permit,
            next_id=self._next_id,
            retained=retained,
            manifest=manifest,
            reader=reader,
            restored_checkpoint=None if manifest is None else manifest.checkpoint_id,
            restored_from=source,
            foreign=foreign,
            allow_unclaimed=self.allow_unclaimed,
        )

    @property
    def published(self) -> int:
        """The newest checkpoint whose manifest may be in storage: nothing up to it is discarded."""
        published = self._machine.published
        return NOBODY_KNOWS if published is None else published

    # ── checkpoints ──────────────────────────────────────────────────────────────────────────

    def use(self, checkpoint_id: int) -> None:
        """Note that an id was given to a checkpoint, whatever becomes of it: no other one gets it (INV-3.3)."""
        self._next_id = max(self._next_id, checkpoint_id + 1)

    async def publish(self, manifest: Manifest) -> Permitted | Taken | Refused:
        """Create the manifest and look at the claims again.

        Raises ``Fenced``, and ``StorageFailed`` when nobody knows whether the manifest is there: its files must stay,
        and the next attempt finds out.
        """
        checkpoint_id = manifest.checkpoint_id
        self._sealed[checkpoint_id] = encode_manifest(manifest)
        try:
            answers = await self._feed(fencing.CheckpointReady(checkpoint_id))
        finally:
            del self._sealed[checkpoint_id]
        result: Permitted | Taken | Refused | None = None
        for answer in answers:
            match answer:
                case fencing.Permit(permit):
                    result = Permitted(permit)
                case fencing.AbortCheckpoint(_, AbortReason.MANIFEST_PLACE_TAKEN):
                    result = Taken()
                case fencing.AbortCheckpoint(_, reason):
                    result = Refused(reason)
                case fencing.StandDown(by_generation):
                    raise await self._fenced(by_generation)
                case _:  # pragma: no cover
                    raise AssertionError(f"can't carry out {answer!r}")
        assert result is not None, f"no answer for checkpoint {checkpoint_id}\n{self._machine.tell()}"
        return result

    # ── deleting ─────────────────────────────────────────────────────────────────────────────

    async def delete_checkpoint(self, checkpoint_id: int) -> int:
        """Delete a completed checkpoint, manifest first; return how many objects went."""
        names = await self._patiently(
            "list", f"chk-{checkpoint_id}", lambda: self._store.list(self.home.checkpoint(checkpoint_id))
        )
        manifest = self.home.manifest(checkpoint_id)
        for name in sorted(names, key=lambda one: (one != manifest, one)):
            await self._patiently("delete", name, lambda gone=name: self._store.delete(gone))  # type: ignore[misc]
        return len(names)

    async def discard_aborted(self, checkpoint_id: int) -> None:
        """Mark the place of an aborted checkpoint, so that its id is not given again, and delete this one's pieces."""
        if checkpoint_id not in self._aborted:
            self._aborted.append(checkpoint_id)
        prefix, manifest = self.home.checkpoint(checkpoint_id), self.home.manifest(checkpoint_id)
        try:
            await self._store.put_if_absent(manifest, seal(ABORTED, 1, b""))
            for name in await self._store.list(prefix):
                if name != manifest and name.endswith(f"-{self.generation}"):
                    await self._store.delete(name)
        except StorageFailed as error:
            # The next sweep meets them again.
            self._announce(journal.StorageFailed(operation="discard", name=prefix, cause=type(error).__name__))

    async def tidy(self, completed_id: int) -> None:
        """A later checkpoint completed: the places of aborted ones before it need not be held any more."""
        for checkpoint_id in [aborted for aborted in self._aborted if aborted < completed_id]:
            self._aborted.remove(checkpoint_id)
            manifest = self.home.manifest(checkpoint_id)
            try:
                if _is_aborted(await self._store.get(manifest), manifest):
                    await self.delete_checkpoint(checkpoint_id)
            except StorageFailed:
                continue  # the next sweep meets it again

    async def sweep(self) -> None:
        """Remove what older generations left and this line does not name; runs beside the attempt."""
        while self._sweeps:
            await self._sweep(self._sweeps.pop(0))
        try:
            count = await self._store.sweep(self.home.prefix)
        except StorageFailed as error:
            self._announce(journal.StorageFailed(operation="sweep", name=self.home.prefix, cause=type(error).__name__))
        else:
            if count:
                self._announce(journal.OrphanRemoved(where="temporaries", name=f"{count} of {self.home.prefix}"))

    async def _sweep(self, sweep: fencing.Sweep) -> None:
        home = self.home
        try:
            names = await self._patiently("list", home.prefix, lambda: self._store.list(home.prefix))
            for name in sorted(names, key=lambda one: (home.manifest_of(one) is None, one)):
                generation = home.generation_of(name)
                if generation is None:
                    generation = home.base_of(name)
                checkpoint_id = home.checkpoint_of(name)
                if generation is not None and generation < sweep.generation:
                    await self._store.delete(name)
                elif checkpoint_id is not None and checkpoint_id < sweep.below and checkpoint_id not in sweep.keep:
                    await self._store.delete(name)
                    self._announce(journal.OrphanRemoved(where="home", name=name))
        except StorageFailed as error:
            self._announce(journal.StorageFailed(operation="sweep", name=home.prefix, cause=type(error).__name__))

    async def end(self, *, finished: bool, next_id: int) -> None:
        """The job is over and its checkpoints are to go; what says that it finished is written before they do."""
        if not self._machine.is_running:
            # It ends between two attempts; only who owns the home deletes in it.
            for answer in await self._feed(fencing.Started(at_ms=self._world.clock.wall_ms())):
                match answer:
                    case fencing.StandDown(by_generation):
                        raise await self._fenced(by_generation)
                    case fencing.AlreadyFinished():
                        return
                    case fencing.Restore(base):
                        self.generation, self._next_id = base.generation, max(self._next_id, base.next_id)
        answers = await self._feed(fencing.Ended(finished=finished, next_id=max(next_id, self._next_id)))
        for answer in answers:
            match answer:
                case fencing.StandDown(by_generation):
                    raise await self._fenced(by_generation)
                case fencing.Sweep():
                    await self._sweep(answer)
                case _:  # pragma: no cover
                    raise AssertionError(f"can't carry out {answer!r}")


def _sorted(numbers: Any) -> tuple[int, ...]:
    return tuple(sorted({number for number in numbers if number is not None}))


def _is_aborted(data: bytes, name: str) -> bool:
    try:
        unseal(ABORTED, data, name)
    except CorruptObject:
        return False
    return True
