"""The stages that look at candidates, one after another: words, meaning, surroundings, speaker, looks, time, facts,
links.

Each takes a table and gives columns. Deliberately absent: what a column is worth (``weigh``).
"""

from __future__ import annotations

import numpy as np

from holdfast.retrieval import asking
from holdfast.retrieval.corpus import Rows
from holdfast.retrieval.cues import BITS
from holdfast.retrieval.lexical import best_passage, saturated
from holdfast.retrieval.segment import MEMORY, Array, hashed
from holdfast.retrieval.table import Table, share, spread
from holdfast.retrieval.vector import best_near, last_near, whole

_DAY = 86_400_000_000
_HALF_LIFE_DAYS = 30.0
_TOLD_LATER = 10.0
_OCCASION = 0.15


def words(table: Table) -> dict[str, Array]:
    """How well the words of a row, and of its best passage, are those of the query."""
    own = table.lexical.score_at(table.rows)
    best = best_passage(table.corpus, table.lexical, table.reading.terms, table.rows)
    return {"words": share(own), "passage": share(best)}


def meaning(table: Table) -> dict[str, Array]:
    """How near the vector of a row, and of its best passage, is to the query's."""
    near, best = _near(table, table.rows), np.zeros(len(table), dtype=np.float32)
    for model, query in table.vectors.items():
        best = np.maximum(best, best_near(table.corpus, model, query, table.rows))
    return {"near": spread(near), "near_passage": spread(best), "cosine": near}


def around(table: Table) -> dict[str, Array]:
    """What the turns around a row say: the three together, the whole thread, the question before it, one turn further."""
    before, after = table.beside(-1), table.beside(1)
    before2, after2 = table.beside(-2), table.beside(2)
    score = table.lexical.score_at
    top = max(float(score(table.rows).max(initial=0.0)), 1e-9)
    asked = _has_cue(table, before, "question")
    found = {
        "window": share(_window(table, before, after)),
        "thread": _threads(table),
        "before2": score(before2) / top,
        "after2": score(after2) / top,
        "question": asked * score(before) / top,
    }
    return found


