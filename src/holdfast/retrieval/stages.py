"""The stages that look at candidates, one after another: words, meaning, surroundings, speaker, looks, time, facts,
links.

Each takes a table and gives columns. Deliberately absent: what a column is worth (``weights``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast import text, when
from holdfast.retrieval import question
from holdfast.retrieval.corpus import Rows
from holdfast.retrieval.features import BITS
from holdfast.retrieval.lexical import Lexical, saturated
from holdfast.retrieval.segment import CODES, FILE, Array, hashed
from holdfast.retrieval.table import NEARLY_THE_SAME, Table, share, spread

_DAY = 86_400_000_000
_HALF_LIFE_DAYS = 30.0
_TOLD_LATER = 10.0
_OCCASION = 0.15
_CODE = 3
"""A word of so many characters, one of them a digit, names one thing: an order, a flight, an error."""


def words(table: Table) -> dict[str, Array]:
    """How well the words of a row, and of its best passage, are those of the query."""
    own, best = table.lexical.score(table.rows), table.lexical.best_passage(table.rows)
    return {"words": share(own), "passage": share(best), "code": _codes(table), "bm25": own}


def meaning(table: Table) -> dict[str, Array]:
    """How near the vector of a row, and of its best passage, is to the query's."""
    near, best = _near(table, table.rows), np.zeros(len(table), dtype=np.float32)
    for by_model in table.near:
        best = np.maximum(best, by_model.passage(table.rows))
    return {"near": spread(near, NEARLY_THE_SAME), "near_passage": spread(best, NEARLY_THE_SAME), "cosine": near}


def around(table: Table) -> dict[str, Array]:
    """What the turns around a row say: three together, the whole thread, the question before it, one turn further."""
    if not table.spoken.any():
        return {"window": table.columns["words"], "thread": table.columns["words"]}
    before, after = table.beside(-1), table.beside(1)
    before2, after2 = table.beside(-2), table.beside(2)
    table.lexical.look([before, after, before2, after2])
    top = max(float(table.columns["bm25"].max(initial=0.0)), 1e-9)

    def score(rows: Rows) -> Array:
        found: Array = np.minimum(table.lexical.score(rows) / top, 1.0)  # a filter may keep out the best of all
        return found

    asked = _has_cue(table, before, "question")
    return {
        "window": share(_window(table, before, after)),
        "thread": _threads(table),
        "before2": score(before2),
        "after2": score(after2),
        "question": asked * score(before),
    }


def meaning_around(table: Table) -> dict[str, Array]:
    """The same by vectors."""
    if not table.spoken.any():
        return {"near_window": table.columns["near"]}
    near = table.columns["cosine"]
    least, most = float(near.min()), float(near.max())
    scale = max(most - least, NEARLY_THE_SAME)

    def at(rows: Rows) -> Array:
        found = (_near(table, rows) - least) / scale
        return np.where(rows.row >= 0, np.clip(found, 0.0, 1.0), 0.0)

    before, after = table.beside(-1), table.beside(1)
    asked = _has_cue(table, before, "question")
    return {
        "near_window": spread(_near_window(table, before, after), NEARLY_THE_SAME),
        "near_question": asked * at(before),
    }


def speaker(table: Table) -> dict[str, Array]:
    """Whether the query names who speaks; or speaks of the one who asks, and it is the user who speaks."""
    speakers = table.stored("speaker")
    named = np.array([name for name in table.reading.names if name in table.corpus.speakers()], dtype=np.uint64)
    if len(named):
        return {"speaker": np.isin(speakers, named).astype(np.float32)}
    return {"speaker": table.from_user if "own" in table.reading else np.zeros(len(table), dtype=np.float32)}


def looks(table: Table) -> dict[str, Array]:
    """Whether a row looks like what the query asks for: an instruction, a preference, a date, a number, a place …"""
    reading, none = table.reading, np.zeros(len(table), dtype=np.float32)

    def where(asked: bool, values: Array) -> Array:
        return values if asked else none

    date, number = table.cue("date"), np.maximum(table.cue("number"), table.cue("amount"))
    return {
        "instruction": where("present" in reading and "wide" not in reading, _instructions(table)),
        "preference": where("advice" in reading, table.cue("preference") * table.from_user),
        "date": where("when" in reading, date),
        "number": where("count" in reading, number),
        "never": where("whether" in reading, table.cue("never")),
        "place": where("where" in reading, table.cue("place")),
        "suggestion": where("suggested" in reading, table.cue("suggestion")),
        "liking": where("liking" in reading, table.cue("liking")),
        "picture": table.cue("picture"),
        "asks": table.cue("question"),
        "own": np.minimum(table.stored("own") / 100.0, 1.5).astype(np.float32),
        "names": table.stored("names").astype(np.float32) / 4,
        "length": np.where(table.stored("kind") == FILE, 0.0, (np.log1p(table.stored("chars")) - 5) / 2).astype(
            np.float32
        ),
    }


