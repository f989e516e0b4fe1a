"""Values of a graph's state as plain data, and back, exactly or not at all.

Plain data stays as it is; everything else becomes a tag and what it holds. Only types that are registered, here or by
the caller, are stored, and stored data never causes an import or a call. A subclass of a plain type comes back as that
type: LangChain has texts that are more than ``str``. For any other value, an error names the path to it and the line
to write. Deliberately absent: where a value is kept, and secrets.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from base64 import b64decode, b64encode
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from math import isfinite
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import ModuleType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
from numpy.lib.format import descr_to_dtype

from holdfast import Registry
from holdfast.adapters.langgraph.frames import TAG
from holdfast.errors import HoldfastError, Invalid, Unsupported
from holdfast.extension import Schema, check_id, quoted

_DEPTH = 180  # below what the codec allows, because a tag is a level of its own
_BIG = 2**63
_OWN = "u:"  # before the names of the caller's classes, so that no type that we learn to store takes one of them
_SHOWN_PATH = 120
_FACTORIES = {"": None, **{kind.__name__: kind for kind in (list, dict, set, int, float, str, bool)}}


class ValueKind(NamedTuple):
    """How a type is taken apart, into values that are taken apart in their turn, and put together again.

    ``name`` is what is stored.
    """

    name: str
    type: type
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]


class Kinds:
    """The types that a saver accepts besides plain data."""

    def __init__(self, schemas: Registry, more: Iterable[ValueKind] = ()) -> None:
        self._schemas = schemas
        self._types: dict[type, ValueKind] = {}
        self._names: dict[str, ValueKind] = {}
        for kind in (*_BUILT_IN, *more):
            self.add(kind)

    def add(self, kind: ValueKind) -> None:
        """Register a type under a name; another type of the same name is refused."""
        old = self._names.get(kind.name)
        if old is not None and old.type is not kind.type:
            name = kind.name.removeprefix(_OWN)
            raise Invalid(
                f"the name {name!r} stands for {old.type.__module__}.{old.type.__qualname__} already: choose another, "
                f"types={{'another': {kind.type.__qualname__}}}"
            )
        self._names[kind.name] = self._types[kind.type] = kind

    def register(self, types: Mapping[str, type] | Iterable[type | ModuleType]) -> None:
        """Accept classes of the caller's: by a mapping of names, or under the names of the classes themselves.

        A module stands for the classes in it.
        """
        if isinstance(types, type | str) or not isinstance(types, Iterable):
            raise Invalid(f"types is a list of classes or modules, or a dict of names and classes, not {quoted(types)}")
        if isinstance(types, Mapping):
            pairs = [*types.items()]
        else:
            pairs = [(kind.__name__, kind) for each in types for kind in _classes(each)]
        for name, each in pairs:
            if (schema := self._schemas.declared(each)) is not None:
                self.add(self._of_schema(schema))
            else:
                self.add(of_class(f"{_OWN}{check_id(name, 'the name of a type')}", each))

    def of(self, type: type) -> ValueKind | None:
        found = self._types.get(np.generic if issubclass(type, np.generic) else type)
        if found is None and (schema := self._schemas.declared(type)) is not None:
            found = self._of_schema(schema)
            self.add(found)
        return found

    def named(self, name: str) -> ValueKind | None:
        found = self._names.get(name)
        if found is None and name.startswith("schema:") and (schema := self._schemas.named(name[7:])) is not None:
            found = self._of_schema(schema)
            self.add(found)
        return found

    def _of_schema(self, schema: Schema) -> ValueKind:
        """A class with a declared schema: its version goes along, and older ones are migrated."""
        inner = of_class(schema.name, schema.type)

        def load(held: Any) -> Any:
            version, fields = held
            if version == schema.version:
                return inner.load(fields)
            told = {name: value for name, value in fields[0].items() if not name.startswith("__")}
            return inner.load(_migrated(self._schemas, schema, version, told))

        return ValueKind(f"schema:{schema.name}", schema.type, lambda value: [schema.version, inner.dump(value)], load)


def _migrated(schemas: Registry, schema: Schema, version: int, fields: Any) -> Any:
    if version > schema.version:
        raise Unsupported(
            f"a stored {schema.name!r} is of version {version}, this program knows {schema.version}: upgrade it"
        )
    while version < schema.version:
        step = schemas.step(schema.name, version)
        if step is None:
            raise Unsupported(
                f"a stored {schema.name!r} is of version {version}; declare a migration of it from {version}"
            )
        version, fields = step[0], step[1](dict(fields))
    return fields


# Types


def _classes(given: Any) -> list[Any]:
    """A class alone; of a module, those that are written in it or below it and can be stored."""
    if isinstance(given, type):
        return [given]
    if not isinstance(given, ModuleType):
        raise Invalid(f"types are classes, or modules that have them, not {quoted(given)}")
    below = f"{given.__name__}."
    own = [kind for kind in vars(given).values() if isinstance(kind, type) and f"{kind.__module__}.".startswith(below)]
    if not (found := [kind for kind in own if _storable(kind)]):
        raise Invalid(f"the module {given.__name__!r} has no class of its own that can be stored")
    return found


@lru_cache(256)  # asked for each text of LangChain's that is stored
def _storable(kind: type) -> bool:
    try:
        of_class("", kind)
    except Invalid:
        return False
    return True


def of_class(name: str, kind: Any) -> ValueKind:
    """How values of a class with fields are stored, under this name."""
    if not isinstance(kind, type):
        raise Invalid(f"types are classes, not {quoted(kind)}")
    if issubclass(kind, enum.Enum):
        return ValueKind(name, kind, lambda value: value.value, kind)
    if hasattr(kind, "model_fields") and hasattr(kind, "model_validate"):
        return _of_fields(name, kind, _Pydantic)
    if issubclass(kind, msgspec.Struct):
        return _of_fields(name, kind, _Struct)
    if hasattr(kind, "__dataclass_fields__"):
        return _of_fields(name, kind, _Dataclass)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return ValueKind(name, kind, lambda value: value._asdict(), lambda fields: kind(**fields))
    raise Invalid(
        f"{name.removeprefix(_OWN)} is neither a pydantic model, a dataclass, a msgspec Struct, a NamedTuple nor an "
        "Enum: turn it into one, or keep plain data in the state"
    )


def _of_fields(name: str, kind: Any, made: type[_Pydantic | _Dataclass | _Struct]) -> ValueKind:
    """A class with fields.

    As long as they are the same, a value is put together as it was, without running any code of the class; when they
    have changed, the class itself decides what it makes of the old ones, or refuses.
    """
    shape = blake2b(repr(made.shape(kind)).encode(), digest_size=6).hexdigest()

    def load(held: Any) -> Any:
        fields, then = (held[0], held[1]) if isinstance(held, list) else (held, "")
        return made.as_it_was(kind, fields) if then == shape else made.as_it_is(kind, fields)

    return ValueKind(name, kind, lambda value: [made.fields(value), shape], load)


def _spelled(annotation: Any) -> str:
    """An annotation in words that are the same in every process and every Python."""
    if isinstance(annotation, str):
        return annotation
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _spelled(inside[0])  # what validates it is no part of its shape
    if origin is Literal:
        return f"Literal{inside!r}"
    if origin is not None:
        name = "Union" if origin in (Union, UnionType) else _spelled(origin)
        return f"{name}[{', '.join(_spelled(each) for each in inside)}]"
    return str(getattr(annotation, "__qualname__", type(annotation).__qualname__))


_PRIVATE, _GIVEN = "__private__", "__given__"


class _Pydantic:
    @staticmethod
    def shape(kind: Any) -> list[tuple[str, str]]:
        return [(name, _spelled(field.annotation)) for name, field in kind.model_fields.items()]

    @staticmethod
    def fields(value: Any) -> dict[str, Any]:
        fields = {**value.__dict__, **(value.__pydantic_extra__ or {})}
        if value.__pydantic_private__:
            fields[_PRIVATE] = dict(value.__pydantic_private__)
        return {**fields, _GIVEN: sorted(value.__pydantic_fields_set__)}

    @staticmethod
    def as_it_was(kind: Any, fields: dict[str, Any]) -> Any:
        private, given = fields.pop(_PRIVATE, None), set(fields.pop(_GIVEN))
        extra = {name: fields.pop(name) for name in [name for name in fields if name not in kind.model_fields]}
        made = kind.__new__(kind)
        object.__setattr__(made, "__dict__", fields)
        object.__setattr__(made, "__pydantic_fields_set__", given)
        allowed = kind.model_config.get("extra") == "allow"
        object.__setattr__(made, "__pydantic_extra__", extra if allowed else None)
        if private is None and kind.__private_attributes__:
            made.model_post_init(None)
        else:
            object.__setattr__(made, "__pydantic_private__", private)
        return made

    @staticmethod
    def as_it_is(kind: Any, fields: dict[str, Any]) -> Any:
        given = {name: value for name, value in fields.items() if name not in (_PRIVATE, _GIVEN)}
        names = {name: field.alias or name for name, field in kind.model_fields.items()}
        if kind.model_config.get("extra") != "allow":
            _refuse_lost(kind, given.keys() - names.keys())
        return kind.model_validate({names.get(name, name): value for name, value in given.items()})


def _refuse_lost(kind: type, fields: set[str]) -> None:
    if fields:
        raise ValueError(f"the stored field {min(fields)!r} is not in {kind.__name__} any more")


class _Dataclass:
    @staticmethod
    def shape(kind: Any) -> list[tuple[str, str]]:
        return [(field.name, _spelled(field.type)) for field in dataclasses.fields(kind)]

    @staticmethod
    def fields(value: Any) -> dict[str, Any]:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if more := sorted(set(getattr(value, "__dict__", ())) - set(fields)):
            raise Invalid(f"{more[0]!r} is not a field of {type(value).__name__}, and would be lost")
        if isinstance(value, tuple(_PLAIN)):
            raise Invalid(f"what {type(value).__name__} holds besides its fields would be lost: keep it in a field")
        return fields

    @staticmethod
    def as_it_was(kind: Any, fields: dict[str, Any]) -> Any:
        made = object.__new__(kind)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    @staticmethod
    def as_it_is(kind: Any, fields: dict[str, Any]) -> Any:
        known = {field.name: field.init for field in dataclasses.fields(kind)}
        _refuse_lost(kind, fields.keys() - known.keys())
        made = kind(**{name: value for name, value in fields.items() if known[name]})
        for name, value in fields.items():
            if not known[name]:
                object.__setattr__(made, name, value)
        return made


class _Struct:
    @staticmethod
    def shape(kind: Any) -> list[tuple[str, str]]:
        return [(field.name, _spelled(field.type)) for field in msgspec.structs.fields(kind)]

    @staticmethod
    def fields(value: Any) -> dict[str, Any]:
        return msgspec.structs.asdict(value)

    @staticmethod
    def as_it_was(kind: Any, fields: dict[str, Any]) -> Any:
        made = kind(**fields)
        for name, value in fields.items():  # whatever the class did to them when it was made
            msgspec.structs.force_setattr(made, name, value)
        return made

    @staticmethod
    def as_it_is(kind: Any, fields: dict[str, Any]) -> Any:
        return kind(**fields)


def _moment(value: Any) -> Any:
    """A datetime or a time of day, with its zone; any zone of one offset is told by that."""
    zone = value.tzinfo
    if type(zone) is ZoneInfo or (type(zone) is timezone and repr(zone) != repr(timezone(zone.utcoffset(None)))):
        return [value.replace(tzinfo=None).isoformat(), value.fold, zone]
    if zone is not None and not _of_one_offset(zone):
        raise Invalid(f"a moment in the zone {zone!r} would come back in another: use UTC, an offset or a ZoneInfo")
    return [value.isoformat(), value.fold] if value.fold else value.isoformat()


def _of_one_offset(zone: tzinfo) -> bool:
    try:
        return zone.utcoffset(None) is not None
    except Exception:  # a zone of the caller's may expect to be asked about a moment
        return False


def _from_moment(kind: Any) -> Callable[[Any], Any]:
    def load(held: Any) -> Any:
        if isinstance(held, str):
            return kind.fromisoformat(held)
        found = kind.fromisoformat(held[0]).replace(fold=held[1])
        return found.replace(tzinfo=held[2]) if len(held) > 2 else found

    return load


def _zone(value: ZoneInfo) -> str:
    if not value.key:
        raise Invalid("a ZoneInfo that was read from a file has no name to find it by: ZoneInfo(name) has one")
    return value.key


def _array(value: Any) -> list[Any]:
    return [_elements(value.dtype), list(value.shape), b64encode(np.ascontiguousarray(value).tobytes()).decode()]


def _from_array(held: Any) -> Any:
    return np.ndarray(held[1], descr_to_dtype(held[0]), b64decode(held[2])).copy()


def _number(value: Any) -> list[Any]:
    return [_elements(value.dtype), b64encode(value.tobytes()).decode()]


def _from_number(held: Any) -> Any:
    return np.ndarray((), descr_to_dtype(held[0]), b64decode(held[1])).copy()[()]


def _elements(dtype: Any) -> Any:
    """The type of an array's elements: a word, or the fields that each of them has."""
    if dtype.hasobject:
        raise Invalid("an array of Python objects is not stored: make it a list, or an array of numbers")
    try:
        told = dtype.str if dtype.names is None else dtype.descr
        made = descr_to_dtype(told)
        if made == dtype and made.type is dtype.type:
            return told
    except (TypeError, ValueError):  # a type that numpy itself has no words for
        pass
    raise Invalid(f"an array of {dtype} would come back as another: give it fields in order, without overlaps")


