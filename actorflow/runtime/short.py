"""The short form of a record in an error: 200 characters at most, whatever its ``repr`` does."""

from __future__ import annotations

__all__ = ("short",)

LENGTH = 200


def short(value: object) -> str:
    """``repr(value)``, cut; a ``repr`` that raises is replaced by the type's name."""
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"
