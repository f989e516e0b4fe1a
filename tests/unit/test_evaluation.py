"""Measuring recall: files are read with care, measures are what they say, and a trial leaves nothing behind."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

import holdfast
from holdfast import errors, evaluation
from holdfast.evaluation import LADDER, Group, Scores, measures, picture, plain
from holdfast.evaluation.measures import FoundTurns
from holdfast.testing.embedders import HashEmbedder

Write = Callable[..., Path]

CELLO = {
    "id": "cello",
    "turns": [
        {"id": "t1", "session": 1, "time": "8 May, 2023", "speaker": "user", "text": "My cello is called Bruno."},
        {"id": "t2", "session": 1, "time": None, "speaker": "assistant", "text": "A lovely name for an instrument."},
        {"id": "t3", "session": 2, "speaker": "user", "text": "The rent is 900 euros a month."},
        {"id": "t4", "session": 2, "speaker": "user", "text": "Update: the rent is now 950 euros a month."},
        {"id": "t5", "session": 2, "speaker": "assistant", "text": "Noted, I will plan with that."},
    ],
    "queries": [
        {"id": "q1", "kind": "lookup", "text": "What is the cello called?", "gold": ["t1"]},
        {"id": "q2", "kind": "knowledge_update", "text": "How much is the rent now?", "gold": ["t3", "t4"]},
    ],
}
FRIENDS = {
    "id": "friends",
    "turns": [
        {"id": "t1", "session": "spring", "speaker": "Mira", "text": "I adopted a parrot yesterday!"},
        {"id": "t2", "session": "spring", "speaker": "Tom", "text": "Congratulations. I took up pottery."},
    ],
    "queries": [{"id": "q1", "kind": "lookup", "text": "Who took up pottery?", "gold": ["t2", "t1"]}],
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(data: Any, name: str = "data.json") -> Path:
        path = tmp_path / name
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


def changed(path: str, value: Any) -> Any:
    """The cello's conversation with one thing different; ``del`` as value removes it."""
    data = json.loads(json.dumps([CELLO]))
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    inner = data
    for part in way:
        inner = inner[part]
    if value == "del":
        del inner[last]
    else:
        inner[last] = value
    return data


# Files


