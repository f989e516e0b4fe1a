"""How LangGraph's own savers and stores on a database are opened and awaited, so that a program changes one name.

Deliberately absent: two classes, one of them async. Ours is used in ``with`` and in ``async with``, and without either.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from holdfast.extension import in_thread

P = ParamSpec("P")
T = TypeVar("T")


def awaited(call: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The twin of a method for async callers: carried out away from the event loop, and always to its end."""

    @wraps(call)
    async def twin(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_thread(getattr(self, call.__name__), *args, **kwargs)

    return twin


class AtOnce:
    """A result that is there at once, and that a program written for LangGraph's async classes may await."""

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()
        return self


class OpensByAddress:
    """What is made from an address, and closed at the end of a ``with`` or an ``async with`` or by ``close``."""

    @classmethod
    def from_conn_string(cls, conn_string: str, **settings: Any) -> Self:
        """Open a store by its address: ``with HoldfastSaver.from_conn_string("postgresql://…") as saver``.

        ``settings`` are the other arguments of the class. The result works without ``with`` too; then call ``close``.
        """
        return cls(conn_string, **settings)  # type: ignore[call-arg] # what derives from this takes an address first

    def setup(self) -> AtOnce:
        """Do nothing: a store is set up when it is opened. Programs written for LangGraph's own classes call this."""
        return AtOnce()

    @abstractmethod
    def close(self) -> None:
        """Close the store, if it was opened here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await in_thread(self.close)
