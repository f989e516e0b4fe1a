"""A thread in the form another store adopts, read through the public verbs only.

Deliberately absent: any file format; see ``holdfast.archive``.
"""

from __future__ import annotations

from holdfast.engine.contract import Adopt, Mark, Record, Strand, View

_END = 2**62


def export(view: View, tenant: str, record: Record, *, whole: bool = False) -> Adopt:
    """A record with all the strands that its stream reads through, ancestors first.

    ``whole`` includes each strand to its end, with rewound events; otherwise only what the record still reads.
    """
    strands: list[Strand] = []
    stream, upto = record.stream, record.head
    while stream is not None:
        strand = view.strand(tenant, stream)
        assert strand is not None, f"stream {stream} is missing"
        own = tuple(view.read(tenant, Mark(stream, _END if whole else upto), after=strand.base))
        strands.insert(0, Strand(stream, strand.kind, strand.id, strand.parent, strand.base, strand.digest, own))
        stream, upto = strand.parent, strand.base
    return Adopt((record,), tuple(strands))
