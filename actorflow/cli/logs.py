"""Logs of the command line go to stderr, as text or as one JSON object per line."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict, is_dataclass

from actorflow.cli.exits import UsageMistake

__all__ = ("set_up_logs",)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"time": self.formatTime(record), "level": record.levelname.lower(), "logger": record.name}
        entry = getattr(record, "entry", None)
        if is_dataclass(entry) and not isinstance(entry, type):
            line["entry"] = type(entry).__name__
            line |= asdict(entry)
        else:
            line["message"] = record.getMessage()
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up_logs(level: str, form: str) -> None:
    """Send ``actorflow``'s logs to stderr."""
    if level.upper() not in logging.getLevelNamesMapping():
        raise UsageMistake(f"--log-level {level!r} is not known: use debug, info, warning or error")
    if form not in ("text", "json"):
        raise UsageMistake(f"--log-format {form!r} is not known: use text or json")
    out = logging.StreamHandler(sys.stderr)
    out.setFormatter(_JsonLines() if form == "json" else logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("actorflow")
    logger.addHandler(out)
    logger.setLevel(level.upper())
