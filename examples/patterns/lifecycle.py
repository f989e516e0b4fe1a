"""The life of memories: repeated, superseded, corrected, ended, forgotten, expired, limited, erased.

Nothing fades or is merged by itself: decay, consolidation and eviction by relevance do not exist yet.
"""

import sys
from datetime import UTC, datetime
from tempfile import TemporaryDirectory

import holdfast

with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    memory, files = store.memory("ana"), store.folder("notes", user="ana")
    memory.remember("Pays by invoice")
    print("repeated:", memory.remember("Pays by invoice").count, "times, memories:", len(memory.memories()))
    memory.remember("Sails the Petrel", key="boat")
    right = memory.correct(memory.remember("Sails the Kittiwake", key="boat").id, "Sails the Fulmar")
    print("superseded and corrected:", memory.fact("boat").text)
    memory.end(right.id)
    print("ended:", memory.fact("boat"))
    [code] = memory.forget(memory.remember("The gate code is 4711").id)
    print("forgotten:", memory.recall("gate code").relevant, "and back:", memory.unforget(code.id).text)
    files.write("offer.md", "40 euros", expires=datetime.now(UTC))
    print("expired:", files.paths(), [gone.id for gone in store.expired()])
    try:
        store.set_quota(memories=5)
        memory.remember_all(["One more", "and another"])
    except holdfast.errors.QuotaExceeded as error:
        print(f"limited: {error.used} of {error.most}, corrections and ends included")
    print("erased:", store.erase(user="ana").counts["memory"], "users:", len(store.users()))

# prints:
# repeated: 2 times, memories: 1
# superseded and corrected: Sails the Fulmar
# ended: None
# forgotten: False and back: The gate code is 4711
# expired: [] ['offer.md']
# limited: 6 of 5, corrections and ends included
# erased: 6 users: 0
