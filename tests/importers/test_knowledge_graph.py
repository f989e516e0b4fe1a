"""The file of the MCP memory server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from holdfast import importers
from holdfast.errors import Corrupt, Invalid


def take(store: holdfast.Store, place: Path, **ways: str) -> importers.ImportOutcome:
    with importers.read(place, **ways) as source:  # type: ignore[arg-type]
        return importers.import_into(store, source)


def test_the_graph_comes_in_whole(store: holdfast.Store, graph: Path) -> None:
    done = take(store, graph, user="ana", agent="helper")
    assert done.counts == {"entities": 2, "observations": 2, "relations": 1}
    memory = store.memory(user="ana", agent="helper")
    assert {(link.subject, link.relation, link.object) for link in memory.links()} == {
        ("Ana", "is a", "person"), ("Acme", "is a", "company"), ("Ana", "works at", "Acme")
    }  # fmt: skip
    told = {one.text: one for one in memory.memories(subject="Ana") if one.relation is None}
    assert set(told) == {"lives in Porto", "speaks żółć \x00"}
    assert told["lives in Porto"].origin.channel == "mcp-memory"
    assert memory.recall("where does Ana live? Porto").hits[0].text == "lives in Porto"


def test_what_was_added_since_is_added(store: holdfast.Store, graph: Path) -> None:
    take(store, graph)
    more = {"type": "entity", "name": "Bo", "entityType": "person", "observations": ["likes tea"]}
    with graph.open("a", encoding="utf-8") as file:
        file.write("\r\n\n" + json.dumps(more) + "\n")
    assert take(store, graph).new == {"memories": 2}


def test_the_same_twice_is_one(store: holdfast.Store, graph: Path) -> None:
    graph.write_text(graph.read_text(encoding="utf-8") + "\n" + graph.read_text(encoding="utf-8"), encoding="utf-8")
    done = take(store, graph)
    assert done.new == {"memories": 5}
    assert "5 lines or observations occur twice" in done.notes[0]


def test_an_entity_with_nothing_but_a_name(store: holdfast.Store, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"type":"entity","name":"Ana","entityType":"","observations":[]}', encoding="utf-8")
    take(store, path)
    assert [(memory.text, memory.subject) for memory in store.memory().memories()] == [("Ana", "Ana")]


def test_a_file_that_is_cut_short(store: holdfast.Store, graph: Path) -> None:
    whole = graph.read_bytes()
    for size in range(len(whole) // 2, len(whole) - 1, 7):
        graph.write_bytes(whole[:size])
        try:
            with importers.read(graph, "mcp-memory") as source:
                assert source.expected < 5, "it ended between two lines"
        except Corrupt as error:
            assert "may be cut short" in str(error)  # noqa: PT017 - some lengths end between two lines


@pytest.mark.parametrize(
    ("line", "error", "words"),
    [
        ('{"type": "something"}', Invalid, "neither an entity nor a relation"),
        ("[1, 2]", Invalid, "neither an entity nor a relation"),
        ('{"type": "entity", "name": "x", "entityType": "y"}', Corrupt, "observations of the entity is missing"),
        ('{"type": "relation", "from": 1, "to": "y", "relationType": "z"}', Corrupt, "from of the relation"),
        ("not json", Corrupt, "line 4: not JSON"),
    ],
)
def test_wrong_lines(graph: Path, line: str, error: type[Exception], words: str) -> None:
    with graph.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n\n")
    with pytest.raises(error, match=words):
        importers.read(graph)
