"""How is an instance of a user's class taken apart, and put together again?

Dataclasses, attrs classes, ``NamedTuple``s and msgspec structs are taken apart by the names of their fields; ``Enum``s
by the names of their members.  They are put together without their ``__init__`` (and what it checks or converts), so
that an instance comes back as it was.  attrs and msgspec are recognised by what they leave on a class, never imported.

An instance that holds more than its declared fields is refused, as the rest would be lost; only what a
``cached_property`` remembers may go, as it comes back by itself.  (Looking costs a class without slots some memory per
instance, so ``@dataclass(slots=True)`` is the better class for state.)

Instances come in columns: a list of them becomes one list per field, which costs far less than one at a time.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, Flag
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final

from actorflow.errors import InvalidJob
from actorflow.model.leaves import Unwritable

__all__ = ("EnumShape", "RecordShape", "Shape", "called", "is_recordable", "shape_of")

_HEAP_TYPE: Final = 1 << 9  # CPython's flag of a class that was made by a class statement
_CACHED_HASH: Final = "_attrs_cached_hash"
_GENERIC_TRACE: Final = "__orig_class__"  # what typing leaves on an instance that was made by Box[int](…)


def called(cls: type) -> str:
    """What messages call a class."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


class EnumShape:
    """Members of one ``Enum``, by name; several names with ``|`` between them for a ``Flag``."""

    frozen: Final = True

    def __init__(self, cls: type[Enum]) -> None:
        self.cls = cls
        self._is_flag = issubclass(cls, Flag)

    def take(self, values: list[Any]) -> list[str]:
        """Return the members' names."""
        if self._is_flag:
            return [self._names(value) for value in values]
        return list(map(attrgetter("_name_"), values))

    def build(self, name: str) -> Any:
        """Return the member of a name, or raise ``KeyError``."""
        members = self.cls.__members__
        if not self._is_flag:
            return members[name]
        flag: Any = self.cls(0)
        for part in filter(None, name.split("|")):
            flag |= members[part]
        return flag

    def _names(self, value: Flag) -> str:
        name = "|".join(str(member._name_) for member in value)
        if self.build(name) is not value:
            raise Unwritable(f"it holds bits that no member of {called(self.cls)} names; give each bit a member")
        return name


class RecordShape(ABC):
    """Instances of one class with named fields."""

    def __init__(self, cls: type, fields: Iterable[str], *, frozen: bool) -> None:
        self.cls, self.fields, self.frozen = cls, tuple(fields), frozen
        cached = {
            name
            for base in cls.__mro__
            for name, attribute in vars(base).items()
            if isinstance(attribute, functools.cached_property)
        }
        self._has_dict = cls.__dictoffset__ != 0
        self._expected = frozenset(self.fields) | cached | {_CACHED_HASH, _GENERIC_TRACE}
        self._hidden = tuple(sorted(_slots(cls) - self._expected))
        self._getters = [attrgetter(name) for name in self.fields]

    def take(self, values: list[Any]) -> list[list[Any]]:
        """Return one column per field, in the order of ``fields``."""
        self._refuse_more(values)
        try:
            return [list(map(getter, values)) for getter in self._getters]
        except AttributeError:
            for name, value in ((name, value) for value in values for name in self.fields):
                if not hasattr(value, name):
                    raise Unwritable(f"its field {name!r} is not set; give it a value") from None
            raise

    def take_one(self, value: Any) -> tuple[Any, ...]:
        """Return the fields of one instance."""
        return tuple(column[0] for column in self.take([value]))

    def build_one(self, parts: Iterable[Any]) -> Any:
        """Return one instance with these fields."""
        columns = {name: [part] for name, part in zip(self.fields, parts, strict=True)}
        return self.build(columns, 1)[0]

    @property
    @abstractmethod
    def optional(self) -> frozenset[str]:
        """The fields that have a default."""

    @abstractmethod
    def build(self, columns: Mapping[str, list[Any]], count: int) -> list[Any]:
        """Return ``count`` instances; fields without a column get their defaults."""

    def _refuse_more(self, values: list[Any]) -> None:
        if self._has_dict and not self._expected.issuperset(chain.from_iterable(map(vars, values))):
            names = sorted({name for value in values for name in vars(value)} - self._expected)
            raise self._undeclared("attribute", names[0])
        for name in self._hidden:
            if any(hasattr(value, name) for value in values):
                raise self._undeclared("slot", name)

    def _undeclared(self, what: str, name: str) -> Unwritable:
        return Unwritable(f"its {what} {name!r} is no field of {called(self.cls)} and would be lost; declare it there")


