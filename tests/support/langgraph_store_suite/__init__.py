"""What people rely on in a store of LangGraph, as tests: for ours, those that come with LangGraph, and yours.

A store is proved by a class of a few lines::

    class TestMyStore(LangGraphStoreContract):
        can = LangGraphStoreContract.can | {"ttl", "durable"}

        @pytest.fixture
        def store(self, tmp_path):
            with MyStore(tmp_path / "store.db") as store:
                yield store

        @pytest.fixture
        def later(self, store):          # for "ttl": let so many minutes pass for the store
            return lambda minutes: store.clock.advance(minutes * 60)

        @pytest.fixture
        def reopen(self, store, tmp_path):   # for "durable": close it, and open what it left
            opened = []
            def again():
                store.close()
                opened.append(MyStore(tmp_path / "store.db"))
                return opened[-1]
            yield again
            for one in opened:
                one.close()

``can`` names what a store makes a claim to (``CAPABILITIES``); a promise about anything else is skipped by that name.
Every promise follows from the words of ``langgraph.store.base``, or from what a caller cannot do without. Deliberately
absent: speed, and what a store offers beyond the interface.
"""

from __future__ import annotations

from langgraph_store_suite.batches import BatchPromises
from langgraph_store_suite.items import ItemPromises
from langgraph_store_suite.lifetimes import DurablePromises, ExpiryPromises
from langgraph_store_suite.namespaces import ListPromises, NamespacePromises
from langgraph_store_suite.queries import QueryPromises
from langgraph_store_suite.scene import CAPABILITIES, Later, Reopen, keys
from langgraph_store_suite.searching import FilterPromises, SearchPromises
from langgraph_store_suite.together import AsyncPromises, ThreadPromises

__all__ = ["CAPABILITIES", "LangGraphStoreContract", "Later", "Reopen", "keys"]


class LangGraphStoreContract(
    ItemPromises,
    NamespacePromises,
    ListPromises,
    BatchPromises,
    SearchPromises,
    FilterPromises,
    QueryPromises,
    ExpiryPromises,
    DurablePromises,
    AsyncPromises,
    ThreadPromises,
):
    """Every promise of a store. Subclass it, say what it ``can``, and supply ``store`` and what that needs."""
