"""The handoff of one thread: revisions of a document, the file that people read and edit, and loading it back.

Each revision is an event in its own stream and holds the whole document as plain data; none is ever overwritten. What
runs have done is not stored twice: it is added when the document is read. It is stored only when a file is written, so
that what a person later removes from that file can be told from what was never in it.

Deliberately absent: markdown, JSON, files and git (their modules), where facts of runs come from (passed in), and
rewinding: a thread that is rewound keeps its handoff, which says how things are now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from holdfast.checks import check_choice, check_flag, check_whole
from holdfast.clock import to_datetime
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Append, Event, Guard, Mark, Op, Put, Record, Scope
from holdfast.errors import Conflict, Corrupt, Invalid, NotFound, TooLarge, Unsupported, quoted
from holdfast.handoff import files, git, markdown, progress_json
from holdfast.handoff.document import (
    EMPTY,
    HandoffChanges,
    HandoffDocument,
    HandoffItem,
    from_plain,
    merge,
    revised,
    same,
    to_plain,
)
from holdfast.handoff.markdown import MAX_BYTES, Parsed
from holdfast.ids import check_id
from holdfast.ledger.core import Core
from holdfast.ledger.thread import check_count, refuse_other_owner

KIND = "handoff"
Format = Literal["markdown", "json"]
_VERSION = 1
_TRIES = 1_000  # of many concurrent updates, one gets through at a time
_SUBJECT = 72
_EMPTY_BODY = encode({})


class HandoffRevision(msgspec.Struct, frozen=True):
    """One stored version of a handoff, without its content."""

    number: int
    time: datetime
    by: str


class HandoffFile(msgspec.Struct, frozen=True):
    """The outcome of writing a file. With ``git``, either ``committed`` is True or ``why_not`` says why not."""

    path: Path
    changed: bool
    committed: bool = False
    commit: str | None = None
    why_not: str | None = None


class _HandoffText(NamedTuple):
    """A stored revision: its document, the blockers of runs that were written out with it, and the digest of the text
    it was loaded from, if any."""

    number: int
    document: HandoffDocument
    shown: tuple[str, ...] = ()
    source: str = ""


class Handoff:
    """The progress document of one thread: the first thing a new session reads."""

    def __init__(
        self,
        core: Core,
        thread: str,
        scope: Scope,
        touch: Callable[[], Append],
        progress: Callable[[], Sequence[HandoffItem]] = tuple,
        blockers: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._core, self._thread, self._scope = core, thread, scope
        self._touch, self._progress, self._blockers = touch, progress, blockers

    def __repr__(self) -> str:
        return f"Handoff({self._thread!r})"

    # Reading

    def read(self, revision: int | None = None) -> HandoffDocument:
        """The current document, with what the thread's runs have done; or an old revision as stored.

        It is empty if nothing was stored and no run started. Pass its ``revision`` to ``update`` as ``expect``.
        """
        record = self._record()
        if revision is None:
            page = self._page(record)
            return _read(self._merged(page.document), page.number)
        check_whole("a revision", revision)
        head = 0 if record is None else record.head
        if record is None or not 1 <= revision <= head:
            has = f"has revisions 1 to {head}" if head else "is empty"
            raise NotFound(
                f"the handoff of thread {self._thread!r} {has}, not {quoted(revision)}",
                thread=self._thread,
                revision=revision,
            )
        return _read(self._page(record, revision).document, revision)

    def _stored(self) -> HandoffDocument:
        """The newest revision as stored, without what runs have done since."""
        return self._page(self._record()).document

    def markdown(self) -> str:
        """The current document as markdown, as ``write`` would write it."""
        page = self._page(self._record())
        return markdown.render(self._merged(page.document), self._thread, page.number)

    def history(self, last: int | None = None) -> list[HandoffRevision]:
        """List stored revisions, oldest first: the ``last`` ones, or all."""
        if last is not None:
            check_count("last", last)
        record = self._record()
        if record is None:
            return []
        events = self._core.engine.read(self._core.tenant, record.mark, limit=last, newest=last is not None)
        return [HandoffRevision(event.position, to_datetime(event.time), _plain(event)["by"]) for event in events]

    def _merged(self, document: HandoffDocument) -> HandoffDocument:
        return merge(document, self._progress(), self._blockers())

    def _record(self) -> Record | None:
        record = self._core.engine.get(self._core.tenant, KIND, self._thread)
        if record is not None:
            refuse_other_owner(record, self._scope)
        return record

    def _page(self, record: Record | None, number: int | None = None) -> _HandoffText:
        if record is None or not record.head:
            return _HandoffText(0, EMPTY)
        wanted = record.head if number is None else number
        found = self._core.engine.read(self._core.tenant, Mark(record.mark.stream, wanted), after=wanted - 1)
        if found:
            return _to_page(found[0])
        now = self._core.engine.get(self._core.tenant, KIND, self._thread)
        if now is None or now.created != record.created:  # erased between two reads: gone, not damaged
            raise NotFound(f"thread {self._thread!r} was erased while its handoff was read", thread=self._thread)
        raise Corrupt(f"revision {wanted} of the handoff of thread {self._thread!r} is missing; run verify")

    # Changing

    def update(  # noqa: PLR0913 - a document has many parts, each by name
        self,
        *,
        goal: str | None = None,
        start: str | None = None,
        features: str | Sequence[str | Mapping[str, Any]] | Mapping[str, bool] | None = None,
        done: str | Sequence[str] | None = None,
        todo: str | Sequence[str] | None = None,
        blockers: str | Sequence[str] | None = None,
        next_action: str | None = None,
        decisions: str | Sequence[str] | None = None,
        context: str | dict[str, Any] | list[Any] | None = None,
        replace: bool = False,
        expect: int | None = None,
        by: str = "agent",
    ) -> int:
        """Change parts of the document, store it as the next revision, and return its number. None leaves a part alone.

        ``done`` and ``todo`` add steps, one or several; a ``done`` with the text of an open step ticks that step.
        ``decisions`` adds decisions, ``features`` features; ``{"it starts": True}`` says whether one passes. With
        ``replace`` these replace what was there, steps as far as they were added by hand. ``blockers`` always does;
        ``[]`` clears them. ``start`` is what the next session runs first. A text as ``context`` replaces its text, a
        dict or list its data.
        Concurrent changes by others are kept; an update that changes nothing adds no revision. With ``expect`` it
        raises ``Conflict`` unless that revision is still the newest; 0 means none.
        """
        check_id(by, "by")
        if expect is not None:
            check_count("expect", expect)
        changes = HandoffChanges.of(
            goal=goal, start=start, features=features, done=done, todo=todo, blockers=blockers,
            next_action=next_action, decisions=decisions, context=context, replace=replace,
        )  # fmt: skip
        if changes.blockers is not None:  # blockers of runs come and go with the runs
            ours = tuple(text for text in changes.blockers if text not in set(self._blockers()))
            changes = msgspec.structs.replace(changes, blockers=ours)
        return self._change(lambda page: _followed(page, revised(page.document, changes)), by, expect).number

    def _change(
        self, change: Callable[[_HandoffText], _HandoffText], by: str, expect: int | None = None
    ) -> _HandoffText:
        """Turn the newest revision into the next; start over when another process changed it first."""
        for _ in range(_TRIES):
            record = self._record()
            old = self._page(record)
            if expect is not None and expect != old.number:
                raise Conflict(
                    f"the handoff of thread {self._thread!r} is at revision {old.number}, not {expect}; read it again",
                    thread=self._thread, expected=expect, actual=old.number,
                )  # fmt: skip
            new = change(old)
            if same(new.document, old.document) and new.shown == old.shown:
                return old
            try:
                return new._replace(number=self._commit(record, new, by))
            except Conflict:
                continue
        raise Conflict(f"the handoff of thread {self._thread!r} keeps changing", thread=self._thread)

    def _commit(self, record: Record | None, page: _HandoffText, by: str) -> int:
        body = self._encoded(page, by)
        time = self._core.clock.now()
        before, scope = ((), self._scope) if record is not None else self._beginning()
        new = Put(KIND, self._thread, _EMPTY_BODY, scope=scope)
        append = Append(KIND, self._thread, (Event("revision", body, time),), page.number, new)
        receipt = self._core.write((*before, self._touch(), append), time)
        return receipt.events[-1][0].position

    def _beginning(self) -> tuple[tuple[Op, ...], Scope]:
        """The operations that create the record, with its thread's owner, so that erasing an owner erases the handoff.

        If the thread does not exist yet, nobody else may create it before this commit.
        """
        thread = self._core.engine.get(self._core.tenant, "thread", self._thread)
        if thread is None:
            return (Guard("thread", self._thread, 0),), self._scope
        return (), thread.scope

    def _encoded(self, page: _HandoffText, by: str) -> bytes:
        what = f"handoff of thread {self._thread!r}"
        plain = {
            "version": _VERSION, "by": by, "document": to_plain(page.document), "shown": list(page.shown),
            "source": page.source,
        }  # fmt: skip
        body = encode(plain, what)
        _sized(markdown.render(page.document, self._thread, page.number), what)
        return body

    # Files

    def write(
        self,
        path: str | PathLike[str],
        *,
        format: Format | None = None,
        git: bool = False,
        message: str | None = None,
        force: bool = False,
        by: str = "agent",
    ) -> HandoffFile:
        """Write the current document to a file, whole or not at all; with ``git``, commit just that file.

        Without ``format`` it is JSON if the name ends in .json or the file holds JSON already, otherwise markdown.
        Raises ``Conflict`` if a person edited the file since, or if it is not a handoff of this thread: ``load`` it
        first, or give ``force`` to overwrite it. A git failure is no error: the file is written, and ``why_not`` says
        what failed.
        """
        check_id(by, "by")
        check_flag("git", git)
        target, subject = files.located(path), _checked_message(message)
        old = files.read_bytes(target, MAX_BYTES)
        form = _form(format, target.suffix, (old or b"").decode(errors="replace"))
        if not check_flag("force", force) and old:
            self._refuse_to_lose(target, old)
        items, blockers = tuple(self._progress()), tuple(self._blockers())
        page = self._change(lambda page: _showing(page, items, blockers), by)
        document = merge(page.document, items, blockers)
        render = progress_json.render if form == "json" else markdown.render
        text = _sized(render(document, self._thread, page.number), f"handoff of thread {self._thread!r}")
        changed = old != text.encode()
        if changed:
            files.write_text(target, text)
        if not git:
            return HandoffFile(target, changed)
        commit, why_not = _committed(target, subject or _subject(self._thread, document))
        return HandoffFile(target, changed, commit is not None, commit, why_not)

    def _refuse_to_lose(self, target: Path, old: bytes) -> None:
        """Refuse to replace a file with content that is stored nowhere else."""
        advice = "load it first, or give force=True to overwrite it"
        try:
            found = _parsed(files.to_text(old, MAX_BYTES, str(target)), None, target, self._thread)
        except Invalid as error:
            raise Conflict(f"{error}. Give force=True to overwrite it", path=str(target)) from error
        if self._has(found, old):
            return
        record = self._record()
        ours = found.revision is not None and found.thread == self._thread
        base = found.revision if ours and found.revision is not None else 0
        if not ours or base > (0 if record is None else record.head):
            what = _origin(found)
            raise Conflict(f"{target} is {what}, not of thread {self._thread!r} here; {advice}", path=str(target))
        raise Conflict(
            f"{target} was edited after revision {base} was written to it; {advice}", path=str(target), revision=base
        )

    def _has(self, found: Parsed, data: bytes) -> bool:
        """Whether nothing is in a file that is not stored."""
        if found.document == EMPTY and found.revision is None:
            return True
        base = (found.revision or 0) if found.thread == self._thread else 0
        return self._is_stored(self._record(), base, found.document, _digest(data))

    def _is_stored(self, record: Record | None, base: int, document: HandoffDocument, source: str) -> bool:
        """Whether a file says what its own revision says, or the newest one, or was loaded since."""
        if record is None or not record.head:
            return base == 0 and document == EMPTY
        for number in {record.head, min(base or record.head, record.head)}:
            page = self._page(record, number)
            if same(_by_hand(document, page), _by_hand(page.document, page)):
                return True
        later = self._core.engine.read(self._core.tenant, record.mark, after=base)
        return any(_to_page(event).source == source for event in later)

    def load(
        self,
        path_or_text: str | bytes | PathLike[str],
        *,
        format: Format | None = None,
        by: str = "person",
        force: bool = False,
    ) -> HandoffDocument:
        """Load a file that a person may have edited as the next revision, and return the document.

        Give a path, or a text: several lines, or JSON. Without ``format`` it is JSON if the name ends in .json or the
        text begins with a brace, otherwise markdown. Steps of runs that the person removed stay hidden from then on.
        Raises ``Conflict`` if the file was written from another revision than the newest, unless you give ``force``.
        """
        check_id(by, "by")
        check_flag("force", force)
        text, path = _source(path_or_text)
        if not text.strip():
            raise Invalid("this text is empty; use update to clear a part of a handoff, erase to remove it")
        found = _parsed(text, format, path, self._thread)
        if found.thread not in (None, self._thread) and not force:
            raise Invalid(
                f"this is the handoff of thread {found.thread!r}, not {self._thread!r}; use force=True to load it here",
                thread=self._thread,
            )
        source = _digest(text.encode(errors="surrogatepass"))
        self._change(lambda page: _followed(page, self._taken(page, found, force), source), by)
        return self.read()

    def reload(self, path: str | PathLike[str], *, by: str = "person") -> bool:
        """Load a file only if someone changed it since it was written or loaded, and say whether. No file is no change.

        A session with a ``handoff_file`` does this before each turn. Raises what ``load`` raises.
        """
        check_id(by, "by")
        target = files.located(path)
        data = files.read_bytes(target, MAX_BYTES)
        if not data or self._has(
            _parsed(files.to_text(data, MAX_BYTES, str(target)), None, target, self._thread), data
        ):
            return False
        before = self._page(self._record()).number
        return self.load(target, by=by).revision != before

    def _taken(self, page: _HandoffText, found: Parsed, force: bool) -> HandoffDocument:
        """The next revision, from a person's text."""
        based = found.revision if found.thread == self._thread else None
        if based is not None and based != page.number and not force:
            raise Conflict(
                f"the text was written from revision {based} of the handoff of thread {self._thread!r}, now at "
                f"revision {page.number}; write the file again and repeat the edit, or give force=True",
                thread=self._thread, expected=based, actual=page.number,
            )  # fmt: skip
        base = page
        if based is not None and 1 <= based < page.number:
            base = self._page(self._record(), based)
        there = {step.ref for step in found.document.steps}
        removed = [step.ref for step in base.document.steps if step.ref is not None and step.ref not in there]
        hidden = dict.fromkeys((*page.document.hidden, *found.document.hidden, *removed))
        derived = {*base.shown, *self._blockers()}
        return msgspec.structs.replace(
            found.document,
            blockers=tuple(text for text in found.document.blockers if text not in derived),
            hidden=tuple(ref for ref in hidden if ref not in there),
        )


