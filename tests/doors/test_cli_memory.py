"""The commands about memories: what is said of them, how they are found and forgotten, as text and as JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.testing.fakes import ManualClock

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Call, Done  # noqa: E402

from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402

ESCAPE = "\x1b"
MAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words alone, unless a test names an embedder: what is tested here needs no vectors."""
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command in this process, as ``main`` does."""

    def call(*args: str | Path) -> Done:
        capsys.readouterr()
        code = run([str(arg) for arg in args])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """What is known about Ana: a fact with two values, a link, a tagged memory, and a thread."""
    path = tmp_path / "agent.db"
    with holdfast.open(path, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.remember("Prefers the aisle seat", key="seat", valid_from=MAY)
        memory.remember("Prefers the window seat", key="seat", valid_from=MAY.replace(month=6))
        memory.link("ana", "works at", "Acme", valid_from=MAY)
        memory.link("Acme", "is in", "Lisbon", valid_from=MAY)
        memory.remember("Allergic to peanuts and shellfish", tags=["health"], importance=0.9)
        trip = store.thread("trip-42", user="ana")
        trip.append(holdfast.message("user", "My cello travels in the cabin.", name="Ana"))
        trip.append(holdfast.message("assistant", "I booked a second seat for the cello."))
        store.thread("common").append(holdfast.message("user", "The printer is out of toner."))
    return path


def process(*args: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own."""
    command = [sys.executable, "-m", "holdfast", *map(str, args)]
    more = {"stdin": subprocess.DEVNULL, **more}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **more)


# Remember


def test_what_is_remembered_is_found(call: Call, tmp_path: Path) -> None:
    db = tmp_path / "new.db"
    done = call("remember", "Plays the cello on Sundays", "--user", "ana", "--db", db)
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"Remembered m[a-z2-7]{13}\.\n", done.out)
    id = done.out.split()[1].rstrip(".")
    assert call("recall", "cello", "--user", "ana", "--db", db, "--json").data["hits"][0]["id"] == id


def test_everything_that_can_be_said_of_a_memory(call: Call, tmp_path: Path) -> None:
    made = call(
        "remember", "Lives in Porto", "--db", tmp_path / "new.db", "--json", "--user", "ana", "--agent", "travel",
        "--kind", "episodic", "--key", "home", "--subject", "Tom", "--tag", "b", "--tag", "a", "--importance", "0.9",
        "--valid-from", "2026-05-01", "--valid-to", "2026-06-01T12:00", "--trust", "trusted",
        "--origin", '{"by": "Tom", "channel": "mail"}', "--relation", "lives in", "--object", "Porto",
    ).data["memory"]  # fmt: skip
    assert (made["text"], made["kind"], made["subject"], made["key"]) == ("Lives in Porto", "episodic", "Tom", "home")
    assert (made["tags"], made["importance"], made["trust"]) == (["a", "b"], 0.9, "trusted")
    assert (made["valid_from"], made["valid_to"]) == ("2026-05-01T00:00:00Z", "2026-06-01T12:00:00Z")
    assert (made["relation"], made["object"]) == ("lives in", "Porto")
    assert (made["origin"]["by"], made["origin"]["channel"]) == ("Tom", "mail")


def test_a_link_says_itself(call: Call, tmp_path: Path) -> None:
    data = call(
        "remember", "--user", "ana", "--relation", "knows", "--object", "Tom", "--db", tmp_path / "new.db", "--json"
    ).data
    assert data["memory"]["text"] == "ana knows Tom"


def test_remember_from_standard_input(tmp_path: Path) -> None:
    db = tmp_path / "new.db"
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "remember", "-", "--db", str(db)],
        input="First ask for the number.\nThen rebook.\n", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with holdfast.open(db, embedder=None) as store:
        assert store.memory().memories()[0].text == "First ask for the number.\nThen rebook.\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "say what to remember"),
        (["  "], "cannot remember"),
        (["x", "--kind", "gossip"], "kind must be semantic, episodic or procedural"),
        (["x", "--trust", "blind"], "trust must be"),
        (["x", "--importance", "2"], "importance"),
        (["x", "--relation", "knows"], "a link needs both"),
        (["x", "--valid-from", "2026-05-02", "--valid-to", "2026-05-01"], "valid_to"),
        (["x", "--valid-from", "soon"], "is not a time"),
        (["x", "--origin", "{by"], "looks like JSON"),
    ],
)
def test_what_cannot_be_remembered(call: Call, tmp_path: Path, args: list[str], said: str) -> None:
    done = call("remember", *args, "--db", tmp_path / "new.db")
    assert done.code == exits.USAGE
    assert said in done.err


# Recall