def _pairs(value: Mapping[Any, Any]) -> list[list[Any]]:
    return [list(pair) for pair in value.items()]


def _factory(value: defaultdict[Any, Any]) -> str:
    made = value.default_factory
    if (name := next((name for name, kind in _FACTORIES.items() if kind is made), None)) is None:
        raise Invalid(f"a defaultdict that makes {made!r} would come back without it: make it a dict")
    return name


_BUILT_IN = (
    ValueKind("tuple", tuple, list, tuple),
    ValueKind("set", set, list, set),
    ValueKind("frozenset", frozenset, list, frozenset),
    ValueKind("bytes", bytes, lambda value: b64encode(value).decode(), b64decode),
    ValueKind("bytearray", bytearray, lambda value: b64encode(value).decode(), lambda held: bytearray(b64decode(held))),
    ValueKind("datetime", datetime, _moment, _from_moment(datetime)),
    ValueKind("date", date, date.isoformat, date.fromisoformat),
    ValueKind("time", time, _moment, _from_moment(time)),
    ValueKind(
        "timedelta", timedelta, lambda value: [value.days, value.seconds, value.microseconds],
        lambda held: timedelta(*held),
    ),
    ValueKind("zone", ZoneInfo, _zone, ZoneInfo),
    ValueKind("offset", timezone, lambda value: list(value.__getinitargs__()), lambda held: timezone(*held)),
    ValueKind("decimal", Decimal, str, Decimal),
    ValueKind("fraction", Fraction, str, Fraction),
    ValueKind("pattern", re.Pattern, lambda value: [value.pattern, value.flags], lambda held: re.compile(*held)),
    *(
        ValueKind(kind.__name__, kind, str, kind)
        for kind in (IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network)
    ),
    ValueKind("array", np.ndarray, _array, _from_array),
    ValueKind("number", np.generic, _number, _from_number),
    ValueKind("uuid", UUID, str, UUID),
    ValueKind("path", type(Path()), str, Path),
    ValueKind("posix path", PurePosixPath, str, PurePosixPath),
    ValueKind("windows path", PureWindowsPath, str, PureWindowsPath),
    ValueKind("deque", deque, lambda value: [value.maxlen, list(value)], lambda held: deque(held[1], held[0])),
    ValueKind("counter", Counter, _pairs, lambda held: Counter(dict(held))),
    ValueKind("ordered dict", OrderedDict, _pairs, OrderedDict),
    ValueKind(
        "default dict", defaultdict, lambda value: [_factory(value), _pairs(value)],
        lambda held: defaultdict(_FACTORIES[held[0]], held[1]),
    ),
)  # fmt: skip