def stored_document(handoff: Handoff) -> HandoffDocument:
    """The newest revision as stored, without what the thread's runs add."""
    return handoff._stored()


def _read(document: HandoffDocument, revision: int) -> HandoffDocument:
    return msgspec.structs.replace(document, revision=revision)


def _followed(page: _HandoffText, document: HandoffDocument, source: str = "") -> _HandoffText:
    return page._replace(document=document, source=source)


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()


def _showing(page: _HandoffText, items: Sequence[HandoffItem], blockers: Sequence[str]) -> _HandoffText:
    """The revision a file is written from: it holds every run's steps that the file shows, and names its blockers."""
    known = {step.ref for step in page.document.steps}.union(page.document.hidden)
    more = tuple(item for item in items if item.ref is not None and item.ref not in known)
    shown = tuple(text for text in dict.fromkeys(blockers) if text not in page.document.blockers)
    steps = page.document.steps + more
    return _followed(page, msgspec.structs.replace(page.document, steps=steps))._replace(shown=shown)


def _by_hand(document: HandoffDocument, page: _HandoffText) -> HandoffDocument:
    """A document without what runs add: unedited files of one revision may differ only in that."""
    stored = {item.ref for item in page.document.steps}
    steps = tuple(
        item if item.ref is None else msgspec.structs.replace(item, done=False)
        for item in document.steps
        if item.ref is None or item.ref in stored
    )
    blockers = tuple(text for text in document.blockers if text not in page.shown)
    return msgspec.structs.replace(document, steps=steps, blockers=blockers)


