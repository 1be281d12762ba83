"""Does a seed do the same on every Python and under every hash seed?

    python -m actorflow_tests.simulation.determinism --seeds 500

runs the storms of seeds 1 to 500 in every interpreter that it finds (this one, those of virtual environments beside
it, those named by ``--python``) under each of several hash seeds, one process after the other, and compares them seed
by seed.  Every other seed is a storm of the word count; those between are of jobs of other shapes, each in turn.

With ``--child`` it is one of those processes: it prints a line for each seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from actorflow.examples.word_count import word_count
from actorflow.simulation.oracle import many, storm_run
from actorflow.simulation.runs import SeedFailed
from actorflow.simulation.subject import Subject
from actorflow_tests.simulation.shapes import OUTSIDE, SHAPES

__all__ = ("HASH_SEEDS", "compare", "digests", "interpreters")

ROOT = Path(__file__).parents[2]

HASH_SEEDS = ("0", "1", "4242")

_ASK = "import sys, anyio, cbor2; print(sys.version.partition(' ')[0])"

Told = dict[int, str]
"""What the storm of each seed came to: its digest, or the sentence of a failure."""


def interpreters(named: Sequence[str] = ()) -> dict[str, str]:
    """Return the interpreters that can run us, one for each version: version → path."""
    beside = sorted(Path(sys.prefix).parent.glob("*/bin/python")) if sys.prefix != sys.base_prefix else []
    found: dict[str, str] = {}
    for python in (sys.executable, *named, *map(str, beside)):
        asked = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            found.setdefault(asked.stdout.strip(), python)
    return found


def digests(seeds: range) -> Iterator[tuple[int, str]]:
    """Run the storms of some seeds in this process."""
    subjects: dict[str, Subject] = {}
    shapes = sorted(SHAPES)
    with many():
        for seed in seeds:
            name = "" if seed % 2 else shapes[seed // 2 % len(shapes)]
            if name not in subjects:
                subjects[name] = Subject(SHAPES.get(name, word_count), OUTSIDE.get(name))
            try:
                yield seed, storm_run(subjects[name], seed).digest
            except SeedFailed as failed:
                yield seed, f"{name or 'word count'} fails: {failed}"


def compare(
    seeds: range,
    pythons: dict[str, str],
    hash_seeds: Sequence[str] = HASH_SEEDS,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[int, dict[str, str]]:
    """Run every seed in every way; return those that did not do the same in all of them: seed → way → what it told.

    ``tell`` is given a line for each process that is done.  Raises ``RuntimeError`` when one ends otherwise.
    """
    ways: dict[str, Told] = {}
    for version, python in pythons.items():
        for hash_seed in hash_seeds:
            way = f"Python {version}, hash seed {hash_seed}"
            ways[way] = _run(python, hash_seed, seeds)
            first = next(iter(ways.values()))
            differ = sum(first[seed] != ways[way][seed] for seed in seeds)
            tell(f"{way}: {len(seeds)} seeds, {differ} differ from the first")
    found = {}
    for seed in seeds:
        told = {way: its[seed] for way, its in ways.items()}
        if len(set(told.values())) > 1:
            found[seed] = told
    return found


def _run(python: str, hash_seed: str, seeds: range) -> Told:
    words = [python, "-m", __spec__.name, "--child", str(seeds.start), str(seeds.stop)]
    asked = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
    )
    if asked.returncode:
        raise RuntimeError(f"{python} ended with {asked.returncode}\n{asked.stderr}")
    return dict(json.loads(line) for line in asked.stdout.splitlines())


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    parser.add_argument("--hash-seeds", nargs="+", default=list(HASH_SEEDS))
    parser.add_argument("--child", nargs=2, type=int, metavar=("FIRST", "STOP"))
    asked = parser.parse_args()
    if asked.child:
        for told in digests(range(*asked.child)):
            print(json.dumps(told), flush=True)
        return 0

    def tell(line: str) -> None:
        print(line, flush=True)

    pythons = interpreters(asked.python)
    found = compare(range(1, asked.seeds + 1), pythons, asked.hash_seeds, tell)
    for seed, its in found.items():
        tell(f"seed {seed} differs:")
        for way, digest in its.items():
            tell(f"  {way}: {digest}")
    tell(f"{asked.seeds} seeds on {len(pythons)} Pythons under {len(asked.hash_seeds)} hash seeds: {len(found)} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
