"""How is keyed state written down, and read back?

As a stream of blocks.  A block holds some entries of one state: which state and of which kind, then the tokens in one
column and the values in another, which is much cheaper to encode than pairs.  Each block has a length and a checksum
in front, so a reader may be given the stream in any pieces.  Blocks are in the store's own order; who needs only some
key groups reads all and keeps those (architecture D16).

Tokens that are canonical bytes in a one-tuple stand in blocks of their own, as plain bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from operator import countOf
from typing import Any, Final
from zlib import crc32

from actorflow.errors import ActorflowError, CorruptObject, IncompatibleState, InvalidValue
from actorflow.model.codec import Codec
from actorflow.model.key_groups import decode_key, key_of_token

__all__ = ("Block", "encode_block", "read_blocks")

_FRAME: Final = struct.Struct(">4sII")  # mark, length and checksum of the body
_HEAD: Final = struct.Struct(
    ">?HHI"
)  # whether keys are wrapped; lengths of state, kind and keys, which follow, then values
_MARK: Final = b"afk1"
_PLAIN: Final = (str, bytes, int)


@dataclass(frozen=True, slots=True)
class Block:
    """Some entries of one state."""

    state: str
    kind: str
    tokens: list[Any]
    values: list[Any]


def encode_block(codec: Codec, operator: str, block: Block) -> bytes:
    """Return a block's bytes.  A value that can't be written raises ``InvalidValue`` with operator, state and key."""
    wrapped = countOf(map(type, block.tokens), tuple)
    if wrapped == 0 or wrapped == len(block.tokens):
        return _encode(codec, operator, block, is_wrapped=wrapped > 0)
    parts = []
    for is_wrapped in (False, True):
        pairs = [
            pair for pair in zip(block.tokens, block.values, strict=True) if (type(pair[0]) is tuple) == is_wrapped
        ]
        part = Block(block.state, block.kind, [token for token, _ in pairs], [value for _, value in pairs])
        parts.append(_encode(codec, operator, part, is_wrapped=is_wrapped))
    return b"".join(parts)


def _encode(codec: Codec, operator: str, block: Block, *, is_wrapped: bool) -> bytes:
    tokens = list(chain.from_iterable(block.tokens)) if is_wrapped else block.tokens
    try:
        columns = codec.encode_column(tokens), codec.encode_column(block.values)
    except InvalidValue:
        _blame(codec, operator, block)
        raise
    state, kind = block.state.encode(), block.kind.encode()
    head = _HEAD.pack(is_wrapped, len(state), len(kind), len(columns[0]))
    body = b"".join((head, state, kind, *columns))
    return _FRAME.pack(_MARK, len(body), crc32(body)) + body


def _blame(codec: Codec, operator: str, block: Block) -> None:
    """Find the entry that can't be written and say whose it is."""
    for token, value in zip(block.tokens, block.values, strict=True):
        try:
            codec.encode_column([value])
        except InvalidValue as error:
            raise InvalidValue(
                f"operator {operator!r}, state {block.state!r}, key {_shown(codec, token)}: {error}"
            ) from error


def _shown(codec: Codec, token: Any) -> str:
    try:
        text = repr(key_of_token(token, codec.registry))
    except ActorflowError:  # of a class that changed meanwhile
        text = repr(token[0])
    return text if len(text) <= 80 else f"{text[:79]}…"


# ── reading ──────────────────────────────────────────────────────────────────────────────────


def read_blocks(codec: Codec, operator: str, chunks: Iterable[bytes]) -> Iterator[Block]:
    """Read a stream of blocks, given in any pieces; one that is not what was written raises ``CorruptObject``."""
    for number, body in enumerate(_bodies(operator, chunks)):
        yield _decode(codec, operator, number, body)


def _bodies(operator: str, chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    number = 0
    for chunk in chunks:
        data = rest + chunk if rest else chunk
        at = 0
        while len(data) - at >= _FRAME.size:
            mark, length, checksum = _FRAME.unpack_from(data, at)
            if mark != _MARK:
                raise _corrupt(operator, number, "it does not begin as a block does")
            start = at + _FRAME.size
            if len(data) - start < length:
                break
            body = data[start : start + length]
            if crc32(body) != checksum:
                raise _corrupt(operator, number, "its checksum is wrong")
            yield body
            number += 1
            at = start + length
        rest = data[at:]
    if rest:
        raise _corrupt(operator, number, "it is cut short")


def _corrupt(operator: str, number: int, why: str) -> CorruptObject:
    return CorruptObject(f"operator {operator!r}: block {number} of its keyed state can't be read: {why}")


def _decode(codec: Codec, operator: str, number: int, body: bytes) -> Block:
    try:
        is_wrapped, *lengths = _HEAD.unpack_from(body)
        ends = list(accumulate(lengths, initial=_HEAD.size))
        state, kind = (body[start:end].decode() for start, end in pairwise(ends[:3]))
        columns = body[ends[2] : ends[3]], body[ends[3] :]
    except (struct.error, UnicodeDecodeError) as error:
        raise _corrupt(operator, number, f"its head is damaged: {error}") from error
    try:
        tokens, values = map(codec.decode_column, columns)
    except CorruptObject as error:
        raise _corrupt(operator, number, f"state {state!r}: {error}") from error
    except ActorflowError as error:  # a class that this job did not register, or one that has changed
        raise IncompatibleState(f"operator {operator!r}, state {state!r}: {error}") from error
    if len(tokens) != len(values):
        raise _corrupt(operator, number, f"state {state!r}: {len(tokens)} keys for {len(values)} values")
    expected = (bytes,) if is_wrapped else _PLAIN
    if sum(countOf(map(type, tokens), kind) for kind in expected) != len(tokens):
        raise _corrupt(operator, number, f"state {state!r}: something in it is not a key")
    if not is_wrapped:
        return Block(state, kind, tokens, values)
    for data in tokens[:1]:  # all of a state's keys are of one kind, so one shows whether they can still be met
        _meet(codec, operator, state, data)
    return Block(state, kind, list(zip(tokens, strict=True)), values)


def _meet(codec: Codec, operator: str, state: str, data: bytes) -> None:
    try:
        decode_key(data, codec.registry)
    except CorruptObject as error:
        raise CorruptObject(f"operator {operator!r}, state {state!r}: {error}") from error
    except ActorflowError as error:
        raise IncompatibleState(f"operator {operator!r}, state {state!r}, a key: {error}") from error
