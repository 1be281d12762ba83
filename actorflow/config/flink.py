"""What do Flink's keys mean here?

Most stand for one setting of ours, under today's name or an older one.  Some are two keys for one thing, or one key for
something that can't be switched here; the rest means nothing, and each of those is refused by name, with the reason, so
that nobody believes that it did something.  This module only knows; ``reading.py`` acts.
"""

from __future__ import annotations

from actorflow.config.knobs import KNOBS, Kind, Knob

__all__ = ("ALIASES", "FIXED", "FLINK", "PAIRED", "STATE_BACKENDS", "STRATEGY_NAMES", "flink_keys_of", "why_not")

_CHECKPOINTING = "execution.checkpointing."
_NETWORK = "taskmanager.network."

# Keys that say a part of one of our settings: key → (part, how it is written).
PAIRED: dict[str, tuple[str, Kind]] = {
    f"{_CHECKPOINTING}storage": ("storage.kind", Kind.TEXT),
    f"{_CHECKPOINTING}dir": ("storage.dir", Kind.TEXT),
    f"{_CHECKPOINTING}unaligned.enabled": ("align.enabled", Kind.SWITCH),
    f"{_CHECKPOINTING}aligned-checkpoint-timeout": ("align.timeout", Kind.DURATION),
    "restart-strategy.type": ("restart.type", Kind.TEXT),
}

# Keys that say one of our settings alone.
FLINK: dict[str, Knob] = {knob.flink: knob for knob in KNOBS if knob.flink and knob.flink not in PAIRED}

ALIASES: dict[str, str] = {
    "state.backend": "state.backend.type",
    "state.checkpoint-storage": f"{_CHECKPOINTING}storage",
    "state.checkpoints.dir": f"{_CHECKPOINTING}dir",
    "state.savepoints.dir": f"{_CHECKPOINTING}savepoint-dir",
    "state.checkpoints.num-retained": f"{_CHECKPOINTING}num-retained",
    "state.backend.incremental": f"{_CHECKPOINTING}incremental",
    "state.checkpoints.create-subdir": f"{_CHECKPOINTING}create-subdir",
    "state.checkpoint.cleaner.parallel-mode": f"{_CHECKPOINTING}cleaner.parallel-mode",
    "state.storage.fs.memory-threshold": f"{_CHECKPOINTING}data-inline-threshold",
    "state.storage.fs.write-buffer-size": f"{_CHECKPOINTING}write-buffer-size",
    f"{_CHECKPOINTING}unaligned": f"{_CHECKPOINTING}unaligned.enabled",
    f"{_CHECKPOINTING}alignment-timeout": f"{_CHECKPOINTING}aligned-checkpoint-timeout",
    "execution.buffer-timeout": "execution.buffer-timeout.interval",
    "restart-strategy": "restart-strategy.type",
    "taskmanager.state.local.root-dirs": f"{_CHECKPOINTING}local-backup.dirs",
    "execution.savepoint-restore-mode": "execution.state-recovery.claim-mode",
    "execution.savepoint.path": "execution.state-recovery.path",
    "execution.savepoint.ignore-unclaimed-state": "execution.state-recovery.ignore-unclaimed-state",
    f"{_CHECKPOINTING}checkpoints-after-tasks-finish.enabled": f"{_CHECKPOINTING}checkpoints-after-tasks-finish",
}

STATE_BACKENDS = {"hashmap": "memory", "memory": "memory", "rocksdb": "rocksdb", "lmdb": "lmdb"}

STRATEGY_NAMES = {
    **dict.fromkeys(("none", "disable", "off", "no-restart"), "none"),
    **dict.fromkeys(("fixed-delay", "fixeddelay"), "fixed-delay"),
    **dict.fromkeys(("failure-rate", "failurerate"), "failure-rate"),
    **dict.fromkeys(("exponential-delay", "exponentialdelay"), "exponential-delay"),
}

_LATER_LOCAL = "recovery from copies on the local disk comes with a later version"
_LATER_CHANGELOG = "the changelog of state comes with a later version"
_LATER_TIMERS = "timers come with a later version"

# Keys with a single value that can be had here: key → (that value, why no other).
FIXED: dict[str, tuple[bool, str]] = {
    "execution.buffer-timeout.enabled": (
        True,
        "a partly filled batch always leaves when its actor has nothing else to do; see buffers.flush_after",
    ),
    f"{_CHECKPOINTING}checkpoints-after-tasks-finish": (True, "subtasks that finished never stop checkpoints here"),
    f"{_CHECKPOINTING}cleaner.parallel-mode": (True, "objects are deleted side by side, never one after the other"),
    f"{_CHECKPOINTING}unaligned.interruptible-timers.enabled": (False, _LATER_TIMERS),
    f"{_CHECKPOINTING}local-backup.enabled": (False, _LATER_LOCAL),
    "execution.state-recovery.from-local": (False, _LATER_LOCAL),
    "state.backend.local-recovery": (False, _LATER_LOCAL),
    "state.changelog.enabled": (False, _LATER_CHANGELOG),
    "state.backend.changelog.enabled": (False, _LATER_CHANGELOG),
    "state.latency-track.keyed-state-enabled": (False, "the latency of single state accesses is not tracked"),
    f"{_NETWORK}detailed-metrics": (False, "metrics per channel are read from the journal"),
}