def time(table: Table) -> dict[str, Array]:
    """Whether a row is of the time that the query names, how recent it is, and how important."""
    said, meant = table.stored("time"), np.zeros(len(table), dtype=np.float32)
    first, last = table.corpus.times()
    for since, until in question.within(table.reading, first, last):
        meant = np.maximum(meant, _during(said, since, until))
    for since, until in _told_by_events(table):
        meant = np.maximum(meant, 0.5 * ((said >= since) & (said < until)).astype(np.float32))
    age = np.maximum(table.asked.now - said, 0) / _DAY
    return {
        "time": meant,
        "recent": np.exp2(-age / _HALF_LIFE_DAYS).astype(np.float32),
        "faded": np.where(table.stored("kind") == CODES["episodic"], 1 - np.exp2(-age / _HALF_LIFE_DAYS), 0.0),
        "important": np.where(table.remembered, table.stored("importance") - 0.5, 0.0).astype(np.float32),
    }


def facts(table: Table) -> dict[str, Array]:
    """Whether a row is a fact, and so an answer rather than a mention."""
    return {
        "fact": (table.stored("fact") != 0).astype(np.float32),
        "memory": table.remembered.astype(np.float32),
    }


def links(table: Table) -> dict[str, Array]:
    """Whether a row is about something that the query's entities are linked to."""
    linked = table.linked
    places = table.places(linked.rows)
    found = np.zeros(len(table), dtype=np.float32)
    np.maximum.at(found, places[places >= 0], linked.worth[places >= 0])
    return {"linked": found} if found.any() else {}


# Inside


def _codes(table: Table) -> Array:
    """How much of what is asked for is a code or a long number that a row holds. No model of meaning reads those."""
    coded = [len(word) >= _CODE and any(map(str.isdigit, word)) for word in table.reading.words]
    if not any(coded):
        return np.zeros(len(table), dtype=np.float32)
    worth = table.lexical.worth
    found: Array = (worth * coded) @ (table.lexical.at(table.rows) > 0) / max(float(worth.sum()), 1e-9)
    return found.astype(np.float32)


def _told_by_events(table: Table) -> list[tuple[int, int]]:
    """The intervals that events in the query mean ("before the trip"): the event is where its words are found best."""
    found = []
    for landmark in when.find_events(table.reading.asks):
        words = {hashed(term): 1.0 for term in text.terms(landmark.phrase)}
        told = Lexical(table.corpus, words) if words else None
        scores = told.score(table.rows) if told is not None else np.zeros(0)
        if told is None or not len(scores) or scores.max() <= 0:
            continue
        best = int(np.argmax(scores))
        if (told.at(table.rows.at(slice(best, best + 1))) > 0).all():
            at = int(table.stored("time")[best])
            found.append(_RELATIONS[landmark.relation](at))
    return found


_EVER = 2**63 - 1
_RELATIONS: dict[str, Callable[[int], tuple[int, int]]] = {
    "before": lambda at: (-_EVER, at),
    "until": lambda at: (-_EVER, at),
    "after": lambda at: (at + 1, _EVER),
    "since": lambda at: (at, _EVER),
    "during": lambda at: (at - 3 * _DAY, at + 3 * _DAY),
}


def _during(said: Array, since: int, until: int) -> Array:
    """1 inside an interval; less on the days after it, as people tell later, and on the two days before it."""
    late = (said - float(until)) / _DAY
    early = (float(since) - said) / _DAY
    long = until - since > 4 * _DAY
    after = np.where((late >= 0) & (late < _TOLD_LATER), 0.6 if long else 1 - late / _TOLD_LATER, 0.0)
    before = np.where((early > 0) & (early <= 2) & (not long), 0.5, 0.0)
    inside = ((said >= since) & (said < until)).astype(np.float32)
    found: Array = np.maximum(inside, np.maximum(after, before)).astype(np.float32)
    return found


