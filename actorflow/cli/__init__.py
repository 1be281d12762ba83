"""The command line: ``actorflow run``, ``demo``, ``bench``, ``simulate``.

``app.py`` lists the verbs, ``targets.py`` finds jobs and reads their arguments, ``exits.py`` says what an exit code
means.  Each verb has a module of its own, which loads when it is used; ``simulate`` has several: ``trials.py``,
``children.py``, ``drawing.py``, ``shrinking.py``, ``hunting.py``, ``replay.py``.
"""

from __future__ import annotations

__all__ = ("main",)


def main() -> int:
    """Run the command line and return its exit code."""
    from actorflow.cli.app import run_app

    return run_app()
