"""State backends: where the keyed state of an actor lives, and how its snapshot is written behind.

Open ``memory.py`` for tables in memory, ``layers.py`` for what they are built of, ``blocks.py`` for how keyed state is
written down, whatever backend it came from.
"""

from actorflow.state.memory import MemoryBackend

__all__ = ("MemoryBackend",)
