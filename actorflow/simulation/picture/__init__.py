"""What did a run look like?

A picture with a lane for each actor, along virtual time: records that wait, barriers on their way, alignment, snapshots
from their instant to durable, checkpoints from their trigger to their end, commits, and what went wrong.  From one
picture somebody who has never heard of barriers should see how a checkpoint works.

    with watching() as watched:
        storm_run(subject, 7)
    Path("storm.svg").write_text(svg(Caption(title="A storm"), watched[-1].lines, watched[-1]))

Where nobody watched it is drawn from the journal alone, without levels.  SVG refers to nothing outside and follows the
reader's choice of light or dark; ``page`` puts it on a page of HTML that also tells what one points at.

**The room.**  ``facts.py`` is what a picture knows, ``reading.py`` finds it in a journal.  ``choice.py`` says which
entries of a long run are shown, ``scale.py`` where they are, ``sheet.py`` at which height.  ``whole.py`` puts the rows
together: ``marks.py``, ``rows.py``, ``outside.py``, ``lanes.py``, ``barriers.py``, ``legend.py``.  Everything is drawn
on a ``canvas.py``, where all text is escaped.
"""

from __future__ import annotations

from actorflow.simulation.picture.legend import Caption, Verdict
from actorflow.simulation.picture.marks import Note
from actorflow.simulation.picture.page import page
from actorflow.simulation.picture.whole import svg

__all__ = ("Caption", "Note", "Verdict", "page", "svg")
