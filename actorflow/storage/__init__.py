"""Where checkpoints live, for real: in this process's memory, or in a folder.

``opening.py`` finds the store that a setting names.  ``memory.py`` forgets with the process; ``files.py`` publishes
whole and durable objects through any disk; ``disk.py`` is this machine's disk, and the one module that touches its
files.  What all stores must do is written down as a test in ``actorflow.simulation.contracts_storage``.
"""

from actorflow.storage.files import FileStore
from actorflow.storage.memory import MemoryStore
from actorflow.storage.opening import open_store

__all__ = ("FileStore", "MemoryStore", "open_store")
