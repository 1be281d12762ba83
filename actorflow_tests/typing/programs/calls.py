"""Functions and operators that wait: what they are called with, and what comes out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import assert_type

import actorflow as af
from actorflow.connectors import function, memory


async def price(article: str) -> tuple[str, int]:
    return article, 100 * len(article)


async def is_sold(article: str) -> bool:
    return bool(article)


async def parts(article: str) -> AsyncIterator[bytes]:
    yield article.encode()


async def variants(article: str) -> list[str]:
    return [article, article.upper()]


class Enrich(af.KeyedOperator[int, str, float]):
    asked = af.ValueState(int)

    async def on_record(self, article: str, context: af.Context[int]) -> list[float]:
        assert_type(self.asked.value, int)
        self.asked.value += context.key
        return [1.5]


class Pieces(af.Operator[str, int]):
    async def on_record(self, article: str, context: af.Context[None]) -> AsyncIterator[int]:
        yield len(article)


async def deliver(paid: tuple[str, int]) -> None:
    assert_type(paid, tuple[str, int])


def job() -> af.Job:
    asking = af.Job("prices")
    articles = asking.read(memory.source(["tea", "coffee"]), name="articles")
    assert_type(articles, af.Stream[str])
    prices = articles.map(price, name="ask", in_flight=50, timeout=timedelta(seconds=5), retries=3)
    assert_type(prices, af.Stream[tuple[str, int]])
    sold = articles.filter(is_sold, name="sold", ordered=False)
    assert_type(sold, af.Stream[str])
    assert_type(sold.flat_map(parts, name="parts"), af.Stream[bytes]).discard()
    assert_type(sold.flat_map(variants, name="variants"), af.Stream[str]).discard()
    assert_type(sold.map(len, name="slow", in_thread=True), af.Stream[int]).discard()
    enriched = sold.key_by(len).process(Enrich, name="enrich", in_flight=4, retry_delay=timedelta(seconds=1))
    assert_type(enriched, af.Stream[float])
    assert_type(sold.process(Pieces, name="pieces"), af.Stream[int]).discard()
    enriched.discard()
    prices.write(function.call(deliver), name="deliver")
    return asking