@pytest.mark.parametrize("name", ["data.json", "data.json.gz", "no-suffix.gz"])
def test_gzipped_and_plain_files_are_read_alike(write: Write, name: str) -> None:
    first, second = evaluation.read(write([CELLO, FRIENDS], name))
    assert [(turn.id, turn.session) for turn in first.turns][:3] == [("t1", "1"), ("t2", "1"), ("t3", "2")]
    assert list(first.sessions) == ["1", "2"]
    assert (first.turns[0].time, first.turns[1].time, first.turns[2].time) == ("8 May, 2023", None, None)
    assert second.questions[0].gold == {"t2", "t1"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "line 1, column 2: this is not JSON"),
        (b"[\xff]", "byte 1: this is not UTF-8"),
        (b"\x1f\x8bnothing", "the file: it is gzipped, and damaged"),
        (gzip.compress(json.dumps([CELLO]).encode())[:-20], "the file: it is gzipped, and damaged or cut off"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b" \n", "the file: it is empty"),
        ({}, "the file: notes is missing"),
        (7, "the file: this must be a list, not a number"),
        ([], "the file: there is no question in it"),
        ([CELLO, 7], "conversation 2: this must be an object, not a number"),
        ([CELLO, CELLO], "conversation 2: the id 'cello' is that of an earlier conversation"),
        (changed("0.turns", "del"), "conversation 1: turns is missing"),
        (changed("0.id", ""), "conversation 1: id must not be empty"),
        (changed("0.turns.2.text", None), "conversation 1, turn 3: text must be text, not null"),
        (changed("0.turns.2.id", 3), "conversation 1, turn 3: id must be a string, not int"),
        (changed("0.turns.2.id", "t1"), "conversation 1, turn 3: the id 't1' is that of an earlier turn"),
        (changed("0.turns.2.session", True), "conversation 1, turn 3: session must be a string"),
        (changed("0.turns.1.time", 2023), "conversation 1, turn 2: time is text or missing, not a number"),
        (changed("0.turns.0", ["t1"]), "conversation 1, turn 1: this must be an object, not a list"),
        (changed("0.queries", {}), "queries of conversation 1: this must be a list, not an object"),
        (changed("0.queries.1.gold", "t1"), "conversation 1, query 2: gold is a list of turn ids"),
        (changed("0.queries.1.gold", [1]), "conversation 1, query 2: gold is a list of turn ids"),
        (changed("0.queries.1.gold", ["t1", "t77"]), "conversation 1, query 2: there is no turn 't77'"),
        (changed("0.queries.0.kind", "del"), "conversation 1, query 1: kind is missing"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(write: Write, data: Any, said: str) -> None:
    path = write(data)
    with pytest.raises(errors.Invalid, match=said) as caught:
        evaluation.read(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound, match=r"there is no file .*none\.json"):
        evaluation.read(tmp_path / "none.json")
    with pytest.raises(errors.Invalid, match="cannot be read"):
        evaluation.read(tmp_path)


NOTES = {"notes": [{"id": "n1", "text": "Rita keeps the key."}, {"id": "n2", "text": "Oslo in May."}]}
LINES = "Rita keeps the spare key.\n* The flat's key code is 4711.\n\n## Trips\n#1 wish: Oslo in May\n"


def test_notes_are_read_from_text(write: Write) -> None:
    asked = "? Where to? => wish #\n- ? Which are about => the key? => #1, #2\n?! What is the alarm code?\n"
    for name in ("mine.txt", "mine.md.gz", "mine"):
        (found,) = evaluation.read(write((LINES + asked).replace("\n", "\r\n").encode(), name))
        assert found.remembered
        assert [(turn.id, turn.text) for turn in found.turns] == [
            ("1", "Rita keeps the spare key."), ("2", "The flat's key code is 4711."), ("5", "#1 wish: Oslo in May"),
        ]  # fmt: skip
        assert [(question.kind, question.text, question.gold) for question in found.questions] == [
            ("answerable", "Where to?", {"5"}),
            ("answerable", "Which are about => the key?", {"1", "2"}),
            ("unanswerable", "What is the alarm code?", frozenset()),
        ]


def test_a_list_of_boxes_is_text_where_the_name_says_so(write: Write) -> None:
    (found,) = evaluation.read(write(b"[ ] milk\n[x] bread\n? Bought? => [x]", "mine.md"))
    assert found.questions[0].gold == {"2"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("", "the file: there is no question in it"),
        ("? Who has the key?", "line 6: a question names its note: "),
        ("? => key", "line 6: a question names its note: "),
        ("? Who has the key? =>", "line 6: a question names its note: "),
        ("? Who has the key? => Otto", "line 6: no note has the words 'Otto'"),
        ("? Who has the key? => key", "line 6: 2 notes have the words 'key': #1 #2; add a word, or name the lines"),
        ("? Who has the key? => #4", "line 6: there is no note on line 4"),
        ("? Who has the key? => #1 #77", "line 6: there is no note on line 77"),
        ("?!", "line 6: after \\?! stands a question"),
        ("?! Who has the car? => Rita", "line 6: after \\?! stands a question"),
        ("Rita keeps the spare key.", "the file: the notes 1 and 6 say the same"),
    ],
)
def test_a_bad_text_is_refused_with_the_line(write: Write, asked: str, said: str) -> None:
    with pytest.raises(errors.Invalid, match=said):
        evaluation.read(write((LINES + asked).encode(), "mine.txt"))


def test_questions_without_notes_are_refused(write: Write) -> None:
    with pytest.raises(errors.Invalid, match="the file: there is no note in it"):
        evaluation.read(write(b"?! Who has the key?", "mine.txt"))


def test_notes_are_read_from_json(write: Write) -> None:
    more = {"unanswerable": [{"text": "Why?", "near": ["n1"]}], "offtopic": ["Who won?"], "persona": "Rita"}
    (found,) = evaluation.read(write({**NOTES, "questions": [{"text": "Who?", "gold": ["n1"]}], **more}))
    assert found.texts == ["Rita keeps the key.", "Oslo in May."]
    assert [(question.kind, question.text, set(question.gold)) for question in found.questions] == [
        ("answerable", "Who?", {"n1"}), ("unanswerable", "Why?", set()), ("offtopic", "Who won?", set()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "there is no question in it"),
        ({"questions": [{"text": "Who?", "gold": []}]}, "question 1: gold is a list of the ids of notes"),
        ({"questions": [{"text": "Who?"}]}, "question 1: gold is missing"),
        ({"questions": [{"text": "Who?", "gold": ["n9"]}]}, "question 1: there is no note 'n9'"),
        ({"questions": [{"text": " ", "gold": ["n1"]}]}, "question 1: text must not be empty"),
        ({"offtopic": [7]}, "offtopic question 1: this must be an object, not a number"),
        ({"unanswerable": "Why?"}, "unanswerable: this must be a list, not text"),
        ({"notes": [*NOTES["notes"], {"id": "n1", "text": "x"}]}, "note 3: the id 'n1' is that of an earlier note"),
        ({"notes": [{"id": "n1", "text": ""}]}, "note 1: text must not be empty"),
    ],
)
def test_bad_notes_are_refused_with_the_place(write: Write, more: Any, said: str) -> None:
    with pytest.raises(errors.Invalid, match=said):
        evaluation.read(write({**NOTES, **more}))


