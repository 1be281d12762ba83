"""Decisions: one file, one question, and no input or output in sight.

Open ``alignment.py`` for what an actor does when a barrier comes, ``admission.py`` for when a checkpoint may start,
``coordinator.py`` for what becomes of it, ``fencing.py`` for who may publish and commit, ``two_phase.py`` for a sink's
transactions, ``recovery.py`` for who receives which state, ``restart.py`` for what follows a failure, ``lifecycle.py``
for the legal lives of a job and of an actor.  How far event time has come is for ``watermarks.py`` where channels
and inputs meet, by ``idleness.py`` and ``quiet.py`` where a source has nothing to say, and by ``source_alignment.py``
where one source would run away from another.  ``machine.py`` holds the shape that all machines share.

A machine takes an event (what happened) and answers with effects (what is to be done).  It never waits, reads no
clock and draws no number: time and chance arrive in the event.  Carrying the effects out is the runtime's part.
"""
