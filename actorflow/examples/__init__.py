"""Small honest jobs that a user reads first; each runs as it stands, in the simulator too.

Open ``word_count.py``.  An example stands where a user stands: it imports ``actorflow`` and its side doors, nothing
else.
"""