_NOTHING: dict[str, str] = {
    f"{_CHECKPOINTING}write-buffer-size": "a piece of state is written whole, not through a buffer of its own",
    f"{_CHECKPOINTING}local-backup.dirs": _LATER_LOCAL,
    "execution.state-recovery.claim-mode": "a snapshot that is given to start from is never claimed in this version",
    "execution.state-recovery.path": "say it with --from, or resume_from where the job is run",
    "execution.state-recovery.ignore-unclaimed-state": "state that fits no operator is refused in this version",
    "taskmanager.memory.min-segment-size": "batches are not resized in this version",
    "taskmanager.memory.starting-segment-size": "batches are not resized in this version",
    f"{_NETWORK}memory.read-buffer.required-per-gate.max": "buffers are counted per channel; see buffers.per_channel",
    f"{_NETWORK}memory.buffers-request-timeout": "an actor waits for room as long as it takes",
    f"{_NETWORK}memory.fraction": "no memory is set aside: batches travel by reference; see buffers.per_channel",
    f"{_NETWORK}memory.min": "no memory is set aside: batches travel by reference; see buffers.per_channel",
    f"{_NETWORK}memory.max": "no memory is set aside: batches travel by reference; see buffers.per_channel",
    f"{_NETWORK}request-backoff.initial": "channels within a process need no connection that could be asked for again",
    f"{_NETWORK}request-backoff.max": "channels within a process need no connection that could be asked for again",
    "pipeline.auto-watermark-interval": "watermarks come with a later version",
    "jobmanager.execution.failover-strategy": "a failure restarts the whole job, in its process",
    "execution.runtime-mode": "a job whose sources end is a bounded one; nothing has to be said",
}

# The longest prefix that fits gives the reason.
_NOTHING_BELOW: dict[str, str] = {
    "dstl.": _LATER_CHANGELOG,
    "state.changelog.": _LATER_CHANGELOG,
    "state.backend.changelog.": _LATER_CHANGELOG,
    "state.backend.rocksdb.": "state on disk comes with a later version",
    "state.latency-track.": "the latency of single state accesses is not tracked",
    "state.ttl.": "how long a state lives is said where it is declared",
    "taskmanager.": "there are no task managers: a process is one event loop that runs every actor of the job",
    "jobmanager.": "there is no job manager: the process that runs the job also coordinates it",
    "resourcemanager.": "there is no resource manager: whoever starts the process says what it may use",
    "slotmanager.": "there are no slots",
    "cluster.": "there is no cluster to configure: a job runs in the process that starts it",
    "high-availability.": "the job's home in checkpoint storage is all that a next owner needs",
    "high-availability": "the job's home in checkpoint storage is all that a next owner needs",
    "kubernetes.": "there is no cluster to configure: a job runs in the process that starts it",
    "yarn.": "there is no cluster to configure: a job runs in the process that starts it",
    "zookeeper.": "the job's home in checkpoint storage is all that a next owner needs",
    "heartbeat.": "within a process nobody has to prove that he lives",
    "akka.": "actors are coroutines of one process; there is no remote procedure call",
    "pekko.": "actors are coroutines of one process; there is no remote procedure call",
    "blob.": "no code is shipped",
    "classloader.": "no code is shipped",
    "env.": "there is no Java machine",
    "python.": "the job runs in this very Python",
    "rest.": "there is no REST interface in this version",
    "web.": "there is no web interface in this version",
    "historyserver.": "there is no history server",
    "metrics.": "metrics are read from the journal; the program that runs the job exposes them",
    "security.": "credentials are the storage client's own",
    "table.": "there is no table interface",
    "sql-client.": "there is no table interface",
    "queryable-state.": "state is queried through the job's handle",
}


def why_not(key: str) -> str | None:
    """Return why a key of Flink's means nothing here, or None if it is no key of Flink's that we know."""
    key = ALIASES.get(key, key)
    if key in _NOTHING:
        return _NOTHING[key]
    fitting = [prefix for prefix in _NOTHING_BELOW if key.startswith(prefix)]
    return _NOTHING_BELOW[max(fitting, key=len)] if fitting else None


def known_flink_keys() -> tuple[str, ...]:
    """Return every single key of Flink's that has an answer here, old names included."""
    return tuple(sorted({*FLINK, *PAIRED, *ALIASES, *FIXED, *_NOTHING}))


def flink_keys_of(knob: Knob) -> tuple[str, ...]:
    """Return Flink's keys that stand for this setting, today's name first."""
    keys = [key for key in (knob.flink, *_PARTNERS.get(knob.name, ())) if key]
    return (*keys, *(alias for alias, key in ALIASES.items() if key in keys))


_PARTNERS = {
    "checkpoints.storage": (f"{_CHECKPOINTING}storage",),
    "checkpoints.align_at_most": (f"{_CHECKPOINTING}unaligned.enabled",),
}
