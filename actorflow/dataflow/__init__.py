"""The user's language: pure, it builds a graph and decides what runs together.

Begin at ``job.py`` and ``stream.py`` for what a user says, ``keyed.py`` and ``states.py`` for operators with state,
``primitives.py`` and ``derived.py`` for what they are made of, ``plan.py`` for what becomes of them, and
``chaining.py`` for how a batch goes through them.  This room knows no event loop, no storage and no channel.
"""