# Measures


def test_the_measures_of_one_question() -> None:
    gold = frozenset({"a", "b", "c", "d"})
    found = ["x", "a", None, "y", "z", "b", *"efghijklmn", "c"]
    got = measures.scores(gold, found)
    assert (got.recall_1, got.mrr) == (0.0, 0.5)
    assert (got.recall_5, got.recall_10, got.recall_20, got.all_10) == (0.25, 0.5, 0.75, 0.0)
    best = 1 + 0.6309 + 0.5 + 0.4307
    assert got.ndcg_10 == pytest.approx((0.6309 + 0.3562) / best, abs=1e-3)
    assert measures.scores(frozenset("ab"), ["b", "a"]) == Scores(0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert measures.scores(frozenset("a"), [*"bcdefghijklmnopqrstuv", "a"]).mrr == 0.0  # beyond the deepest
    assert measures.scores(frozenset("a"), []) == Scores()


def test_a_turn_found_twice_counts_once() -> None:
    assert measures.scores(frozenset("ab"), ["a", "a", "a"]).ndcg_10 < 1
    assert measures.scores(frozenset("ab"), ["a", "a", "a"]).recall_5 == 0.5


def test_percentiles_lie_between_the_nearest_values() -> None:
    assert measures.percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert measures.percentile([7.0], 0.95) == 7.0
    assert measures.percentile([], 0.5) == 0.0


def answer(kind: str, gold: str, found: str) -> FoundTurns:
    return FoundTurns(
        kind, frozenset(gold), tuple(found), 1.0, True, 0.5, {name: place for place, name in enumerate("abcdef")}
    )


def test_newer_first_asks_only_updates_of_which_two_were_found() -> None:
    told = [
        answer("knowledge_update", "ab", "xba"),
        answer("knowledge_update", "ab", "ab"),
        answer("knowledge_update", "ab", "xbc"),
        answer("lookup", "ab", "ab"),
        answer("update", "abc", "cab"),
    ]
    assert measures.newer_first(told) == pytest.approx(2 / 3)
    assert measures.newer_first(told[2:4]) is None


def test_refusals_and_calibration_count_by_kind_and_by_tenth() -> None:
    told = [
        msgspec.structs.replace(answer("near", "", ""), relevant=relevant, confidence=confidence)
        for relevant, confidence in ((True, 0.0), (False, 0.39), (False, 1.0))
    ]
    assert measures.refusals(told) == {"near": (pytest.approx(2 / 3), 3)}
    tenths = measures.calibration([*told, answer("lookup", "a", "a")])
    assert [(tenth.questions, tenth.answerable) for tenth in tenths if tenth.questions] == [
        (1, 0), (1, 0), (1, 1), (1, 0),
    ]  # fmt: skip
    assert [tenth.least for tenth in tenths if tenth.questions] == [0.0, 0.3, 0.5, 0.9]


def test_a_window_is_a_turn_and_its_neighbours_in_the_session() -> None:
    assert plain.windows("abcd", ["1", "1", "1", "2"]) == ["a\nb", "a\nb\nc", "b\nc", "d"]


# Trials


@pytest.mark.parametrize("engine", [None, "ram:", "file"])
def test_a_trial_measures_through_the_front_door(write: Write, tmp_path: Path, engine: str | None) -> None:
    place = tmp_path / "trial.db" if engine == "file" else engine
    found = evaluation.evaluate(evaluation.read(write([CELLO, FRIENDS])), place, embedder=HashEmbedder())
    assert (found.questions, found.conversations, found.turns) == (3, 2, 7)
    assert found.engine == ("ram" if engine == "ram:" else "sqlite")
    assert found.embedder == "hash-64"
    update, count = found.kinds["knowledge_update"]
    assert (update.recall_1, update.recall_5, update.all_10, update.mrr, count) == (0.5, 1.0, 1.0, 1.0, 1)
    assert found.kinds["lookup"][0].recall_1 == 0.75  # of one question half the gold comes second
    assert found.kinds["lookup"][1] == 2
    assert found.newer_first in (0.0, 1.0)
    assert 0 < found.ms <= found.ms_p95
    assert found.notes == ()


def test_what_is_ingested_is_what_was_said(write: Write) -> None:
    conversations = evaluation.read(write([CELLO, FRIENDS]))
    with holdfast.open("ram:", embedder=None) as store:
        trial = evaluation.Trial(store, conversations, "ram", prefix="eval-1-")
        trial.ingest()
        threads = {info.id.split("-")[-1]: info for info in store.threads()}
        assert set(threads) == {"cello/1", "cello/2", "friends/spring"}
        assert len({info.user for info in threads.values()}) == 2
        cello, friends = store.thread(threads["cello/1"].id), store.thread(threads["friends/spring"].id)
        assert [(entry.key, entry.content) for entry in cello.log()] == [
            ("t1", {"role": "user", "content": "My cello is called Bruno.", "time": "8 May, 2023"}),
            ("t2", {"role": "assistant", "content": "A lovely name for an instrument."}),
        ]
        assert friends.log()[1].content == {
            "role": "user",
            "content": "Congratulations. I took up pottery.",
            "name": "Tom",
        }
        trial.erase()
        assert store.threads() == []


def test_nothing_stays_in_a_store_that_was_there_before(write: Write, tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    with holdfast.open(db, embedder=HashEmbedder()) as store:
        store.thread("mine", user="cello").append(holdfast.message("user", "The cello is called Anton."))
        store.memory(user="cello").remember("The cello is called Anton.")
    conversations = evaluation.read(write([CELLO]))
    first = evaluation.evaluate(conversations, db, embedder=HashEmbedder())
    again = evaluation.evaluate(conversations, str(db), embedder=HashEmbedder())
    assert first.overall == again.overall
    assert first.kinds["lookup"][0].recall_5 == 1.0
    with holdfast.open(db, embedder=HashEmbedder()) as store:
        assert [info.id for info in store.threads()] == ["mine"]
        assert store.memory(user="cello").recall("cello")[0].text == "The cello is called Anton."
        assert store.verify().ok


def test_a_trial_that_fails_is_erased_too(write: Write, tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    conversations = evaluation.read(write([CELLO]))
    with pytest.raises(errors.Invalid, match="no stage tea to leave out; there are meaning"):
        evaluation.evaluate(conversations, db, embedder=None, without=["tea"])
    with holdfast.open(db) as store:
        assert store.threads() == []


def test_questions_without_an_answer_are_asked_and_not_averaged(write: Write) -> None:
    data = [{**CELLO, "queries": [*CELLO["queries"], {"id": "n", "kind": "none", "text": "zzz?", "gold": []}]}]
    found = evaluation.evaluate(evaluation.read(write(data)), "ram:", embedder=None)
    assert (found.questions, set(found.kinds)) == (2, {"lookup", "knowledge_update"})
    assert found.refused == {"none": (1.0, 1)}
    least_sure = next(tenth for tenth in found.calibration if tenth.questions)
    assert (least_sure.questions, least_sure.answerable) == (1, 0)
    assert sum(tenth.answerable for tenth in found.calibration) == 2
    assert found.embedder == "none"


def test_notes_are_remembered_and_gone_afterwards(write: Write, tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    text = "Rita keeps the key of the flat.\nOslo in May.\nThe oven broke.\n? Who keeps the key of the flat? => Rita"
    with holdfast.open(db, embedder=None) as store:
        store.memory(user="me").remember("Otto keeps the key of the flat.")
    found = evaluation.evaluate(evaluation.read(write(text.encode(), "mine.txt")), db, embedder=None)
    assert (found.overall.recall_1, found.overall.mrr, found.turns, found.conversations) == (1.0, 1.0, 3, 0)
    assert found.plain == {"bm25": Scores(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)}
    assert set(found.margins("bm25").values()) == {0.0}
    with holdfast.open(db, embedder=None) as store:
        assert [(found.user, found.memories) for found in store.users()] == [("me", 1)]
        assert store.verify().ok


def test_plain_rankings_of_the_same_questions(write: Write) -> None:
    found = evaluation.evaluate(evaluation.read(write([CELLO])), "ram:", embedder=None)
    assert found.plain["bm25"].recall_1 == 0.75  # the second question has two right turns
    assert found.plain["bm25_window"].recall_5 == 1.0
    assert found.margins("bm25")["recall@1"] == round(found.overall.recall_1 - 0.75, 4)


def test_progress_is_told_and_comes_to_its_end(write: Write) -> None:
    told: list[tuple[str, int, int]] = []
    conversations = evaluation.read(write([CELLO, FRIENDS]))
    evaluation.evaluate(conversations, "ram:", embedder=None, progress=lambda *what: told.append(what))
    assert told[0] == ("ingesting", 0, 7)
    assert ("ingesting", 7, 7) in told
    assert told[-1] == ("asking", 3, 3)


def test_the_summary_has_exactly_the_promised_names(write: Write) -> None:
    summary = evaluation.evaluate(evaluation.read(write([CELLO])), "ram:", embedder=None).summary("data.json")
    more = ["ms", "ms_p95", "questions", "conversations", "turns", "engine", "embedder", "newer_first", "by_kind"]
    more += ["plain", "margins", "wrongly_refused", "refused", "calibration"]
    assert list(summary) == ["file", *evaluation.MEASURES, *more]
    assert {kind: list(values) for kind, values in summary["by_kind"].items()} == {
        "knowledge_update": [*evaluation.MEASURES, "questions"],
        "lookup": [*evaluation.MEASURES, "questions"],
    }
    json.dumps(summary, allow_nan=False)


# Stages


def test_the_ladder_ends_with_everything_and_each_rung_has_more() -> None:
    names = set(evaluation.stage_names())
    assert all(rung.without <= names for rung in LADDER)
    assert all(after.without < before.without for before, after in pairwise(LADDER))
    assert LADDER[0].without == names
    assert LADDER[-1].without == frozenset()


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_a_rung_leaves_out_its_stages_and_no_other(rung: evaluation.Rung) -> None:
    with holdfast.open("ram:", embedder=HashEmbedder()) as store:
        memory = store.memory(user="ana")
        store.thread("t", user="ana").append(*(holdfast.message("user", f"cello {number}") for number in range(5)))
        found = memory.recall("cello", 5, without=rung.without)
        ran = {stage.name for stage in found.report.stages if not stage.skipped}
    every = set(evaluation.stage_names()) - {"rerank"}  # there is no reranker here
    assert ran & every == every - rung.without


# The picture

BARS = ("words only", "+ vectors")
SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_has_a_bar_as_high_as_each_value() -> None:
    groups = [Group("one", "2 questions", (0.25, 0.5)), Group("two", "", (0.0, 1.0))]
    root = ElementTree.fromstring(picture(BARS, groups, title="Stages", note="recall@10"))
    bars = [bar.get("d", "") for bar in root.iter(f"{SVG}path")]
    heights = []
    for bar in bars:
        low, upper, rounded = (float(part) for part in re.findall(r"^M[\d.]+,([\d.]+)V([\d.]+)q0,-([\d.]+)", bar)[0])
        heights.append(low - upper + rounded)
    assert heights == pytest.approx([75.0, 150.0, 0.0, 300.0])
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"Stages", "recall@10", "one", "two", "2 questions", "0.25", "1.00", *BARS} <= set(texts)


def test_the_picture_is_sound_whatever_files_are_called() -> None:
    nasty = 'a<b>&"\x00\x1b' + "x" * 300
    drawn = picture(BARS, [Group(nasty, nasty, (0.5, 0.5))] * 7, title=nasty, note=nasty)
    root = ElementTree.fromstring(drawn)
    width = float(root.get("width", "0"))
    assert all(float(text.get("x", "0")) < width for text in root.iter(f"{SVG}text"))


@pytest.mark.parametrize(("bars", "groups"), [(BARS, []), ((), [Group("a", "", ())]), (BARS, [Group("a", "", (1.0,))])])
def test_a_picture_of_nothing_is_refused(bars: tuple[str, ...], groups: list[Group]) -> None:
    with pytest.raises(errors.Invalid, match="a picture needs"):
        picture(bars, groups, title="t")
