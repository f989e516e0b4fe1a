"""The commands about memories: remember, recall, facts, forget, learn and rebuild, as text and as JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

import holdfast

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402

ESCAPE = "\x1b"
MAY = datetime(2026, 5, 1, tzinfo=UTC)


class Done(NamedTuple):
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Done]


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
        (["  "], "nothing to remember"),
        (["x", "--kind", "gossip"], "kind must be semantic, episodic or procedural"),
        (["x", "--trust", "blind"], "trust must be"),
        (["x", "--importance", "2"], "importance"),
        (["x", "--relation", "knows"], "a link needs both"),
        (["x", "--valid-from", "2026-05-02", "--valid-to", "2026-05-01"], "valid_to"),
        (["x", "--valid-from", "soon"], "is no moment"),
        (["x", "--origin", "{by"], "begins like JSON"),
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
    assert "No time was left for: " in done.err
    assert "window seat" in done.out
    assert call("recall", "x", "--user", "ana", "--db", db, "--within-ms", "0").code == exits.USAGE


def test_recall_draws_the_links_around_what_was_found(call: Call, db: Path, tmp_path: Path) -> None:
    svg, dot = tmp_path / "links.svg", tmp_path / "links.dot"
    done = call("recall", "where is Acme?", "--user", "ana", "--db", db, "--graph", svg)
    assert "2 links drawn in" in done.err
    texts = {"".join(text.itertext()) for text in ElementTree.fromstring(svg.read_text(encoding="utf-8")).iter()}
    assert {"ana", "Acme", "Lisbon", "works at", "is in"} <= texts
    data = call("recall", "Acme", "--user", "ana", "--db", db, "--graph", dot, "--json").data
    assert {link["object"] for link in data["graph"]["links"]} == {"Acme", "Lisbon"}
    assert "digraph" in dot.read_text(encoding="utf-8")
    assert call("recall", "x", "--db", db, "--graph", tmp_path / "links.png").code == exits.USAGE
    assert not (tmp_path / "links.png").exists()


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
        ["rebuild", "--reembed", "--rollback"],
    ],
)
def test_calls_that_make_no_sense(call: Call, db: Path, args: list[str]) -> None:
    done = call(*args, "--db", db)
    assert done.code == exits.USAGE
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", [["recall", "x"], ["facts"], ["forget", "--tag", "x"], ["learn", "t"], ["rebuild"]])
def test_a_store_that_is_not_there_is_not_made(call: Call, tmp_path: Path, command: list[str]) -> None:
    assert call(*command, "--db", tmp_path / "none.db").code == exits.NOT_FOUND
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_is_remembered_can_steer_a_terminal(call: Call, tmp_path: Path) -> None:
    nasty = f"a{ESCAPE}[2J{ESCAPE}]0;owned\x07\x9b31m\u202egnp.exe\r seat"
    db = tmp_path / "nasty.db"
    with holdfast.open(db, embedder=None) as store:
        store.memory(user="ana").remember(nasty, key="seat", subject=nasty)
    for command in (["recall", "seat", "--explain"], ["facts"], ["forget", "--subject", nasty, "--dry-run"]):
        done = call(*command, "--user", "ana", "--db", db)
        assert "a\\x1b[2J" in done.out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.out + done.err), command


# Facts


def test_facts_now_and_then(call: Call, db: Path) -> None:
    done = call("facts", "--user", "ana", "--db", db)
    assert done.out.splitlines()[0].split() == ["SUBJECT", "KEY", "VALUE", "SINCE", "ID"]
    assert "Prefers the window seat" in done.out
    assert "aisle" not in done.out
    then = call("facts", "--user", "ana", "--db", db, "--as-of", "2026-05-15", "--json").data["facts"]
    assert [fact["text"] for fact in then] == ["Prefers the aisle seat"]
    assert call("facts", "--user", "ana", "--subject", "Tom", "--db", db).out == "No facts.\n"


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
    assert "never was such a fact" in call("facts", "--user", "ana", "--history", "shoe", "--db", db).out


# Forget


def test_forget_one_memory(call: Call, db: Path) -> None:
    id = call("recall", "peanuts", "--user", "ana", "--db", db, "--json").data["hits"][0]["id"]
    done = call("forget", id, "--user", "ana", "--db", db)
    assert "Forgotten: 1 memory." in done.out
    assert id in done.out
    assert "peanuts" not in call("recall", "peanuts", "--user", "ana", "--db", db).out
    with holdfast.open(db, embedder=None) as store:
        assert store.memory(user="ana").restore(id).text == "Allergic to peanuts and shellfish"
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
    assert "nothing to forget" in call("forget", "--tag", "none", "--user", "ana", "--db", db).out
    assert call("forget", "--key", "shoe", "--user", "ana", "--db", db).code == exits.NOT_FOUND


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
    assert "Indexes made again: " in call("rebuild", "--user", "ana", "--db", db).out
    after = call("recall", "which seat", "--user", "ana", "--db", db, "--json").data["hits"]
    assert [hit["id"] for hit in after] == [hit["id"] for hit in before]