Shape = RecordShape | EnumShape


class _Attributes(RecordShape):
    """Dataclasses and attrs classes."""

    def __init__(
        self, cls: type, fields: Iterable[str], defaults: dict[str, Callable[[Any], Any]], *, frozen: bool
    ) -> None:
        super().__init__(cls, fields, frozen=frozen)
        self._defaults = defaults
        self._caches_hash = _CACHED_HASH in _slots(cls) or _CACHED_HASH in _names_in(cls.__hash__)
        self._get = attrgetter(*self.fields) if len(self.fields) > 1 else None
        if "__attrs_attrs__" in vars(cls):  # its slots are attrs' own: what is no field there is a cached property
            self._hidden = ()

    @property
    def optional(self) -> frozenset[str]:
        return frozenset(self._defaults)

    def take_one(self, value: Any) -> tuple[Any, ...]:
        if self._get is None or self._hidden or (self._has_dict and not self._expected.issuperset(vars(value))):
            return super().take_one(value)
        try:
            parts: tuple[Any, ...] = self._get(value)
        except AttributeError:
            return super().take_one(value)
        return parts

    def build_one(self, parts: Iterable[Any]) -> Any:
        instance: Any = object.__new__(self.cls)
        for name, part in zip(self.fields, parts, strict=True):
            object.__setattr__(instance, name, part)
        if self._caches_hash:
            object.__setattr__(instance, _CACHED_HASH, None)
        return instance

    def build(self, columns: Mapping[str, list[Any]], count: int) -> list[Any]:
        instances: list[Any] = list(map(object.__new__, repeat(self.cls, count)))
        for name in self.fields:
            if name in columns:
                _set(instances, name, columns[name])
        for name in self.fields:
            if name not in columns:
                _set(instances, name, map(self._defaults[name], instances))
        if self._caches_hash:  # hashes of strings differ from process to process
            _set(instances, _CACHED_HASH, repeat(None))
        return instances


class _NamedTuple(RecordShape):
    def __init__(self, cls: Any) -> None:
        super().__init__(cls, cls._fields, frozen=True)
        self._expected = frozenset({_GENERIC_TRACE})
        self._defaults: dict[str, Any] = cls._field_defaults

    @property
    def optional(self) -> frozenset[str]:
        return frozenset(self._defaults)

    def take(self, values: list[Any]) -> list[list[Any]]:
        self._refuse_more(values)
        if set(map(len, values)) - {len(self.fields)}:
            raise Unwritable(f"it does not have the {len(self.fields)} fields of {called(self.cls)}")
        flat = list(chain.from_iterable(values))
        return [flat[start :: len(self.fields)] for start in range(len(self.fields))]

    def build(self, columns: Mapping[str, list[Any]], count: int) -> list[Any]:
        full = [columns[name] if name in columns else [self._defaults[name]] * count for name in self.fields]
        rows: Iterable[tuple[Any, ...]] = zip(*full, strict=True) if full else repeat((), count)
        return list(map(tuple.__new__, repeat(self.cls), rows))


class _Struct(RecordShape):
    def __init__(self, cls: Any) -> None:
        super().__init__(cls, cls.__struct_fields__, frozen=bool(cls.__struct_config__.frozen))
        missing = sys.modules["msgspec"].NODEFAULT
        defaults = cls.__struct_defaults__
        names = self.fields[len(self.fields) - len(defaults) :]
        given = zip(names, defaults, strict=True)
        self._optional = frozenset(name for name, default in given if default is not missing)

    @property
    def optional(self) -> frozenset[str]:
        return self._optional

    def build(self, columns: Mapping[str, list[Any]], count: int) -> list[Any]:
        names = [name for name in self.fields if name in columns]
        rows = zip(*(columns[name] for name in names), strict=True) if names else repeat((), count)
        instances = [self.cls(**dict(zip(names, row, strict=True))) for row in rows]
        if hasattr(self.cls, "__post_init__"):  # it may have changed what it was given
            force = sys.modules["msgspec"].structs.force_setattr
            for name in names:
                deque(map(force, instances, repeat(name), columns[name]), maxlen=0)
        return instances