def test_recall_says_rank_score_time_place_and_who(call: Call, db: Path) -> None:
    done = call("recall", "cello cabin", "--user", "ana", "--db", db)
    first = next(line for line in done.out.splitlines() if line.startswith("1 "))
    assert re.fullmatch(
        r"1 +-?\d+\.\d\d  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  trip-42#1 +Ana +My cello travels in the cabin\.", first
    )
    assert (done.code, done.err) == (0, "")
    assert ESCAPE not in done.out


def test_a_hit_that_stands_behind_a_lower_score_says_whom_it_repeats(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        store.thread("trip-43", user="ana").append(holdfast.message("user", "my cello travels in the cabin"))
    done = call("recall", "cello cabin", "--user", "ana", "--db", db)
    hits = call("recall", "cello cabin", "--user", "ana", "--db", db, "--json").data["hits"]
    best = [hit["score"] for hit in hits if hit["repeats"] is None]
    assert best == sorted(best, reverse=True)
    [again] = [hit for hit in hits if hit["repeats"] is not None]
    assert again["rank"] == len(hits)
    assert again["score"] > best[-1]
    assert done.out.splitlines()[-1].endswith(f"(repeats {again['repeats']})")


def test_a_hit_that_a_later_one_outdates_says_which(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        older, newer = store.memory(user="eve").remember_all(
            ["I ride a Vespa", "I sold the Vespa and bought a bicycle"]
        )
    hits = call("recall", "What do I ride?", "--user", "eve", "--db", db, "--json").data["hits"]
    assert [(hit["id"], hit["superseded_by"]) for hit in hits] == [(newer.id, None), (older.id, newer.id)]
    done = call("recall", "What do I ride?", "--user", "eve", "--db", db)
    assert done.out.splitlines()[-1].endswith(f"I ride a Vespa  (superseded by {newer.id})")


@pytest.mark.parametrize("args", [["recall", "cello cabin"], ["facts"]])
def test_who_names_nobody_and_finds_nothing_is_told_whom_to_name(call: Call, db: Path, args: list[str]) -> None:
    assert "Users with threads: ana." in call(*args, "--db", db).err
    assert "threads of" not in call(*args, "--user", "ben", "--db", db).err
    assert call(*args, "--db", db, "--json").err == ""


def test_recall_as_json(call: Call, db: Path) -> None:
    data = call("recall", "allergic to peanuts", "--user", "ana", "--db", db, "--json", "-k", "2", "--explain").data
    assert (data["query"], data["relevant"]) == ("allergic to peanuts", True)
    assert 0 <= data["confidence"] <= 1
    assert [hit["rank"] for hit in data["hits"]] == [1, 2]
    first = data["hits"][0]
    assert first["id"] == first["memory"]["id"]
    assert (first["text"], first["kind"], first["entry"]) == ("Allergic to peanuts and shellfish", "semantic", None)
    assert first["why"]
    assert sum(first["why"].values()) == pytest.approx(first["score"], abs=0.01)
    assert {stage["name"] for stage in data["report"]["stages"]} >= {"words", "facts"}


def test_a_message_as_json_says_where_it_is(call: Call, db: Path) -> None:
    first = call("recall", "cello cabin", "--user", "ana", "--db", db, "--json").data["hits"][0]
    assert (first["memory"], first["entry"]["thread"], first["entry"]["number"]) == (None, "trip-42", 1)
    assert first["entry"]["content"]["content"] == "My cello travels in the cabin."


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--no-log"], {"Prefers the window seat"}),
        (["--kind", "message"], {"I booked a second seat for the cello."}),
        (["--thread", "trip-42", "--kind", "message"], {"I booked a second seat for the cello."}),
        (["--tag", "health"], {"Allergic to peanuts and shellfish"}),
        (["--as-of", "2026-05-15", "--no-log"], {"Prefers the aisle seat"}),
        (["--until", "2026-05-15", "--no-log"], {"ana works at Acme"}),
        (["--since", "2999-01-01"], set()),
        (["--trust", "trusted"], set()),
    ],
)
def test_recall_can_be_narrowed_down(call: Call, db: Path, options: list[str], found: set[str]) -> None:
    texts = {
        hit["text"] for hit in call("recall", "seat", "--user", "ana", "--db", db, "--json", *options).data["hits"]
    }
    assert texts >= found
    assert bool(texts) == bool(found)
    assert ("Prefers the aisle seat" in texts) == ("Prefers the aisle seat" in found)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--by", "Tom"], {"Tom wants a seat by the door"}),
        (["--by", "Ana"], {"My cello travels in the cabin."}),
        (["--channel", "mail"], {"Tom wants a seat by the door"}),
        (["--tool", "seatmap"], {"Row 12 has a free seat"}),
        (["--subject", "tom"], {"Tom wants a seat by the door"}),
        (["--subject", "tom", "--channel", "phone"], set()),
    ],
)
def test_recall_by_whom_and_through_what(call: Call, db: Path, options: list[str], found: set[str]) -> None:
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.remember("Tom wants a seat by the door", subject="Tom", origin={"by": "Tom", "channel": "mail"})
        memory.remember("Row 12 has a free seat", origin={"tool": "seatmap"})
    hits = call("recall", "seat cello", "--user", "ana", "--db", db, "--json", *options).data["hits"]
    assert {hit["text"] for hit in hits} == found


