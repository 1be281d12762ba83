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
from itertools import chain
from operator import countOf
from typing import Any, Final
from zlib import crc32

from actorflow.errors import ActorflowError, CorruptObject, InvalidValue, RestoreFailed
from actorflow.model.codec import Codec
from actorflow.model.key_groups import key_of_token

__all__ = ("Block", "encode_block", "read_blocks")

_FRAME: Final = struct.Struct(">4sII")  # mark, length, checksum
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
    body = codec.encode([block.state, block.kind, is_wrapped, *columns])
    return _FRAME.pack(_MARK, len(body), crc32(body)) + body


def _blame(codec: Codec, operator: str, block: Block) -> None:
    """Find the entry that can't be written and say whose it is."""
    for token, value in zip(block.tokens, block.values, strict=True):
        try:
            codec.encode_column([value])
        except InvalidValue as error:
            raise InvalidValue(f"operator {operator!r}, state {block.state!r}, key {_shown(token)}: {error}") from error


def _shown(token: Any) -> str:
    try:
        text = repr(key_of_token(token))
    except ActorflowError:  # of a class that only the job knows
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
        fields = codec.decode(body)
    except ActorflowError as error:
        raise _corrupt(operator, number, str(error)) from error
    match fields:
        case [str(state), str(kind), bool(is_wrapped), bytes(token_column), bytes(value_column)]:
            pass
        case _:
            raise _corrupt(operator, number, "it is not laid out as a block is")
    try:
        tokens, values = codec.decode_column(token_column), codec.decode_column(value_column)
    except CorruptObject as error:
        raise _corrupt(operator, number, f"state {state!r}: {error}") from error
    except ActorflowError as error:  # a class that this job did not register, or one that has changed
        raise RestoreFailed(f"operator {operator!r}, state {state!r}: {error}") from error
    if len(tokens) != len(values):
        raise _corrupt(operator, number, f"state {state!r}: {len(tokens)} keys for {len(values)} values")
    expected = (bytes,) if is_wrapped else _PLAIN
    if sum(countOf(map(type, tokens), kind) for kind in expected) != len(tokens):
        raise _corrupt(operator, number, f"state {state!r}: something in it is not a key")
    return Block(state, kind, list(zip(tokens, strict=True)) if is_wrapped else tokens, values)