_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__, int: int.__int__, float: float.__float__, bytes: bytes.__bytes__, list: list.copy,
    tuple: lambda value: tuple(tuple.__iter__(value)), set: set, frozenset: frozenset, dict: dict.copy,
}  # fmt: skip
"""What a value of a subclass is as its base, whatever methods the subclass has."""


# Values


class Dumping:
    """Turns values into plain data.

    ``aside`` may keep a value elsewhere: it gives what to store instead, or None. ``text`` gives what to store for a
    text.
    """

    def __init__(
        self, kinds: Kinds, aside: Callable[[Any], Any] = lambda _: None, text: Callable[[str], Any] | None = None
    ) -> None:
        self._kinds, self._aside, self._text = kinds, aside, text

    def plain(self, value: Any, path: str, depth: int = _DEPTH) -> Any:
        type_ = type(value)
        if type_ is str:
            return value if self._text is None else self._text(value)
        if value is None or type_ is bool:
            return value
        if type_ is int:
            return value if -_BIG <= value < _BIG else {TAG: "int", "v": str(value)}
        if type_ is float:
            return value if isfinite(value) else {TAG: "float", "v": repr(value)}
        if depth == 0:
            short = path if len(path) <= _SHOWN_PATH else f"{path[:_SHOWN_PATH]}…"
            raise Invalid(f"{short}: nested deeper than {_DEPTH} levels, or part of itself", path=short)
        if type_ is list:
            return [self.plain(item, f"{path}[{number}]", depth - 1) for number, item in enumerate(value)]
        if type_ is dict:
            return self._dict(value, path, depth)
        return self._tagged(value, path, depth)

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        if TAG not in value and all(type(name) is str for name in value):
            return {name: self.plain(item, f"{path}.{name}", depth - 1) for name, item in value.items()}
        pairs = [
            [self.plain(name, f"{path} key", depth - 1), self.plain(item, f"{path}[{name!r}]", depth - 1)]
            for name, item in value.items()
        ]
        return {TAG: "dict", "v": pairs}

    def _tagged(self, value: Any, path: str, depth: int) -> Any:
        if (kept := self._aside(value)) is not None:
            return kept
        kind = self._kinds.of(type(value))
        if kind is None:
            return self.plain(_as_base(value, path), path, depth)
        try:
            held = kind.dump(value)
        except HoldfastError as error:
            raise Invalid(f"{path}: {error}", path=path) from error
        return {TAG: kind.name, "v": self.plain(held, path, depth - 1)}


