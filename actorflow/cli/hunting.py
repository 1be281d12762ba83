"""``actorflow simulate --mutants``: after how many seeds does the swarm find each planted fault?

A fault that is planted is seen by everything in its interpreter, so child processes look for one at a time each.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from typing import Any

from actorflow.cli.children import cores, serve, share
from actorflow.cli.exits import Exit, UsageMistake
from actorflow.simulation.mutants import MUTANTS, hunt_one, summary

__all__ = ("hunt_mutants",)

SEEDS = 2_000
"""Within so many seeds every one must be found, unless told otherwise."""


def hunt_mutants(*, seeds: int | None, jobs: int | None, as_json: bool, serving: bool) -> int:
    """Look for every planted fault; 1 when one is not found."""
    out, within = sys.stdout, seeds or SEEDS
    names = list(MUTANTS)
    with redirect_stdout(sys.stderr):  # jobs may print
        if serving:
            return serve(lambda name: {"seeds": hunt_one(name, within)}, sys.stdin, out)
        each: dict[str, int | None] = {}

        def tell(place: int, answer: dict[str, Any] | str) -> None:
            if isinstance(answer, str):
                raise UsageMistake(f"mutant {names[place]}: {answer}")
            found = each[names[place]] = answer["seeds"]
            said = f"found by seed {found}" if found is not None else f"not found within {within:,} seeds"
            print(f"{len(each):>3} of {len(names)}  {names[place]}: {said}", file=sys.stderr, flush=True)

        share(names, ["--mutants", "--seeds", str(within)], min(jobs or cores(), len(names)), tell)
    result = summary({name: each[name] for name in names})
    if as_json:
        print(json.dumps(result), flush=True)
    else:
        room = max(map(len, names))
        for name, found in result["each"].items():
            print(f"{name:<{room}}  {'not found' if found is None else found}")
        print(f"{result['found']} of {result['mutants']} mutants found, median after {result['median_seeds']} seeds")
    return Exit.DONE if result["found"] == result["mutants"] else Exit.FAILED