def test_nothing_relevant_is_said_plainly(call: Call, db: Path) -> None:
    done = call("recall", "quantum chromodynamics lattice", "--user", "ana", "--db", db)
    assert done.code == exits.OK
    assert done.out.startswith("Nothing relevant was found.")
    empty = call("recall", "anything", "--user", "nobody", "--db", db)
    assert (empty.code, empty.out) == (exits.OK, "Nothing relevant was found.\n")
    data = call("recall", "anything", "--user", "nobody", "--db", db, "--json").data
    assert (data["relevant"], data["hits"]) == (False, [])


def test_recall_explains_its_scores_and_stages(call: Call, db: Path) -> None:
    done = call("recall", "which seat", "--user", "ana", "--db", db, "--explain", "-k", "3")
    assert "What the scores are made of" in done.out
    parts = done.out.split("What the scores are made of")[1]
    assert re.search(r"^ +PART +1 +2 +3$", parts, re.M)
    assert re.search(r"^ +words +-?\d+\.\d\d", parts, re.M)
    assert re.search(r"^ +STAGE +MS +LEFT OUT$", parts, re.M)
    assert "looked at in" in parts


def test_a_budget_that_is_used_up_is_said(call: Call, db: Path) -> None:
    done = call("recall", "which seat", "--user", "ana", "--db", db, "--within-ms", "0.0001")
    assert done.code == exits.OK
    assert "There was no time for: " in done.err
    assert "window seat" in done.out
    assert call("recall", "x", "--user", "ana", "--db", db, "--within-ms", "0").code == exits.USAGE


def test_recall_writes_the_links_around_what_was_found(call: Call, db: Path, tmp_path: Path) -> None:
    mermaid, dot = tmp_path / "links.mmd", tmp_path / "links.dot"
    done = call("recall", "where is Acme?", "--user", "ana", "--db", db, "--graph", mermaid)
    assert "2 links written to" in done.err
    text = mermaid.read_text(encoding="utf-8")
    assert all(f'"{word}"' in text for word in ("ana", "Acme", "Lisbon", "works at", "is in"))
    data = call("recall", "Acme", "--user", "ana", "--db", db, "--graph", dot, "--json").data
    assert {link["object"] for link in data["graph"]["links"]} == {"Acme", "Lisbon"}
    assert "digraph" in dot.read_text(encoding="utf-8")
    assert call("recall", "x", "--db", db, "--graph", tmp_path / "links.svg").code == exits.USAGE
    assert not (tmp_path / "links.svg").exists()


