"""The life of memories: repeated, superseded, ended, corrected, forgotten, expired, limited, erased.

Nothing fades or is merged by itself: decay, consolidation and eviction by relevance do not exist yet.
"""

import sys
import tempfile

import holdfast
from holdfast.testing import ManualClock

clock = ManualClock()
with tempfile.TemporaryDirectory() as folder:
    with holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db", clock=clock) as store:
        memory, files = store.memory("ana"), store.folder("notes", user="ana")
        memory.remember("Pays by invoice")
        print("repeated:", memory.remember("Pays by invoice").count, "of", len(memory.memories()))
        memory.remember("Sails the Petrel", key="boat")
        boat = memory.remember("Sails the Kittiwake", key="boat")
        print("superseded:", memory.fact("boat").text, len(memory.history("boat")))
        memory.correct(boat.id, "Sails the Fulmar")
        print("corrected:", memory.fact("boat").text)
        memory.end(memory.fact("boat").id)
        print("ended:", memory.fact("boat"))
        code = memory.forget(memory.remember("The gate code is 4711").id)[0]
        print("forgotten:", memory.recall("gate code", log=False).relevant, memory.unforget(code.id).text)
        files.write("offer.md", "40 euros", expires=clock.now() + 60_000_000)
        clock.advance(61)
        print("expired:", files.paths(), [gone.id for gone in store.expired()])
        store.set_quota(memories=5)
        try:
            memory.remember("One more")
        except holdfast.errors.QuotaExceeded:
            print("limited:", store.usage().memories.most)
        print("erased:", store.erase(user="ana").counts["memory"], len(store.users()))

# prints:
# repeated: 2 of 1
# superseded: Sails the Kittiwake 2
# corrected: Sails the Fulmar
# ended: None
# forgotten: False The gate code is 4711
# expired: [] ['offer.md']
# limited: 5
# erased: 6 0
