"""Selective schema: a small document of what matters, with a version, migrated on load, whose facts grow old.

The oldest program saved a plain dict; version 1 gave it preferences, version 2 several moorings.
"""

import sys
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import TypedDict

import holdfast


@holdfast.schema("owner", version=2, fresh={"confirmed_facts.*": "30d"}, critical=["confirmed_facts.*"])
class Owner(TypedDict):
    preferences: dict[str, str]
    confirmed_facts: list[dict]
    moorings: list[str]


holdfast.migration("owner", 0, 1)(lambda old: {**old, "preferences": {}})
holdfast.migration("owner", 1, 2)(lambda old: {"moorings": [old.pop("mooring")], **old})

with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    thread = store.thread("owner-7", user="ana")
    old = {"fact": "owns the Petrel", "confirmed_at": "2024-04-28T14:22:00Z"}
    new = {"fact": "pays by invoice", "confirmed_at": datetime.now(UTC).isoformat()}
    thread.save({"confirmed_facts": [old, new], "mooring": "N3"})
    loaded = thread.state(Owner)
    print("from version", loaded.migrated_from, loaded.value["moorings"], loaded.value["preferences"])
    print("ask again:", [loaded.value["confirmed_facts"][0]["fact"]], loaded.must_verify)
    thread.confirm("confirmed_facts[0]", by="ana")  # what is stored has the new form from here on
    print("after asking:", thread.state(Owner).must_verify)

# prints:
# from version 0 ['N3'] {}
# ask again: ['owns the Petrel'] ('confirmed_facts[0]',)
# after asking: ()