def _near(table: Table, rows: Rows) -> Array:
    found = np.zeros(len(rows), dtype=np.float32)
    for by_model in table.near:
        found += by_model.row(rows)
    return found


def _near_window(table: Table, before: Rows, after: Rows) -> Array:
    found = np.zeros(len(table), dtype=np.float32)
    for by_model in table.near:
        joined = by_model.vectors(table.rows) + 0.5 * by_model.vectors(before)
        joined += 0.5 * by_model.vectors(after)
        found += np.vecdot(joined, by_model.query) / np.maximum(np.sqrt(np.vecdot(joined, joined)), 1e-9)
    return found


def _window(table: Table, before: Rows, after: Rows) -> Array:
    """BM25 of a row together with its neighbours, as if they were one text."""
    corpus, lexical = table.corpus, table.lexical
    counts, lengths = np.zeros((len(lexical.weights), len(table)), dtype=np.float32), np.zeros(len(table))
    for rows in (before, table.rows, after):
        counts += lexical.at(rows)
        lengths += np.where(rows.row >= 0, corpus.column("length", Rows(rows.part, np.maximum(rows.row, 0))), 0)
    found: Array = lexical.worth @ saturated(counts, lengths, lexical.mean * 2.6)
    return found


def _threads(table: Table) -> Array:
    """BM25 of the whole thread that a row is in: where much is about the topic, each turn is likelier to be."""
    own = table.columns["words"]
    streams, scores = _thread_scores(table)
    at = np.minimum(np.searchsorted(streams, table.stored("stream")), max(len(streams) - 1, 0))
    return np.where(table.spoken, spread(scores)[at], own).astype(np.float32)


def _thread_scores(table: Table) -> tuple[Array, Array]:
    """Every stream of the corpus with the score of all that is in it."""
    lexical, corpus = table.lexical, table.corpus
    streams, places, lengths = corpus.streams()
    counts = np.zeros((len(lexical.weights), len(streams)))
    for part, by_term in enumerate(lexical.holding):
        if len(places[part]) == 1:  # as of a long thread
            counts[:, places[part][0]] += [held.sum(dtype=float) for _, held in by_term]
            continue
        for number, (rows, held) in enumerate(by_term):
            own = corpus.segments[part].stream_of[rows]
            counts[number, places[part]] += np.bincount(own, weights=held, minlength=len(places[part]))
    holding = np.count_nonzero(counts, axis=1)
    idf = np.log(1 + (len(streams) - holding + 0.5) / (holding + 0.5))
    return streams, (lexical.weights * idf) @ saturated(counts, lengths, max(float(lengths.mean()), 1.0))


def _has_cue(table: Table, rows: Rows, cue: str) -> Array:
    cues = table.corpus.column("cues", Rows(rows.part, np.maximum(rows.row, 0)))
    return np.where((rows.row >= 0) & ((cues & np.uint32(BITS[cue])) > 0), 1.0, 0.0).astype(np.float32)


def _instructions(table: Table) -> Array:
    """1 for the standing instruction whose occasion is most like the query, 2/3 for the next one."""
    rows = np.nonzero(table.cue("instruction") * np.maximum(table.from_user, table.remembered))[0]
    found = np.zeros(len(table), dtype=np.float32)
    if not len(rows):
        return found
    like, least = _occasions(table, table.rows.at(rows))
    like = like + 1e-4 * table.columns["words"][rows]
    for place, worth in zip(np.argsort(-like, kind="stable")[:2], (1.0, 2 / 3), strict=False):
        if like[place] > least:
            found[rows[place]] = worth
    return found


def _occasions(table: Table, rows: Rows) -> tuple[Array, float]:
    """How like the query the occasions of instructions are, and how like they must be: by meaning, else by words."""
    like = np.zeros(len(rows), dtype=np.float32)
    if table.near:
        for by_model in table.near:
            like += by_model.last(rows)
        return like, _OCCASION
    words = [hashed(f"\x01{word}") for word in table.reading.words]
    for part, here in rows.groups():
        segment = table.corpus.segments[part]
        for (holder, _), worth in zip(segment.holders(words), table.lexical.worth, strict=True):
            like[here] += worth * np.isin(rows.row[here], segment.owner[holder])
    return like, -1.0