def meaning_around(table: Table) -> dict[str, Array]:
    """The same by vectors."""
    near = table.columns["cosine"]
    least, most = near.min(initial=0.0), near.max(initial=0.0)
    scale = max(float(most - least), 1e-9)

    def at(rows: Rows) -> Array:
        found = (_near(table, rows) - least) / scale
        return np.where(rows.row >= 0, np.clip(found, 0.0, 1.0), 0.0)

    before, after = table.beside(-1), table.beside(1)
    asked = _has_cue(table, before, "question")
    return {
        "near_window": spread(_near_window(table, before, after)),
        "near_before": at(before),
        "near_after": at(after),
        "near_before2": at(table.beside(-2)),
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

    def when(asked: bool, values: Array) -> Array:
        return values if asked else none

    date, number = table.cue("date"), np.maximum(table.cue("number"), table.cue("amount"))
    return {
        "instruction": when("present" in reading and "wide" not in reading, _instructions(table)),
        "preference": when("advice" in reading, table.cue("preference") * table.from_user),
        "date": when("when" in reading, date),
        "number": when("count" in reading, number),
        "never": when("whether" in reading, table.cue("never")),
        "place": when("where" in reading, table.cue("place")),
        "reason": when("why" in reading, table.cue("reason")),
        "suggestion": when("suggested" in reading, table.cue("suggestion")),
        "liking": when("liking" in reading, table.cue("liking")),
        "picture": table.cue("picture"),
        "pictured": when("picture" in reading, table.cue("picture")),
        "asks": table.cue("question"),
        "greeting": table.cue("greeting"),
        "own": np.minimum(table.stored("own") / 100.0, 1.5).astype(np.float32),
        "names": table.stored("names").astype(np.float32) / 4,
        "length": ((np.log1p(table.stored("chars")) - 5) / 2).astype(np.float32),
    }


def time(table: Table) -> dict[str, Array]:
    """Whether a row is of the time that the query names, how recent it is, and how important."""
    said, meant = table.stored("time"), np.zeros(len(table), dtype=np.float32)
    first, last = table.corpus.times()
    for since, until in asking.within(table.asked.text, table.reading, first, last):
        meant = np.maximum(meant, _during(said, since, until))
    age = np.maximum(table.asked.now - said, 0) / _DAY
    memory = table.stored("kind") >= MEMORY
    return {
        "time": meant,
        "recent": np.exp2(-age / _HALF_LIFE_DAYS).astype(np.float32),
        "important": np.where(memory, table.stored("importance") - 0.5, 0.0).astype(np.float32),
    }


def facts(table: Table) -> dict[str, Array]:
    """Whether a row is a fact, and so an answer rather than a mention."""
    return {
        "fact": (table.stored("fact") != 0).astype(np.float32),
        "memory": (~table.spoken).astype(np.float32),
    }


def links(table: Table) -> dict[str, Array]:
    """Whether a row is about something that the query's entities are linked to."""
    linked = table.asked.linked
    if not linked:
        return {}
    worth = dict(linked)
    refs = table.stored("ref")
    return {"linked": np.array([worth.get(int(ref), 0.0) if ref else 0.0 for ref in refs], dtype=np.float32)}


# Inside


def _during(said: Array, since: int, until: int) -> Array:
    """1 inside an interval; less on the days after it, as people tell later, and on the two days before it."""
    late = (said - until) / _DAY
    early = (since - said) / _DAY
    long = until - since > 4 * _DAY
    after = np.where((late >= 0) & (late < _TOLD_LATER), 0.6 if long else 1 - late / _TOLD_LATER, 0.0)
    before = np.where((early > 0) & (early <= 2) & (not long), 0.5, 0.0)
    inside = ((said >= since) & (said < until)).astype(np.float32)
    found: Array = np.maximum(inside, np.maximum(after, before)).astype(np.float32)
    return found


def _near(table: Table, rows: Rows) -> Array:
    found = np.zeros(len(rows), dtype=np.float32)
    for model, query in table.vectors.items():
        found += whole(table.corpus, model, rows, len(query)) @ query
    return found


def _near_window(table: Table, before: Rows, after: Rows) -> Array:
    found = np.zeros(len(table), dtype=np.float32)
    for model, query in table.vectors.items():
        joined = whole(table.corpus, model, table.rows, len(query))
        for rows in (before, after):
            joined = joined + 0.5 * whole(table.corpus, model, rows, len(query))
        found += (joined @ query) / np.maximum(np.linalg.norm(joined, axis=1), 1e-9)
    return found


def _window(table: Table, before: Rows, after: Rows) -> Array:
    """BM25 of a row together with its neighbours, as if they were one text."""
    corpus, lexical = table.corpus, table.lexical
    counts, lengths = np.zeros((len(lexical.weights), len(table)), dtype=np.float32), np.zeros(len(table))
    for rows in (before, table.rows, after):
        counts += lexical.at(rows)
        lengths += np.where(rows.row >= 0, corpus.column("length", Rows(rows.part, np.maximum(rows.row, 0))), 0)
    return (lexical.weights * lexical.idf) @ saturated(counts, lengths, lexical.mean * 2.6)


def _threads(table: Table) -> Array:
    """BM25 of the whole thread that a row is in: where much is about the topic, each turn is likelier to be."""
    if "threads" not in table.seen:
        table.seen["threads"] = _thread_scores(table)
    streams, scores = table.seen["threads"]
    own = table.stored("stream")
    at = np.minimum(np.searchsorted(streams, own), max(len(streams) - 1, 0))
    by_thread = spread(scores)[at] if len(streams) else np.zeros(len(table))
    return np.where(table.spoken, by_thread, share(table.lexical.score_at(table.rows))).astype(np.float32)


def _thread_scores(table: Table) -> tuple[Array, Array]:
    """Every stream of entries in the corpus with its score."""
    lexical, corpus = table.lexical, table.corpus
    parts = [segment.streams for segment in corpus.segments]
    streams = np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
    counts = np.zeros((len(lexical.weights), len(streams)))
    lengths = np.zeros(len(streams))
    for part, segment in enumerate(corpus.segments):
        at = np.searchsorted(streams, segment.columns["stream"])
        lengths += np.bincount(at, weights=segment.columns["length"], minlength=len(streams))
        for number, row in enumerate(lexical.counts[part]):
            some = np.nonzero(row)[0]
            counts[number] += np.bincount(at[some], weights=row[some], minlength=len(streams))
    holding = np.count_nonzero(counts, axis=1)
    idf = np.log(1 + (len(streams) - holding + 0.5) / (holding + 0.5))
    mean = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
    return streams, (lexical.weights * idf) @ saturated(counts, lengths, mean)


def _has_cue(table: Table, rows: Rows, cue: str) -> Array:
    cues = table.corpus.column("cues", Rows(rows.part, np.maximum(rows.row, 0)))
    return np.where((rows.row >= 0) & ((cues & np.uint32(BITS[cue])) > 0), 1.0, 0.0).astype(np.float32)


def _instructions(table: Table) -> Array:
    """1 for the standing instruction whose occasion is most like the query, 2/3 for the next one."""
    rows = np.nonzero(table.cue("instruction") * np.maximum(table.from_user, ~table.spoken))[0]
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
    if table.vectors:
        for model, query in table.vectors.items():
            like += last_near(table.corpus, model, query, rows)
        return like, _OCCASION
    for word, weight in zip(table.reading.words, table.lexical.weights * table.lexical.idf, strict=True):
        for part in np.unique(rows.part):
            segment = table.corpus.segments[part]
            holding = segment.owner[segment.holders(hashed(f"\x01{word}"))[0]]
            like += weight * ((rows.part == part) & np.isin(rows.row, holding))
    return like, 0.0
