"""The measured claims, each runnable by a user: ``actorflow bench NAME --json``.

``plain.py`` holds the loops that a person would write by hand; every figure is a ratio to one of them, taken in the
same round of the same process.  ``throughput.py`` measures records per second, ``latency.py`` how long the loop
stands still, ``simulation.py`` how fast storms are, ``recording.py`` what a recording costs.  These modules stand where
a user stands: they see the front door only.
"""

__all__ = ()