def _origin(found: Parsed) -> str:
    if found.revision is None:
        return "not a file written from a handoff"
    return f"revision {found.revision} of the handoff of thread {found.thread!r}"


def _source(given: Any) -> tuple[str, Path | None]:
    """The text a caller means, and its file: several lines or JSON are the text itself, anything else is a path."""
    if isinstance(given, bytes):
        return files.to_text(given, MAX_BYTES, "the text"), None
    if isinstance(given, str) and ("\n" in given or "\r" in given or given.strip("\ufeff ")[:1] in ("{", "[")):
        return given, None
    path = files.located(given)
    return files.read_text(path, MAX_BYTES), path


def _form(given: object, suffix: str, text: str) -> str:
    """How a file is written: as a caller says, or as its name or what is in it tells."""
    if given is not None:
        return check_choice("format", given, get_args(Format))
    is_json = suffix.lower() == ".json" or text.lstrip("\ufeff \t\r\n").startswith(("{", "[{"))
    return "json" if is_json else "markdown"


def _parsed(text: str, given: object, path: Path | None, thread: str) -> Parsed:
    if _form(given, "" if path is None else path.suffix, text) == "json":
        return progress_json.parse(text, "the text" if path is None else str(path))
    return markdown.parse(text, thread)


def _sized(text: str, what: str) -> str:
    if (size := len(text.encode())) > MAX_BYTES:
        raise TooLarge(
            f"{what} takes {size:,} bytes as text; at most {MAX_BYTES:,} are accepted: keep details in the log",
            size_bytes=size, limit_bytes=MAX_BYTES,
        )  # fmt: skip
    return text


