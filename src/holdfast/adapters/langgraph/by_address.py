"""How LangGraph's own savers and stores on a database are opened, so that a program changes one name.

Deliberately absent: two classes, one of them async. Ours is used in ``with`` and in ``async with``, and without either.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from holdfast.extension import in_thread


class SetUp:
    """What ``setup`` returns: nothing is left to do. An async program may await it."""

    def __await__(self) -> Generator[Any, None, None]:
        return None
        yield  # makes this a generator


class OpensByAddress:
    """What is made from an address, and closed at the end of a ``with`` or an ``async with`` or by ``close``."""

    @classmethod
    def from_conn_string(cls, conn_string: str, **settings: Any) -> Self:
        """Open a store by its address: ``with HoldfastSaver.from_conn_string("postgresql://…") as saver``.

        ``settings`` are the other arguments of the class. The result works without ``with`` too; then call ``close``.
        """
        return cls(conn_string, **settings)  # type: ignore[call-arg] # what derives from this takes an address first

    def setup(self) -> SetUp:
        """Do nothing: a store is set up when it is opened. Programs written for LangGraph's own classes call this."""
        return SetUp()

    @abstractmethod
    def close(self) -> None:
        """Close the store, if it was opened here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.close)
