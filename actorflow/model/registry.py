"""Which classes travel, under which names, and what becomes of their older versions?

A class is written by its *registered name* and read back by it: nothing is ever imported or searched for because some
bytes name it.  ``record`` marks a class for the whole process; a job's own registry lies on top and holds what its
annotations name.  A name belongs to one class.

Fields travel by their names.  A field that a class no longer has is dropped, one that it has gained takes its default
(and without one, reading fails at once and says so); everything else is for ``upgrades``: ``upgrades[1]`` turns the
mapping of fields of a version 1 into that of a version 2, and so on up to the class's ``version``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final, TypeVar, overload

from actorflow.errors import IncompatibleState, InvalidJob, InvalidValue
from actorflow.model.annotations import function_types, types_in
from actorflow.model.leaves import leaf_of
from actorflow.model.shapes import EnumShape, RecordShape, Shape, called, is_recordable, shape_of

__all__ = ("Registered", "Registry", "Upgrade", "default_name", "default_registry", "record")

Upgrade = Callable[[dict[str, Any]], Mapping[str, Any]]
_Class = TypeVar("_Class", bound=type)

_MEMBER: Final = "member"
"""The one field of an Enum, as its upgrades see it: the name of the member."""


def default_name(cls: type) -> str:
    """``module:QualifiedName``; ``__main__`` is called after its file, so that it is the same however it is started."""
    module = cls.__module__
    if module == "__main__":
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        module = PurePath(file).stem if file else module
    return f"{module}:{cls.__qualname__}"


@dataclass(frozen=True, slots=True, eq=False)
class Registered:
    """A class with its name, its version and what turns older versions into it."""

    name: str
    version: int
    shape: Shape
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict)

    def restore(self, version: int, columns: dict[str, list[Any]], count: int) -> list[Any]:
        """Return ``count`` instances from one column per field, as some version wrote them."""
        shape = self.shape
        if not isinstance(shape, RecordShape):
            raise IncompatibleState(f"{self.name!r} was written as a class with fields and is an Enum now")
        self._refuse_newer(version)
        if any(old >= version for old in self.upgrades):
            names = list(columns)
            rows = zip(*columns.values(), strict=True) if columns else [()] * count
            mappings = [self._upgrade(version, dict(zip(names, row, strict=True))) for row in rows]
            return [instance for mapping in mappings for instance in self._build(_columns(mapping), 1)]
        return self._build(columns, count)

    def restore_members(self, version: int, names: list[str]) -> list[Any]:
        """Return the members of an Enum of these names, as some version wrote them."""
        shape = self.shape
        if not isinstance(shape, EnumShape):
            raise IncompatibleState(f"{self.name!r} was written as an Enum and is a class with fields now")
        self._refuse_newer(version)
        members: dict[str, Any] = {}
        for name in dict.fromkeys(names):
            now = str(self._upgrade(version, {_MEMBER: name}).get(_MEMBER))
            try:
                members[name] = shape.build(now)
            except KeyError as error:
                raise IncompatibleState(
                    f"{called(shape.cls)} has no member {now!r}; give it back, or say what became of it with "
                    f"@af.record(name={self.name!r}, version={version + 1}, upgrades={{{version}: …}})"
                ) from error
        return list(map(members.__getitem__, names))

    def _build(self, columns: Mapping[str, list[Any]], count: int) -> list[Any]:
        shape = self.shape
        assert isinstance(shape, RecordShape)
        for name in shape.fields:
            if name not in columns and name not in shape.optional:
                raise IncompatibleState(
                    f"the state was written before {called(shape.cls)} had the field {name!r}; give the field a "
                    "default, or give @af.record a higher version and an upgrade"
                )
        try:
            return shape.build(columns, count)
        except Exception as error:  # defaults and __post_init__ of structs are the user's
            raise IncompatibleState(f"an instance of {called(shape.cls)} could not be made again: {error!r}") from error

    def _upgrade(self, version: int, mapping: dict[str, Any]) -> dict[str, Any]:
        for old in range(version, self.version):
            if (upgrade := self.upgrades.get(old)) is None:
                continue
            try:
                mapping = dict(upgrade(mapping))
            except Exception as error:  # the user's; whatever it raises, this state can't be read
                raise IncompatibleState(
                    f"the upgrade of {self.name!r} from version {old} to {old + 1} failed: {error!r}"
                ) from error
        return mapping

    def _refuse_newer(self, version: int) -> None:
        if version > self.version:
            raise IncompatibleState(
                f"version {version} of {self.name!r} was written, and this program has version {self.version}; "
                "run the newer program, or start from an older checkpoint"
            )


def _columns(mapping: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: [value] for name, value in mapping.items()}


class Registry:
    """Classes by name and names by class.

    ``Registry()`` lies on top of what ``@af.record`` marked in this process; one that is ``alone`` does not see that.
    """

    __slots__ = ("_by_class", "_by_name", "_parent")

    def __init__(self, *, alone: bool = False) -> None:
        self._parent: Registry | None = None if alone else default_registry
        self._by_class: dict[type, Registered] = {}
        self._by_name: dict[str, Registered] = {}

    # ── asking ──

    def entry_of(self, cls: type) -> Registered | None:
        """Return what is known of exactly this class; what the process knows is kept from then on."""
        if (entry := self._by_class.get(cls)) is not None or self._parent is None:
            return entry
        if (entry := self._parent.entry_of(cls)) is None or entry.name in self._by_name:
            return None  # a name is one class for as long as a job runs, even where a notebook defines it again
        self._by_class[cls] = self._by_name[entry.name] = entry
        return entry

    def entry_named(self, name: str) -> Registered | None:
        """Return what is known under a name."""
        if (entry := self._by_name.get(name)) is not None or self._parent is None:
            return entry
        if (entry := self._parent.entry_named(name)) is not None:
            self._by_class[entry.shape.cls] = self._by_name[name] = entry
        return entry

    def name_of(self, cls: type) -> str:
        """Return the registered name of a class, or raise ``InvalidValue`` that says what to add."""
        if (entry := self.entry_of(cls)) is None:
            raise InvalidValue(f"a value is {advice(cls)}")
        return entry.name

    def class_of(self, name: str) -> type:
        """Return the class of a registered name, or raise ``IncompatibleState`` with the name."""
        if (entry := self.entry_named(name)) is None:
            raise IncompatibleState(unknown(name))
        return entry.shape.cls

    def names(self) -> list[str]:
        """Return all names, sorted."""
        above = self._parent.names() if self._parent else []
        return sorted({*above, *self._by_name})

    # ── telling ──

    def register(
        self,
        cls: type,
        *,
        name: str | None = None,
        version: int = 1,
        upgrades: Mapping[int, Upgrade] | None = None,
    ) -> Registered:
        """Give a class a name; a name that another class has is refused."""
        shape = shape_of(cls)
        name = default_name(cls) if name is None else name
        upgrades = dict(upgrades or {})
        _check(cls, name, version, upgrades)
        entry = Registered(name, version, shape, upgrades)
        if (known := self.entry_of(cls)) is not None and known.name != name:
            raise InvalidJob(f"{called(cls)} is already registered as {known.name!r} and can't be {name!r} as well")
        if (known := self.entry_named(name)) is not None and known.shape.cls is not cls:
            if called(known.shape.cls) != called(cls):
                raise InvalidJob(
                    f"two classes are called {name!r}: {called(known.shape.cls)} and {called(cls)}; "
                    "give one of them another name with @af.record(name=…)"
                )
            # Defined once more, as a notebook does: the newer definition counts, instances of the older are refused.
            self._by_class.pop(known.shape.cls, None)
        self._by_class[cls] = self._by_name[name] = entry
        return entry

    def register_annotations(self, annotation: Any, *, scope: Mapping[str, Any] | None = None) -> list[type]:
        """Register every class that an annotation names, and that their fields name; return those found.

        ``scope`` are further names for annotations that are text.
        """
        return self._register_all(types_in(annotation, scope=scope))

    def register_function(self, function: Any) -> list[type]:
        """Register every class that the annotations of a function (or of a class's methods) name."""
        return self._register_all(function_types(function))

    def _register_all(self, classes: list[type]) -> list[type]:
        for cls in classes:
            if self.entry_of(cls) is None:
                self.register(cls)
        return classes


def _check(cls: type, name: Any, version: Any, upgrades: Mapping[Any, Any]) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidJob(f"{called(cls)} can't be registered as {name!r}; a name is printable text")
    if type(version) is not int or version < 1:
        raise InvalidJob(f"the version of {name!r} is {version!r}; versions count from 1")
    for old, upgrade in upgrades.items():
        if type(old) is not int or not 1 <= old < version:
            raise InvalidJob(
                f"{name!r} of version {version} has an upgrade from version {old!r}; it must be a lower one"
            )
        if not callable(upgrade):
            raise InvalidJob(f"the upgrade of {name!r} from version {old} is no function of a mapping of fields")


def advice(cls: type) -> str:
    """Say why a class does not travel, and what to add."""
    if is_recordable(cls):
        return (
            f"of the class {called(cls)}, which is not registered; put @af.record(name={default_name(cls)!r}) above "
            "the class, or name it in the annotations of a source, a state or a function"
        )
    for base in cls.__mro__[1:]:
        if base is not object and (base.__module__ == "builtins" or leaf_of(base) is not None):
            return (
                f"of the class {called(cls)} and would come back as {base.__name__}; "
                f"turn it into exactly {base.__name__}, or put it into a field of a class with @af.record(…)"
            )
    return (
        f"of the class {called(cls)}, which has no fields that are known; turn it into values of the language itself, "
        "or into a dataclass with @af.record(…)"
    )


def unknown(name: str) -> str:
    """Say that a name was read that this program did not register."""
    return (
        f"the state holds values of {name!r}, and this program registered no class of that name; import the module "
        f"that defines it, and put @af.record(name={name!r}) above the class"
    )


default_registry: Final = Registry(alone=True)
"""What ``@af.record`` marked in this process."""


@overload
def record(cls: _Class, /) -> _Class: ...


@overload
def record(
    *, name: str | None = None, version: int = 1, upgrades: Mapping[int, Upgrade] | None = None
) -> Callable[[_Class], _Class]: ...


def record(
    cls: _Class | None = None,
    /,
    *,
    name: str | None = None,
    version: int = 1,
    upgrades: Mapping[int, Upgrade] | None = None,
) -> _Class | Callable[[_Class], _Class]:
    """Mark a class as one that travels: through channels between processes and in snapshots.

    Put it above ``@dataclass``.  Without a name the class is called ``module:QualifiedName``; give it one and the
    class may move.  ``upgrades={1: function}`` turns the fields of a version 1, a ``dict``, into those of a version 2.

    >>> from dataclasses import dataclass
    >>> @record(name="shop.Order", version=2, upgrades={1: lambda fields: fields | {"items": [fields["item"]]}})
    ... @dataclass
    ... class Order:
    ...     items: list[str]
    """

    def mark(cls: _Class) -> _Class:
        default_registry.register(cls, name=name, version=version, upgrades=upgrades)
        return cls

    return mark if cls is None else mark(cls)
