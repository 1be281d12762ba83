"""To which key group, and so to which subtask, does a key belong?

A key group is the unit of keyed state that moves when the parallelism changes.  Its number is a stable hash of the
key's canonical bytes: CRC-32, mixed by the last round of murmur, modulo the maximum parallelism (semantics 5.1).  The
scheme's name is written in every manifest, because state filed under another scheme would never be found again.

In memory, state is filed under *tokens*.  A dict would merge ``1``, ``1.0`` and ``True``, so a key is its own token
only where it is exactly a ``str``, ``bytes`` or ``int``; any other is filed under a one-tuple of its canonical bytes.

Mixing is most of the price of a key that was not seen before, so many hashes are mixed at once, as 64-bit lanes of one
big integer.  Nothing here asks Python's own hash, which is another one in every process.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from operator import countOf, itemgetter
from typing import Any, Final
from zlib import crc32

from actorflow.errors import InvalidValue
from actorflow.model.key_decoding import decode_key
from actorflow.model.key_encoding import ClassNames, encode_key

__all__ = (
    "MAX_PARALLELISM_LIMIT",
    "SCHEME",
    "KeyRouter",
    "OwnedKeys",
    "bytes_of_token",
    "decode_key",
    "default_max_parallelism",
    "encode_key",
    "key_group",
    "key_groups",
    "key_of_token",
    "murmur",
    "murmur_many",
    "range_of",
    "subtask_of",
    "token_of",
    "tokens_of",
)

SCHEME: Final = "crc32/1"
"""The name of this way from keys to key groups; a manifest with another one is refused."""

MAX_PARALLELISM_LIMIT: Final = 32_768
"""The most key groups that an operator can have."""

_FEWEST_GROUPS: Final = 128
_WORD: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000

# crc32 goes on from the code of the type, so that nothing has to be joined before it.
_STR_SEED: Final = crc32(b"\x02")
_INT_SEEDS: Final = [crc32(bytes((0x14 + size,))) for size in range(9)]


# ── tokens ───────────────────────────────────────────────────────────────────────────────────


def token_of(key: Any, names: ClassNames | None = None) -> Any:
    """Return what state of a key is filed under."""
    kind = type(key)
    if kind is int or kind is bytes:
        return key
    if kind is str:
        _refuse_lone_surrogates((key,))
        return key
    return (encode_key(key, names),)


def tokens_of(keys: list[Any], names: ClassNames | None = None) -> list[Any] | None:
    """Return the tokens of a batch's keys, or ``None`` when the keys are their own tokens, which is cheap to see."""
    if not keys:
        return None
    kind = type(keys[0])
    if not [1 for key in keys if type(key) is not kind]:  # half the price of counting types on 3.11
        if kind is str:
            joined = "".join(keys)
            if not joined.isascii():
                try:
                    joined.encode()
                except UnicodeEncodeError:
                    _refuse_lone_surrogates(keys)
            return None
        if kind is int or kind is bytes:
            return None
    tokens = [token_of(key, names) for key in keys]
    return tokens if countOf(map(type, tokens), tuple) else None


def _refuse_lone_surrogates(keys: Iterable[str]) -> None:
    for key in keys:
        if not key.isascii():
            encode_key(key)


def bytes_of_token(token: Any) -> bytes:
    """Return the canonical bytes of the key behind a token."""
    if type(token) is tuple:
        data: bytes = token[0]
        return data
    return encode_key(token)


def key_of_token(token: Any, names: ClassNames | None = None) -> Any:
    """Return the key behind a token, in its canonical form."""
    return decode_key(token[0], names) if type(token) is tuple else token


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────


def murmur(hash32: int) -> int:
    """Mix 32 bits; the result is never negative."""
    c = hash32 * 0xCC9E2D51 & _WORD
    c = (c << 15 | c >> 17) & _WORD
    c = c * 0x1B873593 & _WORD
    c = (c << 13 | c >> 19) & _WORD
    c = c * 5 + 0xE6546B64 & _WORD
    c ^= 4
    c ^= c >> 16
    c = c * 0x85EBCA6B & _WORD
    c ^= c >> 13
    c = c * 0xC2B2AE35 & _WORD
    c ^= c >> 16
    return c if c < _SIGN else (_WORD + 1 - c) & ~_SIGN


def murmur_many(hashes: Sequence[int]) -> array[int]:
    """Mix many unsigned 32-bit hashes at once, each in a 64-bit lane of one integer, where no step carries over."""
    size = len(hashes)
    unit = int.from_bytes(b"\x01\0\0\0\0\0\0\0" * size, "little")  # a one in every lane
    word = unit * _WORD
    c = int.from_bytes(array("Q", hashes).tobytes(), sys.byteorder)
    c = c * 0xCC9E2D51 & word
    c = (c << 15 | c >> 17) & word  # what a shift moves over a lane's border is masked away
    c = c * 0x1B873593 & word
    c = (c << 13 | c >> 19) & word
    c = c * 5 + unit * 0xE6546B64 & word
    c ^= unit * 4
    c ^= c >> 16 & word
    c = c * 0x85EBCA6B & word
    c ^= c >> 13 & word
    c = c * 0xC2B2AE35 & word
    c ^= c >> 16 & word
    negative = c >> 31 & unit
    c = (c ^ negative * _WORD) + negative & unit * ~-_SIGN
    mixed = array("Q")
    mixed.frombytes(c.to_bytes(size * 8, sys.byteorder))
    return mixed


def key_group(token: Any, max_parallelism: int) -> int:
    """Return the key group of a token."""
    return murmur(crc32(bytes_of_token(token))) % max_parallelism


