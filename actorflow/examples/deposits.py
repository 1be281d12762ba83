"""Book deposits, each confirmed by another service between two writes to an account's state.

    actorflow run actorflow.examples.deposits:book_deposits

A handler that awaits has its writes buffered; they take effect at one stroke with its output, when it is done.  So no
checkpoint ever holds an account on which more is booked than is confirmed, whenever the process dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

import actorflow as af
from actorflow.connectors import console, generator

__all__ = ("Deposit", "book_deposits", "made_up", "no_half_of_a_handler")


@dataclass(frozen=True, slots=True)
class Deposit:
    """Somebody pays in."""

    account: str
    cents: int


def book_deposits() -> af.Job:
    """Book deposits and print each account after each of them: its name, what is booked, what is confirmed."""
    job = af.Job("book-deposits")
    (
        job.read(generator.generate(made_up, records=200, per_second=100), name="deposits")
        .key_by(lambda deposit: deposit.account)
        .process(Book, name="book", in_flight=16)
        .write(console.lines(), name="booked")
    )
    return job


class Book(af.KeyedOperator[str, Deposit, tuple[str, int, int]]):
    """The accounts."""

    booked = af.ValueState(int)
    confirmed = af.ValueState(int)

    async def on_record(self, deposit: Deposit, context: af.Context[str]) -> AsyncIterator[tuple[str, int, int]]:
        """Book a deposit, have it confirmed, and note that too."""
        self.booked.value += deposit.cents
        await confirm(deposit)
        self.confirmed.value += deposit.cents
        yield context.key, self.booked.value, self.confirmed.value


async def confirm(_deposit: Deposit) -> None:
    """Ask somebody who takes a moment."""
    await asyncio.sleep(0.08)


def made_up(index: int) -> Deposit:
    """Deposit ``index``, into one of five accounts."""
    return Deposit(f"account {index % 5}", 100)


def no_half_of_a_handler(rows: Iterable[tuple[str, int, int]]) -> None:
    """Raise ``AssertionError`` when an account was told on which not all is confirmed that is booked."""
    for account, booked, confirmed in rows:
        assert booked == confirmed, f"{account}: {booked} cents are booked and {confirmed} confirmed"
