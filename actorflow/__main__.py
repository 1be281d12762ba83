"""``python -m actorflow``: the command line, for whoever has no ``actorflow`` on the path."""

from __future__ import annotations

if __name__ == "__main__":
    from actorflow.cli import main

    raise SystemExit(main())