def _as_base(value: Any, path: str) -> Any:
    """The plain value that one of a subclass is; an error for everything else, and where fields would be lost."""
    kind: Any = type(value)
    name = kind.__name__
    base = next((base for base in kind.__mro__ if base in _PLAIN), None)
    if _storable(kind):
        what = f"{name} is not registered, so it is not stored: HoldfastSaver(store, types=[{name}])"
    elif base is not None:
        return _PLAIN[base](value)
    elif hasattr(value, "add_done_callback"):
        what = f"a {name} is not its result: is .result() or await missing?"
    elif hasattr(value, "get_secret_value"):
        what = (
            f"a {name} is not stored, because everyone who reads the store could read it: keep the name of the secret "
            "in the state and fetch the secret in the node, or pass it in the run's context"
        )
    else:
        what = f"{name} is nothing that can be stored: keep plain data, or a dataclass or model of it, in the state"
    raise Invalid(f"{path}: {what}", path=path, type=name)


class Loading:
    """Turns plain data into the values that it was made of. ``aside`` gives what is kept elsewhere, by its tag."""

    def __init__(self, kinds: Kinds, aside: Mapping[str, Callable[[Any], Any]]) -> None:
        self._kinds, self._aside = kinds, aside

    def value(self, plain: Any, path: str) -> Any:
        type_ = type(plain)
        if type_ is list:
            return [self.value(item, path) if type(item) in (list, dict) else item for item in plain]
        if type_ is not dict:
            return plain
        name = plain.get(TAG)
        if name is None:
            return {
                key: self.value(item, f"{path}.{key}") if type(item) in (list, dict) else item
                for key, item in plain.items()
            }
        held = plain["v"]
        if name in self._aside:
            return self._aside[name](held)
        if name in ("int", "float"):
            return int(held) if name == "int" else float(held)
        if name == "dict":
            return {self.value(key, path): self.value(item, path) for key, item in held}
        return self._made(name, held, path)

    def _made(self, name: str, held: Any, path: str) -> Any:
        kind = self._kinds.named(name)
        if kind is None:
            name = name.removeprefix(_OWN)
            raise Unsupported(
                f"{path}: holds a {name!r}, which is not registered here: HoldfastSaver(store, types={{{name!r}: …}}) "
                "names the class that it is today",
                path=path, type=name,
            )  # fmt: skip
        try:
            return kind.load(self.value(held, path))
        except HoldfastError:
            raise
        except Exception as error:  # a class of the caller's may refuse in any way
            raise Unsupported(
                f"{path}: what is stored does not fit {kind.type.__qualname__} any more: {error}; register the class "
                "that it was, or declare a schema with a migration",
                path=path, type=name,
            ) from error  # fmt: skip
