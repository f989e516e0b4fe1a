"""A thread as another store would be given it, read through the public verbs only.

Deliberately absent: any file format; that is the transfer room's business.
"""

from __future__ import annotations

from holdfast.engine.contract import Adopt, Mark, Record, Strand, View


def export(view: View, tenant: str, record: Record) -> Adopt:
    """A record with all the strands its stream reads through, ancestors first."""
    strands: list[Strand] = []
    stream, upto = record.stream, record.head
    while stream is not None:
        strand = view.strand(tenant, stream)
        assert strand is not None, f"stream {stream} is missing"
        own = tuple(view.read(tenant, Mark(stream, upto), after=strand.base))
        strands.insert(0, Strand(stream, strand.kind, strand.id, strand.parent, strand.base, strand.digest, own))
        stream, upto = strand.parent, strand.base
    return Adopt((record,), tuple(strands))