def key_groups(tokens: Sequence[Any], max_parallelism: int) -> list[int]:
    """Return the key group of each token; far cheaper than one by one."""
    return [mixed % max_parallelism for mixed in murmur_many(_hashes(tokens))]


def _hashes(tokens: Sequence[Any]) -> list[int]:
    """Return the CRC-32 of each token's canonical bytes."""
    kind = type(tokens[0]) if tokens else None
    if kind is str and countOf(map(type, tokens), kind) == len(tokens):
        joined = ("\0\n".join(tokens) + "\0").encode()  # in one call; right if no text holds a zero or a line break
        pieces = joined.split(b"\n")
        if len(pieces) == len(tokens) == joined.count(b"\0"):
            return [crc32(piece, _STR_SEED) for piece in pieces]
    elif kind is int and countOf(map(type, tokens), kind) == len(tokens) and min(tokens) > 0 == max(tokens) >> 64:
        seeds = _INT_SEEDS
        return [crc32(token.to_bytes(size := (token.bit_length() + 7) >> 3, "big"), seeds[size]) for token in tokens]
    return [crc32(bytes_of_token(token)) for token in tokens]


def subtask_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """Return the subtask that owns a key group."""
    return group * parallelism // max_parallelism


def range_of(subtask: int, parallelism: int, max_parallelism: int) -> range:
    """Return the key groups that a subtask owns."""
    first = -(-subtask * max_parallelism // parallelism)
    last = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(first, last + 1)


def default_max_parallelism(parallelism: int) -> int:
    """Return the number of key groups where nobody said it: a power of two, half as many again as subtasks or more."""
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), _FEWEST_GROUPS), MAX_PARALLELISM_LIMIT)


class OwnedKeys:
    """Says of a token whether its key group is among those that a subtask owns."""

    __slots__ = ("groups", "max_parallelism")

    def __init__(self, groups: range, max_parallelism: int) -> None:
        self.groups, self.max_parallelism = groups, max_parallelism

    def __call__(self, token: Any) -> bool:
        return key_group(token, self.max_parallelism) in self.groups

    def select(self, tokens: Sequence[Any]) -> list[bool]:
        """Say it of many at once; far cheaper."""
        first, end = self.groups.start, self.groups.stop
        return [first <= group < end for group in key_groups(tokens, self.max_parallelism)]


# ── routing ──────────────────────────────────────────────────────────────────────────────────


class KeyRouter:
    """Sends the keys of one keyed exchange to channels: the subtask that owns each.

    A bounded cache answers for keys seen before.  It is emptied when full, which costs a hit nothing, and it rests for
    a while when fewer than half of the look-ups hit, because each miss costs more with it than without.
    """

    CACHED: Final = 65_536
    """How many keys the cache holds; also after how many look-ups it is judged."""
    RESTS: Final = 8
    """For how many times ``CACHED`` look-ups it rests."""

    __slots__ = ("_cache", "_channel_of", "_hits", "_looked_up", "_one", "_rests_for", "_warm")

    def __init__(self, max_parallelism: int, parallelism: int) -> None:
        if not 1 <= parallelism <= max_parallelism <= MAX_PARALLELISM_LIMIT:
            raise InvalidValue(
                f"a parallelism of {parallelism} does not fit a maximum parallelism of {max_parallelism} "
                f"(1 ≤ parallelism ≤ maximum ≤ {MAX_PARALLELISM_LIMIT})"
            )
        self._channel_of = [subtask_of(group, parallelism, max_parallelism) for group in range(max_parallelism)]
        self._one = parallelism == 1
        self._cache: dict[Any, int] = {}
        self._hits = self._looked_up = self._rests_for = 0
        self._warm = False

    @property
    def is_caching(self) -> bool:
        """Whether the cache is in use."""
        return not self._rests_for

    def channels(self, tokens: list[Any]) -> list[int]:
        """Return the channel of each token; a token is the key itself where a batch has no tokens of its own."""
        if self._one or not tokens:
            return [0] * len(tokens)
        if self._rests_for:
            self._rests_for = max(0, self._rests_for - len(tokens))
            return self._computed(tokens)
        self._looked_up += len(tokens)
        try:
            # One call for all of them; a single token would not come back in a tuple.
            channels = list(itemgetter(*tokens, tokens[0])(self._cache))
            del channels[-1]
            self._hits += len(tokens)
        except KeyError:
            channels = self._filled(tokens)
        if self._looked_up >= self.CACHED:
            self._judge()
        return channels

    def _filled(self, tokens: list[Any]) -> list[int]:
        """Answer from the cache what is there, compute the others together and keep them."""
        cache = self._cache
        found = list(map(cache.get, tokens))
        missing = [token for token, channel in zip(tokens, found, strict=True) if channel is None]
        computed = self._computed(missing)
        if len(cache) + len(missing) > self.CACHED:
            cache.clear()
        cache.update(zip(missing, computed, strict=True))
        self._hits += len(tokens) - len(missing)
        following = iter(computed)
        return [next(following) if channel is None else channel for channel in found]

    def _computed(self, tokens: list[Any]) -> list[int]:
        channel_of = self._channel_of
        groups = len(channel_of)
        return [channel_of[mixed % groups] for mixed in murmur_many(_hashes(tokens))]

    def _judge(self) -> None:
        """The first look-ups fill the cache and say nothing about it; of those that follow half must hit."""
        if self._warm and self._hits * 2 < self._looked_up:
            self._cache.clear()
            self._rests_for = self.CACHED * self.RESTS
            self._warm = False
        else:
            self._warm = True
        self._hits = self._looked_up = 0
