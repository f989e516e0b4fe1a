"""Growing lists, stored in space that is linear in what is in them, however often they are saved.

A list that is saved again and again is one stream, its **segment**. An element goes in once; every saved version of the
list is a position of the segment. Growth adds elements. Anything else (shorter, edited, reordered, continued from an
older version) adds one event that names the ranges of elements the list consists of now, so what the versions have in
common is shared, whichever of them came first. Elements may also be events of other streams, such as entries of a log,
which are then not copied at all. Every now and then the ranges of the whole list are noted, so that a version is read
from its end.

    "item"   an element: the list is the one before, and this
    "add"    ranges of elements that are elsewhere: the list is the one before, and these
    "whole"  ranges: the list is these

Deliberately absent: what an element means, and which versions are still needed. Pruning writes a new segment with
what survives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Event, Mark, View
from holdfast.errors import Corrupt, Unsupported

SEGMENT = "segment"
_ITEM, _ADD, _WHOLE = "item", "add", "whole"
_OFTEN = 32  # after this many events the whole list is noted; later if that takes many ranges
_PAGE = 64
_NEVER = -1

OWN = 0
"""Stands for the segment's own stream in a place, whose number its writer need not know."""


class ElementRef(NamedTuple):
    """Where an element is: a stream, or ``OWN``, and a position of it."""

    stream: int
    position: int


class Element(NamedTuple):
    """An element to add: its digest, and its body, or the place where it already is."""

    digest: bytes
    body: bytes
    place: ElementRef | None = None


class ListVersion(NamedTuple):
    """A saved list: its position, where its elements are, what they are, and when the whole was last noted."""

    position: int
    places: tuple[ElementRef, ...]
    digests: tuple[bytes, ...]
    noted: int = 0


EMPTY = ListVersion(0, (), ())


def digest_of(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()


def saved(before: ListVersion, head: int, elements: Sequence[Element], time: int) -> tuple[list[Event], ListVersion]:
    """The events that make a list the newest version of a segment, and that version.

    ``before`` is the version that it is most like, ``head`` where the segment ends. Elements of ``before`` are
    recognised by their digests, and so are equal ones among the new.
    """
    digests = tuple(element.digest for element in elements)
    count = len(before.digests)
    if before.position == head and digests[:count] == before.digests:
        return grown(before, elements[count:], time)
    events, places = _placed(elements, dict(zip(before.digests, before.places, strict=True)), head, time)
    return _noted(events, ListVersion(head + len(events), tuple(places), digests, _NEVER), time)


def grown(before: ListVersion, fresh: Sequence[Element], time: int) -> tuple[list[Event], ListVersion]:
    """The events that add elements to the newest version of a segment, and what it is then."""
    head = before.position
    if not fresh and head:
        return [], before
    known = dict(zip(before.digests, before.places, strict=True)) if any(each.place is None for each in fresh) else {}
    events, added = _placed(fresh, known, head, time, grows=True)
    digests = (*before.digests, *(element.digest for element in fresh))
    after = ListVersion(head + len(events), (*before.places, *added), digests, before.noted)
    return _noted(events, after, time)


def _noted(events: list[Event], after: ListVersion, time: int) -> tuple[list[Event], ListVersion]:
    """Note the whole list when due: it changed other than by growth, or was not noted for long."""
    since = after.position - after.noted
    due = after.noted == _NEVER or (since >= _OFTEN and since >= len(ranges_of(after.places)))
    if not due and after.position:
        return events, after
    position = after.position + 1
    whole = Event(_WHOLE, encode(ranges_of(after.places)), time)
    return [*events, whole], after._replace(position=position, noted=position)


def _placed(
    elements: Sequence[Element], known: dict[bytes, ElementRef], head: int, time: int, *, grows: bool = False
) -> tuple[list[Event], list[ElementRef]]:
    """Events for the elements that are not stored yet, and where each element is then."""
    events: list[Event] = []
    places: list[ElementRef] = []
    waiting: list[ElementRef] = []  # of a growing list: elements elsewhere, to be named by one event
    for element in elements:
        place = element.place or known.get(element.digest)
        if place is None:
            events += _flushed(waiting, time)
            place = ElementRef(OWN, head + len(events) + 1)
            events.append(Event(_ITEM, element.body, time))
            known[element.digest] = place
        elif grows:
            waiting.append(place)
        places.append(place)
    return [*events, *_flushed(waiting, time)], places


def _flushed(waiting: list[ElementRef], time: int) -> list[Event]:
    if not waiting:
        return []
    event = Event(_ADD, encode(ranges_of(waiting)), time)
    waiting.clear()
    return [event]


def ranges_of(places: Iterable[ElementRef]) -> list[list[int]]:
    """Places as ranges: stream, first and last."""
    ranges: list[list[int]] = []
    for stream, position in places:
        if ranges and ranges[-1][0] == stream and ranges[-1][2] == position - 1:
            ranges[-1][2] = position
        else:
            ranges.append([stream, position, position])
    return ranges


# Reading


def places_at(view: View, tenant: str, stream: int, position: int) -> tuple[tuple[ElementRef, ...], int]:
    """Where the elements of a version are, and when its whole was last noted."""
    later: list[Event] = []
    upto = position
    while upto > 0:
        page = view.read(tenant, Mark(stream, upto), limit=_PAGE, newest=True)
        if not page:
            raise Corrupt(f"a list reaches to position {position} of stream {stream}, which does not exist")
        for number in range(len(page) - 1, -1, -1):
            if page[number].kind == _WHOLE:
                events = [*page[number:], *later]
                return tuple(_walked(events)), page[number].position
        later = [*page, *later]
        upto = page[0].position - 1
    return tuple(_walked(later)), 0


def _walked(events: Sequence[Event]) -> list[ElementRef]:
    places: list[ElementRef] = []
    for event in events:
        if event.kind == _ITEM:
            places.append(ElementRef(OWN, event.position))
            continue
        if event.kind == _WHOLE:
            places = []
        elif event.kind != _ADD:
            raise Unsupported(
                f"a list holds an event of kind {event.kind!r}, which this version does not know: upgrade"
            )
        for stream, first, last in decode(event.body):
            places += [ElementRef(stream, position) for position in range(first, last + 1)]
    return places


def bodies_at(view: View, tenant: str, own: int, places: Sequence[ElementRef]) -> list[bytes]:
    """What is at some places, in their order: read by ranges, or by one range where they lie close together."""
    wanted: dict[int, list[int]] = {}
    for place in places:
        wanted.setdefault(place.stream or own, []).append(place.position)
    found: dict[ElementRef, bytes] = {}
    for stream, positions in wanted.items():
        for first, last in _spans(sorted(set(positions))):
            for event in view.read(tenant, Mark(stream, last), after=first - 1):
                found[ElementRef(stream, event.position)] = event.body
    try:
        return [found[ElementRef(place.stream or own, place.position)] for place in places]
    except KeyError as error:
        raise Corrupt(f"an element of a list is not where it should be: {error.args[0]}") from error


def _spans(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Ranges to read for some positions: reading a small gap costs less than another query."""
    spans: list[tuple[int, int]] = []
    for position in positions:
        if spans and position - spans[-1][1] <= _PAGE:
            spans[-1] = (spans[-1][0], position)
        else:
            spans.append((position, position))
    return spans
