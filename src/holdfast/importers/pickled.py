"""Reading a pickle without loading it: plain data from the bytes, and no code run on the way.

Some programs keep their data pickled. Loading a pickle runs whatever it names, so it is never loaded here: its
instructions are read one by one, by a list of those that build plain data. An object comes out as the name of its class
and its state, a class as its name; nothing is imported, looked up or called. An instruction that is not on the list is
``Unsupported``. Deliberately absent: objects.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.errors import Corrupt, Unsupported


class Named(NamedTuple):
    """A class or function that a pickle names."""

    module: str
    name: str


class Thing:
    """An object that a pickle would make: of which class, out of what, and with which state."""

    __slots__ = ("given", "of", "state", "used")

    def __init__(self, of: Any, given: Any) -> None:
        self.of, self.given, self.state, self.used = of, given, None, False


def read(data: bytes) -> Any:
    """The value that a pickle holds, with ``Thing`` in the place of objects."""
    machine = _Machine()
    try:
        for code, value, _ in pickletools.genops(data):
            if code.name == "STOP":
                return machine.stack.pop()
            machine.do(code.name, value)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"a pickle is damaged: {error!r}") from error
    raise Corrupt("a pickle is cut short")


class _Machine:
    """A stack, the marks in it, and what is to be used again."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def do(self, name: str, value: Any) -> None:
        if name in _NOTHING:
            return
        if name in _VALUES:
            self.stack.append(_VALUES[name](value))
        elif name in _ACTS:
            _ACTS[name](self, value)
        else:
            raise Unsupported(f"a pickle uses {name}, which is not read because it is not plain data")

    def since_mark(self) -> list[Any]:
        at = self.marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        return items

    def taken(self, count: int) -> list[Any]:
        items = self.stack[len(self.stack) - count :]
        if len(items) < count:
            raise IndexError("the stack is empty")
        del self.stack[len(self.stack) - count :]
        return items

    def remember(self, at: int | None) -> None:
        self.memo[len(self.memo) if at is None else at] = self.stack[-1]

    def recall(self, at: int) -> None:
        """Use something again, but nothing that holds other things: it could hold itself."""
        value = self.memo[at]
        if not isinstance(value, str | bytes | Named | Thing):
            raise Unsupported("a pickle uses one list or dict in two places, which is not plain data")
        if isinstance(value, Thing):
            value.used = True
        self.stack.append(value)

    def fill(self, items: list[Any]) -> None:
        """Put names and values into the dict on top."""
        target = self.stack[-1]
        if type(target) is not dict:
            raise TypeError("items for something that is not a dict")
        target.update(zip(items[::2], items[1::2], strict=True))

    def extend(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise TypeError("items for something that is not a list")
        self.stack[-1].extend(items)

    def include(self, items: list[Any]) -> None:
        if type(self.stack[-1]) is not set:
            raise TypeError("items for something that is not a set")
        self.stack[-1].update(items)

    def name(self) -> None:
        module, name = self.taken(2)
        self.stack.append(Named(str(module), str(name)))

    def make(self) -> None:
        of, given = self.taken(2)
        self.stack.append(Thing(of, given))

    def build(self) -> None:
        (state,) = self.taken(1)
        if not isinstance(self.stack[-1], Thing):
            raise TypeError("a state for something that is not an object")
        if self.stack[-1].used:
            raise Unsupported("a pickle has an object that is part of itself, which is not plain data")
        self.stack[-1].state = state


_NOTHING = frozenset({"PROTO", "FRAME"})
_VALUES: dict[str, Callable[[Any], Any]] = {
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_SET": lambda _: set(),
    "EMPTY_TUPLE": lambda _: (),
    **{
        name: lambda value: value
        for name in (
            "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG", "BINFLOAT", "FLOAT", "BINUNICODE",
            "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
        )
    },
}  # fmt: skip
_ACTS: dict[str, Callable[[_Machine, Any], object]] = {
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": lambda machine, _: machine.stack.pop(),
    "MEMOIZE": lambda machine, _: machine.remember(None),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT"), lambda machine, at: machine.remember(int(at))),
    **dict.fromkeys(("BINGET", "LONG_BINGET", "GET"), lambda machine, at: machine.recall(int(at))),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.stack.append(tuple(machine.taken(1))),
    "TUPLE2": lambda machine, _: machine.stack.append(tuple(machine.taken(2))),
    "TUPLE3": lambda machine, _: machine.stack.append(tuple(machine.taken(3))),
    "SETITEM": lambda machine, _: machine.fill(machine.taken(2)),
    "SETITEMS": lambda machine, _: machine.fill(machine.since_mark()),
    "APPEND": lambda machine, _: machine.extend(machine.taken(1)),
    "APPENDS": lambda machine, _: machine.extend(machine.since_mark()),
    "ADDITEMS": lambda machine, _: machine.include(machine.since_mark()),
    "GLOBAL": lambda machine, value: machine.stack.append(Named(*str(value).split(" ", 1))),
    "STACK_GLOBAL": lambda machine, _: machine.name(),
    "NEWOBJ": lambda machine, _: machine.make(),
    "REDUCE": lambda machine, _: machine.make(),
    "BUILD": lambda machine, _: machine.build(),
}