def test_the_graph_goes_two_hops_far_and_no_further(call: Call, db: Path, tmp_path: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.link("Lisbon", "is in", "Portugal", valid_from=MAY, valid_to=MAY.replace(year=2999))
        memory.link("Portugal", "is in", "Europe", valid_from=MAY)
        memory.link("Europe", "is on", "Earth", valid_from=MAY)
        memory.link("...", "is", "!!!", valid_from=MAY)  # no words at all, so no query names it
    dot = tmp_path / "links.dot"
    query = ["recall", "Lisbon", "--user", "ana", "--db", str(db), "--graph", str(dot)]
    # only in a thread, so that no memory is a hit and the query alone names where to begin
    data = call(*query, "--kind", "message", "--json").data
    drawn = [f"{link['subject']} {link['object']}" for link in data["graph"]["links"]]
    assert drawn[:2] == ["Acme Lisbon", "Lisbon Portugal"]
    assert set(drawn[2:]) == {"ana Acme", "Portugal Europe"}
    assert "dashed" not in dot.read_text(encoding="utf-8")  # a link that will end holds until then


def test_memories_are_listed_filtered_and_paged(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="bo")
        for number in range(5):
            memory.remember(f"fact {number}", tags=["numbered"], key="seat" if number else None)
        memory.remember("how to pack", kind="procedural", subject="trips")
        gone = memory.remember("a secret")
        memory.forget(gone.id)

    def texts(*args: str) -> list[str]:
        data = call("memories", "--user", "bo", "--db", db, "--json", *args).data
        return [each["text"] for each in data["memories"]]

    assert texts() == ["how to pack", "fact 4", "fact 3", "fact 2", "fact 1", "fact 0"]
    assert texts("--kind", "procedural") == texts("--subject", "trips") == ["how to pack"]
    assert len(texts("--tag", "numbered")) == 5
    assert texts("--forgotten") == ["a secret"]
    assert texts("--limit", "2", "--offset", "1") == ["fact 4", "fact 3"]
    assert texts("--limit", "0", "--offset", "4") == ["fact 1", "fact 0"]
    page = call("memories", "--user", "bo", "--db", db, "--limit", "2", "--offset", "2")
    assert "There are more: --offset 4 lists the next." in page.err
    heading, first, _ = page.out.splitlines()
    assert heading.split() == ["RECORDED", "KIND", "SUBJECT", "KEY", "TEXT", "TAGS", "ID"]
    assert first.split()[1:] == ["semantic", "bo", "seat", "fact", "3", "numbered", first.split()[-1]]
    last = call("memories", "--user", "bo", "--db", db, "--limit", "2", "--offset", "4", "--json").data
    assert (len(last["memories"]), last["offset"], last["more"]) == (2, 4, False)
    assert call("memories", "--user", "bo", "--tag", "none", "--db", db).out == "No memories.\n"


def test_links_are_listed(call: Call, db: Path) -> None:
    done = call("links", "--user", "ana", "--db", db)
    heading, first, second = done.out.splitlines()
    assert heading.split() == ["SUBJECT", "RELATION", "OBJECT", "SINCE", "ID"]
    assert re.fullmatch(r"ana +works at  Acme +2026-05-01T00:00:00Z  m[a-z2-7]{13}", first)
    assert second.startswith("Acme ")
    near = call("links", "ana", "--user", "ana", "--db", db, "--json").data
    assert (near["entity"], [link["object"] for link in near["links"]]) == ("ana", ["Acme"])
    far = call("links", "ana", "--hops", "2", "--user", "ana", "--db", db, "--json").data
    assert [link["object"] for link in far["links"]] == ["Acme", "Lisbon"]
    assert call("links", "--as-of", "2026-04-01", "--user", "ana", "--db", db).out == "No links.\n"
    assert call("links", "Bo", "--user", "ana", "--db", db).out == "No links.\n"


def test_links_as_text_for_programs_that_draw(call: Call, db: Path) -> None:
    dot = call("links", "Acme", "--user", "ana", "--db", db, "--dot")
    assert dot.out.startswith("digraph memory {")
    assert dot.out.endswith("}\n")
    assert '[label="works at"]' in dot.out
    mermaid = call("links", "--user", "ana", "--db", db, "--mermaid")
    assert mermaid.out.startswith("flowchart LR\n")
    assert '-->|"works at"|' in mermaid.out
    data = call("links", "Acme", "--user", "ana", "--db", db, "--mermaid", "--json").data
    assert (len(data["links"]), 'title: "Acme"' in data["mermaid"]) == (2, True)
    assert call("links", "--user", "ana", "--db", db, "--dot", "--mermaid").code == exits.USAGE


def test_the_embedder_is_named_by_option_or_environment(call: Call, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "crystal-ball")
    assert "There is no embedder 'crystal-ball'" in call("recall", "seat", "--user", "ana", "--db", db).err
    assert call("recall", "seat", "--user", "ana", "--db", db, "--embedder", "none").code == exits.OK
    assert call("threads", "--db", db).code == exits.OK  # a command that needs no embedder does not stumble over it
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "")
    assert call("recall", "seat", "--user", "ana", "--db", db).code == exits.OK


@pytest.mark.parametrize(
    "args",
    [
        ["recall", "x", "-k", "0"],
        ["recall", "x", "-k", "5000"],
        ["recall", "x", "--kind", "gossip"],
        ["recall", "x", "--trust", "blind"],
        ["recall", "x", "--since", "soon"],
        ["recall"],
        ["facts", "--history", "seat", "--as-of", "3d"],
        ["forget"],
        ["forget", "x"],
        ["links", "--hops", "2"],
        ["links", "ana", "--hops", "0"],
        ["links", "ana", "--hops", "3"],
        ["links", "--dot", "--mermaid"],
        ["memories", "--limit", "-1"],
        ["memories", "--kind", "gossip"],
        ["correct"],
        ["end", "x"],
        ["procedures", "--limit", "-1"],
        ["rebuild", "--reembed", "--rollback"],
    ],
)
def test_calls_that_make_no_sense(call: Call, db: Path, args: list[str]) -> None:
    done = call(*args, "--db", db)
    assert done.code == exits.USAGE
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "command",
    [
        ["recall", "x"], ["facts"], ["forget", "--tag", "x"], ["learn", "t"], ["rebuild"], ["links"], ["procedures"],
        ["contradictions"], ["correct", "maaaaaaaaaaaaa"], ["end", "maaaaaaaaaaaaa"],
    ],
)  # fmt: skip
def test_a_store_that_is_not_there_is_not_made(call: Call, tmp_path: Path, command: list[str]) -> None:
    assert call(*command, "--db", tmp_path / "none.db").code == exits.NOT_FOUND
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_is_remembered_can_steer_a_terminal(call: Call, tmp_path: Path) -> None:
    nasty = f"a{ESCAPE}[2J{ESCAPE}]0;owned\x07\x9b31m\u202egnp.exe\r seat"
    name, db = "a\u202egnp.exe", tmp_path / "nasty.db"
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        id = memory.remember(nasty, key="seat", subject=name, relation=name, object=name).id
        memory.remember(nasty, kind="procedural")
    for command in (
        ["recall", "seat", "--explain"], ["facts"], ["forget", "--subject", name, "--dry-run"], ["links"],
        ["procedures"], ["correct", id, nasty], ["forget", id, "--undo"],
    ):  # fmt: skip
        done = call(*command, "--user", "ana", "--db", db)
        assert "a\\x1b[2J" in done.out or command == ["links"]
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.out + done.err), command


