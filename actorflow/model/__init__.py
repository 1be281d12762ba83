"""Nouns: immutable values that carry facts and decide nothing.

Open ``elements.py`` for what flows through a channel, ``manifest.py`` for what a completed checkpoint is made of,
``codec.py`` for how values are written down, ``journal.py`` for what the runtime announces.
"""
