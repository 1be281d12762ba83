"""How does a value become bytes, so that it comes back exactly as it went in?

``Codec`` writes CBOR with tags of our own.  A value comes back equal and of the same type at every level, or is
refused at once with the path to the part that can't be written and what to do about it:

- ``None``, ``bool``, ``int`` of any size, ``float`` with every bit (NaNs too), ``complex``, ``str``, ``bytes``,
  ``bytearray``, ``range``, ``Decimal``, ``Fraction``, ``UUID``, ``date``, ``time``, ``datetime``, ``timedelta``, zones;
- ``list``, ``tuple``, ``dict`` in its order, ``set``, ``frozenset``, ``deque`` with its bound, ``OrderedDict``,
  ``Counter``, and ``defaultdict`` where its factory is a type of the language;
- instances of registered classes (``registry.py``): dataclasses, attrs classes, ``NamedTuple``s, ``Enum``s, msgspec
  structs.

Refused are subclasses of all these that are not registered, text with lone surrogates, other ``tzinfo``s, values that
hold themselves, and what nests more than 100 deep.  Values that are shared come back as copies.

What is read is not believed: damaged or made-up bytes are a ``CorruptObject``, a name that is not registered is an
``IncompatibleState``, and no code is ever found by what some bytes say.

``packing.py`` and ``unpacking.py`` hold the format, ``envelope.py`` what is around it in storage.
"""

from __future__ import annotations

from typing import Any

from actorflow.errors import ActorflowError, CorruptObject, InvalidValue
from actorflow.model.annotations import types_in
from actorflow.model.copies import Copier
from actorflow.model.envelope import seal, unseal
from actorflow.model.fingerprints import fingerprint
from actorflow.model.leaves import PLAIN, Unwritable
from actorflow.model.locating import MAX_DEPTH, locate
from actorflow.model.packing import Packer, dump
from actorflow.model.registry import Registry, default_registry, record
from actorflow.model.unpacking import Malformed, Unpacker, load

__all__ = ("MAX_DEPTH", "Codec", "Registry", "default_registry", "fingerprint", "record", "seal", "types_in", "unseal")

_BARE = PLAIN - {float}


class Codec:
    """Writes and reads values, with the classes of one registry (by default those that ``@af.record`` marked).

    ``foreign`` is for tools: it shows instances of unknown classes as mappings with the class's name under ``"@"``.
    """

    __slots__ = ("_copier", "_packer", "_unpacker", "copy", "is_immutable", "registry")

    def __init__(self, registry: Registry | None = None, *, foreign: bool = False) -> None:
        self.registry = default_registry if registry is None else registry
        self._packer = Packer(self.registry)
        self._unpacker = Unpacker(self.registry, foreign=foreign)
        self._copier = Copier(self.registry)
        self.copy = self._copier.copy
        self.is_immutable = self._copier.is_immutable

    def encode(self, value: Any, path: str = "value") -> bytes:
        """Return a value's bytes; ``path`` is what an error calls the value."""
        try:
            return self._encode(value)
        except Unwritable as error:
            raise self._refusal(value, path, error) from None

    def decode(self, data: bytes, name: str = "a value") -> Any:
        """Return the value of these bytes; ``name`` is what an error calls them."""
        try:
            tree = load(data)
            if type(tree) in _BARE:
                return tree
            if type(tree) is list:
                raise Malformed("a list of values where one value belongs")
            values = self._unpacker.column(tree)
            if len(values) != 1:
                raise Malformed(f"{len(values)} values where one belongs")
            return values[0]
        except ActorflowError:
            raise
        except (Exception, RecursionError) as error:
            raise _corrupt(name, error) from error

    def encode_column(self, values: list[Any], path: str = "values") -> bytes:
        """Return the bytes of many values of one kind; far cheaper than one by one."""
        try:
            return dump(self._packer.column(values))
        except (Unwritable, RecursionError) as error:
            for index, value in enumerate(values):
                self.encode(value, f"{path}[{index}]")
            raise self._refusal(values, path, Unwritable(str(error))) from None

    def decode_column(self, data: bytes, name: str = "a column of values") -> list[Any]:
        """Return the values of these bytes; ``name`` is what an error calls them."""
        try:
            return self._unpacker.column(load(data))
        except ActorflowError:
            raise
        except (Exception, RecursionError) as error:
            raise _corrupt(name, error) from error

    def _encode(self, value: Any) -> bytes:
        try:
            return dump(value if type(value) in _BARE else self._packer.column([value]))
        except RecursionError:
            raise Unwritable("it nests too deep, or it holds itself") from None

    def _refusal(self, value: Any, path: str, error: Unwritable) -> InvalidValue:
        path, reason = locate(value, path, self.registry, self._encode, error)
        return InvalidValue(f"{path} can't be written down exactly: {reason}")


def _corrupt(name: str, error: BaseException) -> CorruptObject:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Malformed):
        cause = cause.__cause__
    return CorruptObject(f"{name}: these bytes were damaged, or not written by actorflow: {cause or error}")