# Facts


def test_facts_now_and_then(call: Call, db: Path) -> None:
    done = call("facts", "--user", "ana", "--db", db)
    assert done.out.splitlines()[0].split() == ["SUBJECT", "KEY", "VALUE", "SINCE", "ID"]
    assert "Prefers the window seat" in done.out
    assert "aisle" not in done.out
    then = call("facts", "--user", "ana", "--db", db, "--as-of", "2026-05-15", "--json").data["facts"]
    assert [fact["text"] for fact in then] == ["Prefers the aisle seat"]
    none = call("facts", "--user", "ana", "--subject", "Tom", "--db", db)
    assert (none.out, none.err) == ("No facts.\n", "")
    call("remember", "Tom sails", "--user", "ana", "--subject", "Tom", "--db", db)
    some = call("facts", "--user", "ana", "--subject", "Tom", "--db", db)
    assert (some.out, "list them with memories" in some.err) == ("No facts.\n", True)


def test_the_history_of_a_fact(call: Call, db: Path) -> None:
    done = call("facts", "--user", "ana", "--history", "seat", "--db", db)
    heading, first, second = done.out.splitlines()
    assert heading.split() == ["SINCE", "UNTIL", "STANDS", "VALUE", "ID"]
    assert re.match(r"2026-05-01T00:00:00Z  2026-06-01T00:00:00Z  superseded  Prefers the aisle seat", first)
    assert re.match(r"2026-06-01T00:00:00Z  -  +holds  +Prefers the window seat", second)
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.correct(memory.history("seat")[0].memory.id)
        memory.end(memory.history("seat")[-1].memory.id)
    stands = [
        each["stands"]
        for each in call("facts", "--user", "ana", "--history", "seat", "--db", db, "--json").data["versions"]
    ]
    assert stands == ["never true", "superseded", "has no value"]
    unknown = call("facts", "--user", "ana", "--history", "shoe", "--db", db)
    assert (unknown.code, unknown.out) == (exits.NOT_FOUND, "")
    assert "there is no fact 'shoe' here" in unknown.err


def test_facts_as_they_were_known(call: Call, tmp_path: Path) -> None:
    db, clock = tmp_path / "agent.db", ManualClock(MAY)
    with holdfast.open(db, embedder=None, clock=clock) as store:
        memory = store.memory(user="ana")
        memory.remember("Lives in Porto", key="home")
        clock.advance(10 * 86_400)
        memory.remember("Lives in Lisbon", key="home", valid_from=MAY + timedelta(days=2))
    then = ["--as-of", "2026-05-05", "--user", "ana", "--db", str(db), "--json"]
    assert [fact["text"] for fact in call("facts", *then).data["facts"]] == ["Lives in Lisbon"]
    known = call("facts", *then, "--known-at", "2026-05-06").data["facts"]
    assert [fact["text"] for fact in known] == ["Lives in Porto"]
    history = ["--history", "home", "--user", "ana", "--db", str(db), "--json"]
    assert len(call("facts", *history).data["versions"]) == 2
    assert len(call("facts", *history, "--known-at", "2026-05-06").data["versions"]) == 1
    before = call("facts", *history, "--known-at", "2026-04-01")
    assert before.code == exits.NOT_FOUND
    assert "known by then" in json.loads(before.err)["error"]["message"]


# Forget


