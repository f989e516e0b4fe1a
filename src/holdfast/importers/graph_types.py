"""The caller's own classes that checkpoints may hold, under the names by which programs stored them.

LangGraph's reader makes an object of the module and the name that the bytes tell. In the bytes, every name that stands
for a caller's class is replaced by one of this module, under which the reader finds a maker of that class; every
other name is left as it is, and the reader refuses it. So a class may have moved since, or have been stored by the
script that was run, whose module is called ``__main__``. Kept as well: which names were met, and what a class could not
be made of, which LangGraph would pass on as a dict. Deliberately absent: importing anything that data names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec.msgpack import Ext

from holdfast.errors import Invalid
from holdfast.extension import quoted

Given = Mapping[str, type] | Iterable[type]
Name = tuple[str, str]
"""A module, and a class in it."""
SCRIPT = "__main__"
_MADE = frozenset({0, 1, 2, 4, 5})  # the kinds of bytes that tell a module, a name, and what to make it of
_METHOD, _SNAPSHOT = 3, 7


class Maker:
    """Makes objects of a class, and notes when that fails."""

    def __init__(self, kind: type, failed: list[str]) -> None:
        self.kind, self._failed = kind, failed

    def __call__(self, *given: Any, **fields: Any) -> Any:
        try:
            return self.kind(*given, **fields)
        except Exception as error:
            if not hasattr(self.kind, "model_construct"):  # with which LangGraph makes a model that refuses its fields
                self._failed.append(f"{self.kind.__name__} cannot be built from the stored data: {error}")
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kind, name)


_MAKERS = WeakValueDictionary[str, Maker]()


def __getattr__(name: str) -> Maker:
    """A maker, by the name that was put into the bytes."""
    try:
        return _MAKERS[name]
    except KeyError:
        raise AttributeError(name) from None


class Types:
    """The classes that were named, by what they are stored as.

    A mapping says that itself, as in ``{"__main__.Order": Order}``; in a list each class has the name it has now. By
    that name it is also meant in ``__main__``, unless another one is said to be stored so.
    """

    def __init__(self, given: Given) -> None:
        self.asked = _asked(given)
        self._insisted = isinstance(given, Mapping)
        self.classes = tuple(dict.fromkeys(self.asked.values()))
        self.met: set[Name] = set()
        self.failed: list[str] = []
        self._kept = {f"maker {id(self)} {at}": Maker(kind, self.failed) for at, kind in enumerate(self.classes)}
        _MAKERS.update(self._kept)
        aliases = {maker.kind: alias for alias, maker in self._kept.items()}
        own = {(SCRIPT, kind.__name__): kind for name, kind in self.asked.items() if name == _name_of(kind)}
        named = {_parted(name): kind for name, kind in self.asked.items()}
        self._alias = {name: aliases[kind] for name, kind in (own | named).items()}

    @property
    def allowed(self) -> list[Name] | None:
        """What LangGraph's reader may make besides what it knows to be safe."""
        return [(__name__, alias) for alias in self._kept] or None

    @property
    def allowed_json(self) -> list[tuple[str, ...]] | None:
        """The same for checkpoints of old, which are JSON."""
        return [(*__name__.split("."), alias) for alias in self._kept] or None

    def renamed(self, typed: tuple[str, bytes]) -> tuple[str, bytes]:
        """Bytes that name our makers in the place of the caller's classes."""
        form, data = typed
        if not self._alias or not data:
            return typed
        if form == "msgpack":
            return form, self._repacked(data)
        if form == "json":
            return form, json.dumps(json.loads(data, object_hook=self._respelled)).encode()
        return typed

    def unmet(self) -> list[str]:
        """The names that the caller gave and that nothing stored has."""
        return [name for name, kind in self.asked.items() if self._insisted and not self._is_met(name, kind)]

    def _is_met(self, name: str, kind: type) -> bool:
        return _parted(name) in self.met or (name == _name_of(kind) and (SCRIPT, kind.__name__) in self.met)

    def way(self, name: Name) -> str:
        """How a stored name is given to the command."""
        module, called = name
        like = next((kind for kind in self.classes if kind.__name__ == called), None)
        if like is not None:
            return f"--type {module}.{called}={like.__module__}:{called}"
        return f"--type {'MODULE' if module == SCRIPT else module}:{called}"

    def _repacked(self, data: bytes | memoryview) -> bytes:
        return msgspec.msgpack.encode(msgspec.msgpack.decode(data, ext_hook=self._renamed))

    def _renamed(self, code: int, data: memoryview) -> Ext:
        if code == _SNAPSHOT:
            return Ext(code, self._repacked(data))
        if code not in _MADE and code != _METHOD:
            return Ext(code, bytes(data))
        parts = msgspec.msgpack.decode(data, ext_hook=self._renamed)
        if code in _MADE and isinstance(parts, list) and all(isinstance(part, str) for part in parts[:2]):
            parts[:2] = self._place_of(parts[0], parts[1])
        return Ext(code, msgspec.msgpack.encode(parts))

    def _respelled(self, value: dict[str, Any]) -> dict[str, Any]:
        id = value.get("id")
        if value.get("lc") != 2 or not isinstance(id, list) or not all(isinstance(part, str) for part in id):
            return value
        module, called = self._place_of(".".join(id[:-1]), id[-1] if id else "")
        return {**value, "id": [*module.split("."), called]}

    def _place_of(self, module: str, called: str) -> Name:
        alias = self._alias.get((module, called))
        if alias is None:
            return module, called
        self.met.add((module, called))
        return __name__, alias


def _asked(given: Given) -> dict[str, type]:
    if isinstance(given, str | type) or not isinstance(given, Iterable):
        raise Invalid(f"types is a list of classes, or a dict of stored names and classes, not {quoted(given)}")
    kinds = list(given.values() if isinstance(given, Mapping) else given)
    if wrong := [kind for kind in kinds if not isinstance(kind, type)]:
        raise Invalid(f"types are classes, not {quoted(wrong[0])}")
    named = dict(given) if isinstance(given, Mapping) else {_name_of(kind): kind for kind in kinds}
    for name in named:
        if not isinstance(name, str) or not all(_parted(name)):
            raise Invalid(
                f"a class is stored under its module and its name, as in '__main__.Order', not {quoted(name)}"
            )
    return named


def _name_of(kind: type) -> str:
    """What a class would be stored as now."""
    return f"{kind.__module__}.{kind.__name__}"


def _parted(name: str) -> Name:
    module, _, called = name.rpartition(".")
    return module, called
