"""What of the candidates is true at the moment of asking: nothing forgotten, corrected, superseded or over.

The same rule as ``memory.facts``, on the columns of an index; a test compares the two. A fact whose old
value was found brings its present value along. A file exists until it expires. Deliberately absent: entries of a log,
which only say that something was said.
"""

from __future__ import annotations

import numpy as np

from holdfast.retrieval.corpus import Corpus, Rows
from holdfast.retrieval.segment import CHANGE, CODES, ENDED, FILE, MEMORY, Array

_FORGET, _RESTORE, _ERASE = CODES["forget"], CODES["restore"], CODES["erase"]


def standing(corpus: Corpus, rows: Rows, moment: int, trust: int = 0) -> Rows:
    """The rows that hold at a moment, with the present values of facts whose older ones were among them.

    What is trusted less than ``trust`` takes no part: it neither supersedes nor corrects anything.
    """
    if not len(rows):
        return rows
    kinds = corpus.column("kind", rows)
    entries = rows.at(kinds < MEMORY)
    memories = rows.at((kinds >= MEMORY) & (kinds < FILE))
    files = rows.at(kinds == FILE)
    files = files.at(corpus.expiries(files) > moment)
    if not len(memories):
        return _joined([entries, files]) if len(files) else entries
    gone, corrected, ended = verdicts(corpus, moment, trust)
    facts = np.unique(corpus.column("fact", memories))
    versions = corpus.by("fact", facts[facts != 0])
    versions = versions.at(corpus.column("trust", versions) >= trust)
    holding = _present(corpus, versions, moment, np.concatenate([gone, corrected]))
    loose = memories.at(corpus.column("fact", memories) == 0)
    loose = loose.at(~np.isin(corpus.column("ref", loose), np.concatenate([gone, corrected, ended])))
    outside = (corpus.column("until", loose) <= moment) | (corpus.column("time", loose) > moment)
    outside &= corpus.column("kind", loose) != CODES["episodic"]  # what happened has happened, and plans are plans
    loose = loose.at(~outside & ((corpus.column("flags", loose) & ENDED) == 0))
    return _joined([entries, loose, holding, files])


def verdicts(corpus: Corpus, moment: int, trust: int = 0) -> tuple[Array, Array, Array]:
    """The refs of memories that are forgotten, that were corrected, and that have ended by a moment."""
    rows = corpus.changes()
    rows = rows.at(seen(corpus, rows))
    kinds, refs = corpus.column("kind", rows), corpus.column("ref", rows)
    moved = kinds >= CHANGE
    order = np.lexsort((corpus.column("position", rows)[moved], refs[moved]))
    last_refs, last_kinds = refs[moved][order], kinds[moved][order]
    is_last = np.append(last_refs[1:] != last_refs[:-1], True) if len(last_refs) else np.zeros(0, dtype=bool)
    erased = last_refs[last_kinds == _ERASE]
    gone = np.union1d(last_refs[is_last & (last_kinds == _FORGET)], erased)
    pointing = rows.at(~moved)
    pointing = pointing.at((corpus.column("trust", pointing) >= trust) & _entitled(corpus, pointing))
    corrected, ended = _corrections(corpus, pointing, moment, set(gone.tolist()))
    return gone, corrected, ended


def _entitled(corpus: Corpus, rows: Rows) -> Array:
    """Which corrections are trusted at least as much as what they correct: no page takes back what a person vouched."""
    targets = corpus.by("ref", np.unique(corpus.column("corrects", rows)))
    refs, trusts = corpus.column("ref", targets), corpus.column("trust", targets)
    order = np.argsort(refs)
    if not len(order):
        return np.ones(len(rows), dtype=bool)
    wanted = corpus.column("corrects", rows)
    at = np.minimum(np.searchsorted(refs[order], wanted), len(order) - 1)
    known = refs[order][at] == wanted
    entitled: Array = ~known | (corpus.column("trust", rows) >= trusts[order][at])
    return entitled


def _corrections(corpus: Corpus, rows: Rows, moment: int, gone: set[int]) -> tuple[Array, Array]:
    """What the corrections that still stand point at. The latest is asked first: it may correct an earlier one."""
    refs, of = corpus.column("ref", rows).tolist(), corpus.column("corrects", rows).tolist()
    recorded, said = corpus.column("recorded", rows).tolist(), corpus.column("time", rows).tolist()
    ends = ((corpus.column("flags", rows) & ENDED) > 0).tolist()
    corrected: set[int] = set()
    ended: set[int] = set()
    for _, ref, target, since, ending in sorted(zip(recorded, refs, of, said, ends, strict=True), reverse=True):
        if ref in corrected or ref in gone:
            continue
        if not ending:
            corrected.add(target)
        elif since <= moment:
            ended.add(target)
    return np.array(sorted(corrected), dtype=np.int64), np.array(sorted(ended), dtype=np.int64)


def _present(corpus: Corpus, rows: Rows, moment: int, dead: Array) -> Rows:
    """Of all versions of some facts, those that hold: the last that has begun, unless it has ended or is over."""
    rows = rows.at(seen(corpus, rows))
    rows = rows.at(~np.isin(corpus.column("ref", rows), dead) & (corpus.column("time", rows) <= moment))
    columns = [corpus.column(name, rows) for name in ("ref", "recorded", "time", "fact")]
    order = np.lexsort(columns)
    fact = columns[-1][order]
    last = np.append(fact[1:] != fact[:-1], True) if len(fact) else np.zeros(0, dtype=bool)
    rows = rows.at(order[last])
    holds = (corpus.column("until", rows) > moment) & ((corpus.column("flags", rows) & ENDED) == 0)
    return rows.at(holds)


def seen(corpus: Corpus, rows: Rows) -> Array:
    """Which rows may be seen."""
    found = np.ones(len(rows), dtype=bool)
    for part, here in rows.groups():
        visible = corpus.visible(part)
        if visible is not None:
            found[here] = visible[rows.row[here]]
    return found


def _joined(parts: list[Rows]) -> Rows:
    part, row = np.concatenate([p.part for p in parts]), np.concatenate([p.row for p in parts])
    order = np.lexsort((row, part))
    part, row = part[order], row[order]
    first = np.append(True, (part[1:] != part[:-1]) | (row[1:] != row[:-1])) if len(part) else np.zeros(0, dtype=bool)
    return Rows(part[first], row[first])