def test_forget_one_memory(call: Call, db: Path) -> None:
    id = call("recall", "peanuts", "--user", "ana", "--db", db, "--json").data["hits"][0]["id"]
    done = call("forget", id, "--user", "ana", "--db", db)
    assert "Forgotten: 1 memory." in done.out
    assert id in done.out
    assert "peanuts" not in call("recall", "peanuts", "--user", "ana", "--db", db).out
    with holdfast.open(db, embedder=None) as store:
        assert store.memory(user="ana").unforget(id).text == "Allergic to peanuts and shellfish"
    assert call("forget", "maaaaaaaaaaaaa", "--user", "ana", "--db", db).code == exits.NOT_FOUND


def test_forget_a_fact_or_what_has_a_tag(call: Call, db: Path) -> None:
    dry = call("forget", "--key", "seat", "--user", "ana", "--db", db, "--dry-run", "--json").data
    assert (len(dry["forgotten"]), dry["dry_run"]) == (2, True)
    assert (
        "Would be forgotten: 2 memories."
        in call("forget", "--key", "seat", "--user", "ana", "--db", db, "--dry-run").out
    )
    assert len(call("facts", "--user", "ana", "--db", db, "--json").data["facts"]) == 1
    assert call("forget", "--key", "seat", "--user", "ana", "--db", db).code == exits.OK
    assert call("facts", "--user", "ana", "--db", db, "--json").data["facts"] == []


@pytest.mark.parametrize(
    "choice", [["--key", "shoe"], ["--tag", "none"], ["--kind", "procedural"], ["--subject", "Bo"]]
)
@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--erase"]])
def test_nothing_that_could_be_forgotten_is_not_found(call: Call, db: Path, choice: list[str], more: list[str]) -> None:
    done = call("forget", *choice, *more, "--user", "ana", "--db", db)
    assert (done.code, done.out) == (exits.NOT_FOUND, "")
    assert choice[1] in done.err


