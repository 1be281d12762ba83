"""How are the records of a window gathered, without keeping the records?

An :class:`Aggregate` is a frozen value of plain functions over *accumulators*:

* ``first(value)`` makes an accumulator of one record, ``add(accumulator, value)`` puts another one in, and may change
  it in place, ``result(accumulator)`` reads it;
* ``merge(earlier, later)`` joins two into a new one and changes neither; it must be associative;
* ``subtract(whole, part)``, if there is one, takes a part out again and changes neither: ``merge`` is then commutative
  and ``subtract(merge(a, b), b)`` exactly ``a``.  Sums of floats are not exact, so they have none.

Windows that slide keep a running total where an aggregate can subtract, and two stacks where it can't (``slices.py``).
An accumulator is never ``None``: to state that is no value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from actorflow.dataflow.functions import Colour, check_function, colour_of, describe
from actorflow.errors import InvalidJob

__all__ = ("Aggregate", "aggregating", "average", "count", "largest", "smallest", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """How records become a result; made by the functions of this module, or of :func:`aggregating`."""

    first: Callable[[Any], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    subtract: Callable[[Any, Any], Any] | None = None
    result: Callable[[Any], Any] | None = None
    """What is given; without it the accumulator itself, as a copy where it could be changed in place."""
    own: Callable[[Any], Any] | None = None
    """Copies an accumulator; ``None`` says that accumulators can't be changed in place."""
    only_counts: bool = False
    """Whether accumulators are numbers of records, so that no value has to be looked at."""


def _identity(value: Any) -> Any:
    return value


def _one(_value: Any) -> int:
    return 1


def _one_more(number: int, _value: Any) -> int:
    return number + 1


def count() -> Aggregate:
    """How many records there are."""
    return Aggregate(first=_one, add=_one_more, merge=operator.add, subtract=operator.sub, only_counts=True)


def total(of: Callable[[Any], Any] | None = None, *, whole_numbers: bool = False) -> Aggregate:
    """The sum of what ``of`` gives for each record (by default: of the records).

    With ``whole_numbers=True`` each must be an ``int``, and windows that slide can subtract; ``TypeError`` for others.
    """
    value_of = _checked("total", of)
    if not whole_numbers:
        return Aggregate(first=value_of, add=lambda so_far, value: so_far + value_of(value), merge=operator.add)

    def whole(value: Any) -> int:
        number = value_of(value)
        if not isinstance(number, int):
            raise TypeError(f"total(whole_numbers=True) met {number!r:.80}; floats can't be subtracted exactly")
        return number

    return Aggregate(
        first=whole,
        add=lambda so_far, value: so_far + whole(value),
        merge=operator.add,
        subtract=operator.sub,
    )


def largest(of: Callable[[Any], Any] | None = None) -> Aggregate:
    """The largest of what ``of`` gives for each record; of equal ones the earlier."""
    return _chosen(_checked("largest", of), _larger)


def smallest(of: Callable[[Any], Any] | None = None) -> Aggregate:
    """The smallest of what ``of`` gives for each record; of equal ones the earlier."""
    return _chosen(_checked("smallest", of), _smaller)


def _larger(best: Any, other: Any) -> Any:
    return other if other > best else best  # noqa: FURB136 - half the time of max()


def _smaller(best: Any, other: Any) -> Any:
    return other if other < best else best  # noqa: FURB136 - the same


def _chosen(value_of: Callable[[Any], Any], better: Callable[[Any, Any], Any]) -> Aggregate:
    add = better if value_of is _identity else lambda best, value: better(best, value_of(value))
    return Aggregate(first=value_of, add=add, merge=better)


def average(of: Callable[[Any], Any] | None = None) -> Aggregate:
    """The mean of what ``of`` gives for each record, as a float; exact until the last step, so it can subtract."""
    value_of = _checked("average", of)

    def exact(value: Any) -> int | Fraction:
        number = value_of(value)
        return number if type(number) is int else Fraction(number)

    return Aggregate(
        first=lambda value: (exact(value), 1),
        add=lambda pair, value: (pair[0] + exact(value), pair[1] + 1),
        merge=lambda one, other: (one[0] + other[0], one[1] + other[1]),
        subtract=lambda whole, part: (whole[0] - part[0], whole[1] - part[1]),
        result=lambda pair: float(Fraction(pair[0]) / pair[1]),
    )


def aggregating(
    create: Callable[[], Any],
    add: Callable[[Any, Any], Any],
    merge: Callable[[Any, Any], Any],
    *,
    subtract: Callable[[Any, Any], Any] | None = None,
    result: Callable[[Any], Any] | None = None,
) -> Aggregate:
    """An aggregate of your own functions; ``create()`` makes an empty accumulator.

    Raises ``InvalidJob`` for what is not a plain function of that many arguments.
    """
    for what, function, arguments in (
        ("create", create, 0),
        ("add", add, 2),
        ("merge", merge, 2),
        ("subtract", subtract, 2),
        ("result", result, 1),
    ):
        if function is not None:
            _check("aggregating", what, function, arguments)
    return Aggregate(
        first=lambda value: add(create(), value),
        add=add,
        merge=merge,
        subtract=subtract,
        result=result,
        own=lambda accumulator: merge(create(), accumulator),
    )


def _checked(where: str, of: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if of is None:
        return _identity
    _check(where, "function", of, 1)
    return of


def _check(where: str, what: str, function: Callable[..., Any], arguments: int) -> None:
    check_function(where, function, arguments, what=what)
    if colour_of(function) is not Colour.PLAIN:
        raise InvalidJob(f"{where}: its {what} {describe(function)} is {colour_of(function)}; it must be plain")
