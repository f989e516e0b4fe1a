"""What the three services share: a store, however it was given, and where ADK's data is in it.

A thread's id is made of app, user and session so that no two sessions share one. Deliberately absent: what is kept
there.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, Self, cast
from urllib.parse import unquote

import msgspec

from holdfast import Folder
from holdfast.errors import Misconfigured
from holdfast.extension import OpenedStore, Scope, StoreOrAddress, check_id, escaped, in_thread, scheme_of, unescaped

SCHEMES = ("holdfast", "holdfast+sqlite", "holdfast+postgresql", "holdfast+postgres", "holdfast+ram")
TAG = "adk"
_BEGIN = "adk:"


class SessionPlace(NamedTuple):
    """One session, by the three names that ADK gives it."""

    app: str
    user: str
    session: str

    @property
    def thread(self) -> str:
        """The id of the session's thread."""
        parts = (escaped(check_id(part, what)) for part, what in zip(self, _NAMES, strict=True))
        return check_id(_BEGIN + "/".join(parts), "app name, user id and session id together")

    @property
    def scope(self) -> Scope:
        return Scope(self.user, self.app, self.thread)

    @classmethod
    def of(cls, thread: str) -> SessionPlace | None:
        """The session that a thread is, None where it is none (a fork of one, say)."""
        parts = thread.removeprefix(_BEGIN).split("/")
        return cls(*map(unescaped, parts)) if thread.startswith(_BEGIN) and len(parts) == len(_NAMES) else None


_NAMES = ("app_name", "user_id", "session_id")


class Service:
    """A store that was given, or one of an address, which is closed with the service."""

    def __init__(
        self,
        store: StoreOrAddress | None = None,
        *,
        uri: str | None = None,
        agents_dir: str | None = None,
        per_agent: bool | None = None,
    ) -> None:
        """Give an open store or its address, which may have a scheme of ``SCHEMES``; ADK gives it as ``uri``.

        ``agents_dir`` and ``per_agent`` are what ADK's commands tell every service; nothing here depends on them.
        """
        if (store is None) == (uri is None):
            raise Misconfigured("give either a store or a uri such as holdfast:agent.db")
        named = uri is not None or (isinstance(store, str) and store.partition(":")[0].lower() in SCHEMES)
        given = cast(StoreOrAddress, store if uri is None else uri)
        self._held = OpenedStore(address(cast(str, given)) if named else given)
        self._store = self._held.store
        self._core = self._store.core

    async def close(self) -> None:
        """Close the store, if it was opened for this service."""
        await in_thread(self._held.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _folder(self, name: str, *, user: str | None = None, app: str, thread: str | None = None) -> Folder:
        """A folder of an app. What names a thread is erased along with it."""
        check_id(app, "app_name")
        if user is not None:
            check_id(user, "user_id")
        return self._held.folder(name, Scope(user, app, thread))


def packed(value: dict[str, Any]) -> bytes:
    """Notes of our own as the content of a file. Bytes that are not text are found by no recall."""
    return msgspec.msgpack.encode(value)


def unpacked(content: bytes) -> dict[str, Any]:
    return msgspec.msgpack.decode(content)


def address(uri: str) -> str:
    """What ``holdfast.open`` is to be given for an address that ADK was given."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() not in SCHEMES:
        raise Misconfigured(f"no store has the scheme {scheme!r}; there are {', '.join(SCHEMES)}", scheme=scheme)
    engine = scheme.lower().removeprefix("holdfast").removeprefix("+")
    if engine:  # which reads its own URLs
        return f"{engine}:{rest}"
    path = unquote(rest.removeprefix("//"))
    if (other := scheme_of(path)) != "sqlite":
        raise Misconfigured(f"holdfast: is followed by the path of a file; for another engine write holdfast+{other}:…")
    return path
