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

from session_suite.adding import AddingPromises, PlainDataPromises
from session_suite.lifetimes import RestartPromises
from session_suite.reading import ReadingPromises
from session_suite.scene import CONVERSATION, Item, Sessions, SessionStore, said
from session_suite.taking import ClearingPromises, PoppingPromises
from session_suite.together import CancellingPromises, ConcurrencyPromises, IsolationPromises

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
