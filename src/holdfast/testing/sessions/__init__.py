"""What a session store promises, as tests: the four verbs of the OpenAI Agents SDK's ``Session``, for every store.

A store is proved by a class of a few lines::

    class TestMySession(SessionSuite):
        def make(self, place, session_id):
            return MySession(session_id, path=place / "sessions.db")

``make`` opens the session of an id on the store at ``place``, an empty folder of the test; asked twice for the same, it
opens what is there, as another handle or another process would. What has a ``close`` is closed, blocking or awaited. A
store that forgets when it is closed says ``durable = False``, and those promises are skipped. Nothing of the SDK is
needed, and of pytest no plugin. Deliberately absent: what a store offers beyond the four verbs; how items look, apart
from being plain data; speed; and killed processes, which need to know how a store is reached.
"""

from __future__ import annotations

from holdfast.testing.sessions.adding import AddingPromises, PlainDataPromises
from holdfast.testing.sessions.lifetimes import RestartPromises
from holdfast.testing.sessions.reading import ReadingPromises
from holdfast.testing.sessions.scene import CONVERSATION, Item, Sessions, SessionStore, said
from holdfast.testing.sessions.taking import ClearingPromises, PoppingPromises
from holdfast.testing.sessions.together import CancellingPromises, ConcurrencyPromises, IsolationPromises

__all__ = ["CONVERSATION", "Item", "SessionStore", "SessionSuite", "Sessions", "said"]


class SessionSuite(
    ReadingPromises,
    AddingPromises,
    PlainDataPromises,
    PoppingPromises,
    ClearingPromises,
    IsolationPromises,
    ConcurrencyPromises,
    CancellingPromises,
    RestartPromises,
):
    """Every promise of a session store. Subclass it, and supply ``make``."""