def _set(instances: list[Any], name: str, values: Iterable[Any]) -> None:
    deque(map(object.__setattr__, instances, repeat(name), values), maxlen=0)


def _slots(cls: type) -> set[str]:
    slots: set[str] = set()
    for base in cls.__mro__:
        names = vars(base).get("__slots__", ())
        private = f"_{base.__name__.lstrip('_')}"
        for name in (names,) if isinstance(names, str) else tuple(names):
            slots.add(private + name if name.startswith("__") and not name.endswith("__") else name)
    return slots - {"__dict__", "__weakref__"}


def _names_in(function: Any) -> tuple[str, ...]:
    return getattr(getattr(function, "__code__", None), "co_names", ())


# ── finding the shape of a class ─────────────────────────────────────────────────────────────


def is_recordable(cls: Any) -> bool:
    """Whether a class has a shape, so that it can be registered."""
    return isinstance(cls, type) and _kind(cls) is not None and _opaque_base(cls) is None


def shape_of(cls: type) -> Shape:
    """Return the shape of a class, or raise ``InvalidJob`` that says what to do about it."""
    if not isinstance(cls, type):
        raise InvalidJob(f"{cls!r} is no class; put @af.record above a class")
    kind = _kind(cls)
    if kind is None:
        raise InvalidJob(
            f"{called(cls)} is no dataclass, attrs class, NamedTuple, Enum or msgspec struct, so its fields are not "
            "known; put @dataclass above the class and @af.record above that"
        )
    if (base := _opaque_base(cls)) is not None:
        raise InvalidJob(
            f"{called(cls)} holds more than its fields, as it is a subclass of {called(base)}; "
            f"give it a field of type {base.__name__} instead"
        )
    return kind(cls)


def _kind(cls: Any) -> Callable[[Any], Shape] | None:
    if issubclass(cls, Enum):
        return EnumShape
    if hasattr(cls, "__struct_fields__") and hasattr(cls, "__struct_config__") and "msgspec" in sys.modules:
        return _Struct
    if issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults"):
        return _NamedTuple
    if isinstance(getattr(cls, "__attrs_attrs__", None), tuple):
        return _attrs_shape
    if dataclasses.is_dataclass(cls):
        return _dataclass_shape
    return None


def _opaque_base(cls: type) -> type | None:
    """A base that is written in C keeps its contents where no field says so."""
    if issubclass(cls, Enum) or hasattr(cls, "__struct_fields__"):
        return None
    for base in cls.__mro__:
        if not base.__flags__ & _HEAP_TYPE and base is not object and not (base is tuple and hasattr(cls, "_fields")):
            return base
    return None


def _dataclass_shape(cls: Any) -> Shape:
    defaults: dict[str, Callable[[Any], Any]] = {}
    fields = dataclasses.fields(cls)
    for field in fields:
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = functools.partial(_constant, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = functools.partial(_made, field.default_factory)
    return _Attributes(cls, [field.name for field in fields], defaults, frozen=cls.__dataclass_params__.frozen)


def _attrs_shape(cls: Any) -> Shape:
    defaults: dict[str, Callable[[Any], Any]] = {}
    nothing = sys.modules["attr"].NOTHING
    for attribute in cls.__attrs_attrs__:
        default = attribute.default
        if default is nothing:
            continue
        if hasattr(default, "factory") and hasattr(default, "takes_self"):
            factory = default.factory
            defaults[attribute.name] = factory if default.takes_self else functools.partial(_made, factory)
        else:
            defaults[attribute.name] = functools.partial(_constant, default)
    frozen = getattr(cls.__setattr__, "__name__", "") == "_frozen_setattrs"
    return _Attributes(cls, [attribute.name for attribute in cls.__attrs_attrs__], defaults, frozen=frozen)


def _constant(value: Any, _instance: object) -> Any:
    return value


def _made(factory: Callable[[], Any], _instance: object) -> Any:
    return factory()