def test_what_stays_because_it_is_in_another_book_is_said(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        store.memory(user="ana", agent="desk").remember("Needs an invoice", tags=["office"])
    done = call("forget", "--tag", "office", "--user", "ana", "--db", db)
    stays = "Needs an invoice" in call("recall", "invoice", "--user", "ana", "--db", db).out
    assert done.code == (exits.NOT_FOUND if stays else exits.OK)
    assert ("--agent" in done.err) == stays
    if stays:
        assert call("forget", "--tag", "office", "--user", "ana", "--agent", "desk", "--db", db).code == exits.OK


def test_what_was_forgotten_comes_back(call: Call, db: Path) -> None:
    id = call("forget", "--tag", "health", "--user", "ana", "--db", db, "--json").data["forgotten"][0]["id"]
    assert "peanuts" not in call("recall", "peanuts", "--user", "ana", "--db", db).out
    done = call("forget", id, "--undo", "--user", "ana", "--db", db)
    assert (done.code, done.err) == (exits.OK, "")
    assert "Restored: 1 memory." in done.out
    assert "peanuts" in call("recall", "peanuts", "--user", "ana", "--db", db).out
    again = call("forget", id, "--undo", "--user", "ana", "--db", db)
    assert (again.code, again.out.splitlines()[0]) == (exits.OK, "It is not forgotten.")
    assert call("forget", id, "--undo", "--user", "ana", "--db", db, "--json").data == {"restored": []}
    assert call("forget", "maaaaaaaaaaaaa", "--undo", "--user", "ana", "--db", db).code == exits.NOT_FOUND


@pytest.mark.parametrize(
    "more", [[], ["--key", "seat"], ["maaaaaaaaaaaaa", "--erase"], ["maaaaaaaaaaaaa", "--dry-run"]]
)
def test_undo_takes_an_id_alone(call: Call, db: Path, more: list[str]) -> None:
    done = call("forget", "--undo", *more, "--user", "ana", "--db", db)
    assert done.code == exits.USAGE
    assert "--undo needs the ID" in done.err


@pytest.mark.parametrize("choice", [["--tag", "health"], ["--key", "seat"], ["--kind", "semantic"]])
def test_erase_takes_what_was_forgotten_before(call: Call, db: Path, choice: list[str]) -> None:
    assert call("forget", *choice, "--user", "ana", "--db", db).code == exits.OK
    dry = call("forget", *choice, "--erase", "--dry-run", "--user", "ana", "--db", db, "--json").data["erased"]
    gone = call("forget", *choice, "--erase", "--user", "ana", "--db", db, "--json").data["erased"]
    assert [each["id"] for each in gone] == [each["id"] for each in dry] != []
    with holdfast.open(db, embedder=None) as store:
        assert store.memory(user="ana").memories(forgotten=True) == []


def test_erase_leaves_no_text(call: Call, db: Path) -> None:
    done = call("forget", "--tag", "health", "--user", "ana", "--db", db, "--erase")
    assert "Erased: 1 memory." in done.out
    with holdfast.open(db, embedder=None) as store:
        assert store.memory(user="ana").memories(tag="health", forgotten=True) == []
        assert store.verify().ok


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(
    ("args", "answer", "code", "left"),
    [
        (["--key", "seat"], "n", exits.NO, 5),
        (["--key", "seat"], "y", exits.OK, 3),
        (["--key", "seat", "--yes"], "", exits.OK, 3),
        (["--tag", "health"], "", exits.OK, 4),
        (["--tag", "health", "--erase"], "n", exits.NO, 5),
        (["--key", "seat", "--erase"], "y", exits.OK, 3),
    ],
)
def test_forget_asks_on_a_terminal(db: Path, args: list[str], answer: str, code: int, left: int) -> None:
    ours, theirs = os.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = process("forget", *args, "--user", "ana", "--db", db, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == code
    assert ("?" in done.stderr) == bool(answer)
    with holdfast.open(db, embedder=None) as store:
        assert len(store.memory(user="ana").memories()) == left


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
def test_erasing_on_a_terminal_takes_what_was_forgotten_before(db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        store.memory(user="ana").forget(key="seat")
    ours, theirs = os.openpty()
    try:
        os.write(ours, b"y\n")
        done = process("forget", "--key", "seat", "--erase", "--user", "ana", "--db", db, stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == exits.OK, done.stderr
    assert "Erase 2 memories for good?" in done.stderr
    with holdfast.open(db, embedder=None) as store:
        assert store.memory(user="ana").memories(forgotten=True) == []


# Correct and end


def test_what_was_never_true(call: Call, db: Path) -> None:
    window = call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["id"]
    done = call("correct", window, "Prefers the exit row", "--origin", "Tom", "--user", "ana", "--db", db)
    assert (done.code, done.err) == (exits.OK, "")
    never, old, instead, new = done.out.splitlines()
    assert (never, instead) == ("Never true:", "True instead:")
    assert window in old
    assert "Prefers the exit row" in new
    fact = call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]
    assert (fact["text"], fact["corrects"], fact["origin"]["by"]) == ("Prefers the exit row", window, "Tom")
    assert "window" not in call("recall", "which seat", "--user", "ana", "--no-log", "--db", db).out


def test_a_correction_can_be_taken_back(call: Call, db: Path) -> None:
    window = call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["id"]
    data = call("correct", window, "--user", "ana", "--db", db, "--json").data
    assert (data["never_true"]["id"], data["memory"]["corrects"]) == (window, window)
    assert call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["text"] == "Prefers the aisle seat"
    assert call("forget", data["memory"]["id"], "--user", "ana", "--db", db).code == exits.OK
    assert call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["id"] == window


def test_a_correction_from_standard_input(db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        wrong = store.memory(user="ana").fact("seat")
        assert wrong is not None
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "correct", wrong.id, "-", "--user", "ana", "--db", str(db)],
        input="Prefers the exit row", capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == exits.OK, done.stderr
    with holdfast.open(db, embedder=None) as store:
        right = store.memory(user="ana").fact("seat")
    assert right is not None
    assert right.text == "Prefers the exit row"


def test_what_is_no_longer_true(call: Call, db: Path) -> None:
    window = call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["id"]
    done = call("end", window, "--at", "2026-07-01", "--user", "ana", "--db", db)
    assert (done.code, done.err) == (exits.OK, "")
    assert re.fullmatch(r"No longer true:\n  \S+  ana, seat  Prefers .*\nRecorded as m[a-z2-7]{13}\.\n", done.out)
    assert call("facts", "--user", "ana", "--db", db, "--json").data["facts"] == []
    then = call("facts", "--user", "ana", "--as-of", "2026-06-15", "--db", db, "--json").data["facts"]
    assert [fact["id"] for fact in then] == [window]
    link = call("links", "Lisbon", "--user", "ana", "--db", db, "--json").data["links"][0]["id"]
    data = call("end", link, "--user", "ana", "--db", db, "--json").data
    assert (data["no_longer_true"]["id"], data["memory"]["ended"]) == (link, True)
    assert call("links", "Lisbon", "--user", "ana", "--db", db, "--json").data["links"] == []


def test_what_cannot_be_corrected_or_ended(call: Call, db: Path) -> None:
    window = call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["id"]
    early = call("end", window, "--at", "2026-01-01", "--user", "ana", "--db", db)
    assert early.code == exits.USAGE
    assert "cannot end before" in early.err
    assert call("correct", window, "--origin", "Tom", "--user", "ana", "--db", db).code == exits.USAGE
    for command in ("correct", "end"):
        assert call(command, window, "--user", "bo", "--db", db).code == exits.NOT_FOUND
        assert call(command, "maaaaaaaaaaaaa", "--user", "ana", "--db", db).code == exits.NOT_FOUND
    assert call("facts", "--user", "ana", "--db", db, "--json").data["facts"][0]["id"] == window


# Procedures and contradictions


def test_procedures_come_by_their_use(call: Call, db: Path) -> None:
    assert call("procedures", "--user", "ana", "--db", db).out == "No procedures.\n"
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.remember("Ask for the booking number.\nThen rebook.", kind="procedural")
        useful = memory.remember("Look at the fare rules first.", kind="procedural")
        memory.used(useful.id, helped=True)
    heading, first, second = call("procedures", "--user", "ana", "--db", db).out.splitlines()
    assert heading.split() == ["USED", "HELPED", "HOW", "ID"]
    assert re.fullmatch(rf" +1 +1  Look at the fare rules first\. +{useful.id}", first)
    assert "Ask for the booking number. Then rebook." in second
    data = call("procedures", "--user", "ana", "--limit", "1", "--db", db, "--json").data["procedures"]
    assert [each["id"] for each in data] == [useful.id]
    assert len(call("procedures", "--user", "ana", "--limit", "0", "--db", db, "--json").data["procedures"]) == 2


def test_contradictions_are_listed_in_pairs(call: Call, db: Path) -> None:
    assert call("contradictions", "--user", "ana", "--db", db).out == "No contradictions.\n"
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        pair = [memory.remember("Ana likes walnut cake"), memory.remember("Ana does not like walnut cake")]
    done = call("contradictions", "--user", "ana", "--db", db)
    why, first, second = done.out.splitlines()
    assert pair[0].id in first
    assert pair[1].id in second
    data = call("contradictions", "--user", "ana", "--db", db, "--json").data["contradictions"]
    assert [(each["first"]["id"], each["second"]["id"]) for each in data] == [(pair[0].id, pair[1].id)]
    assert why == f"{data[0]['rule']}: {data[0]['why']}"
    call("forget", pair[0].id, "--user", "ana", "--db", db)
    assert call("contradictions", "--user", "ana", "--db", db, "--json").data == {"contradictions": []}


# Learn and rebuild


def test_learn_reads_a_thread(call: Call, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        thread = store.thread("chat", user="ana")
        thread.append(holdfast.message("user", "My name is Ana Lima and I live in Porto."))
    data = call("learn", "chat", "--db", db, "--json").data
    assert data["thread"] == "chat"
    assert data["memories"]
    assert {entry["thread"] for each in data["memories"] for entry in each["origin"]["entries"]} == {"chat"}
    done = call("learn", "chat", "--db", db)
    assert f"{len(data['memories'])} memor" in done.out.splitlines()[0]
    assert "Porto" in call("recall", "Where does Ana live?", "--user", "ana", "--no-log", "--db", db).out
    assert call("learn", "nowhere", "--db", db).code == exits.NOT_FOUND


def test_rebuild_makes_the_indexes_again(call: Call, db: Path) -> None:
    before = call("recall", "which seat", "--user", "ana", "--db", db, "--json").data["hits"]
    data = call("rebuild", "--user", "ana", "--db", db, "--json").data
    assert data["documents"] >= 7
    assert "Rebuilt: " in call("rebuild", "--user", "ana", "--db", db).out
    after = call("recall", "which seat", "--user", "ana", "--db", db, "--json").data["hits"]
    assert [hit["id"] for hit in after] == [hit["id"] for hit in before]


def test_rebuild_says_when_no_index_is_saved(call: Call, db: Path) -> None:
    done = call("rebuild", "--db", db)
    assert (done.code, done.err) == (exits.OK, "")
    assert done.out.startswith("There is no saved index")
    assert call("rebuild", "--db", db, "--json").data == {"documents": 0}
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.remember_all(f"Sat in seat {number} once" for number in range(300))
        memory.recall("seat")
    assert re.match(r"Rebuilt: 30\d documents", call("rebuild", "--db", db).out)


def test_types_and_metadata_are_given_and_asked_for(call: Call, tmp_path: Path) -> None:
    where = ("--db", tmp_path / "meta.db", "--json")

    def told(*args: str) -> Any:
        done = call(*where, *args, "--user", "ana")
        assert done.code == 0, done.err
        return json.loads(done.out)

    told("remember", "the build broke", "--type", "incident", "--meta", "project=apollo", "--meta", "build=7")
    told("remember", "the build passed", "--meta", "project=gemini")
    assert [one["text"] for one in told("memories", "--type", "incident")["memories"]] == ["the build broke"]
    found = told("memories", "--where", "build=7", "--where", "project=apollo")["memories"]
    assert [one["metadata"] for one in found] == [{"project": "apollo", "build": 7}]
    assert len(told("recall", "the build", "--where", "project=gemini")["hits"]) == 1
    assert "NAME=VALUE" in call(*where[:2], "memories", "--where", "project", "--user", "ana").err