def _checked_message(message: object) -> str | None:
    if message is None:
        return None
    if not isinstance(message, str) or not message.strip() or "\x00" in message:
        raise Invalid(f"a commit message is text that is not blank, not {quoted(message)}")
    try:
        message.encode()
    except UnicodeEncodeError:
        raise Invalid(f"a commit message must be text that UTF-8 can encode, not {quoted(message)}") from None
    return message


def _subject(thread: str, document: HandoffDocument) -> str:
    """The subject of a commit: how far things are, and what comes next."""
    done, all_of_them = len(document.done), len(document.steps)
    subject = f"Handoff of {' '.join(thread.split())}: {done} of {all_of_them} done"
    if document.features:
        passing = sum(feature.done for feature in document.features)
        subject += f", {passing} of {len(document.features)} features pass"
    following = " ".join(document.next_action.split())
    if len(following) > _SUBJECT:
        following = following[: _SUBJECT - 1].rstrip() + "…"
    return f"{subject}, next: {following}" if following else subject


def _committed(target: Path, message: str) -> git.GitOutcome:
    return git.commit_file(target, message)


def _to_page(event: Event) -> _HandoffText:
    plain = _plain(event)
    try:
        shown = msgspec.convert(plain["shown"], tuple[str, ...])
        return _HandoffText(event.position, from_plain(plain["document"]), shown, plain["source"])
    except (Invalid, KeyError, msgspec.ValidationError) as error:
        raise Corrupt(f"handoff revision {event.position} is not a stored handoff: {error}; run verify") from error


def _plain(event: Event) -> dict[str, Any]:
    plain = decode(event.body)
    version = plain.get("version") if isinstance(plain, dict) else None
    if type(version) is not int or "by" not in plain:
        raise Corrupt(f"handoff revision {event.position} is not a stored handoff; run verify")
    if version > _VERSION:
        raise Unsupported(f"handoff revision {event.position} was written by a newer version; upgrade holdfast")
    result: dict[str, Any] = plain
    return result
