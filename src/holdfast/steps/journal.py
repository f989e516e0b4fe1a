"""What is written in a run's stream, and what it adds up to.

Every event is one fact about the run, in the order it became durable. Folding them gives the status of each step;
nothing else is remembered about a run, so a new process knows as much as the one that died. Deliberately absent:
changing what was written. A step that is retried, settled or undone is a further event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from holdfast import atfork
from holdfast.engine.codec import MAX_BODY_BYTES, decode, encode
from holdfast.engine.contract import Event
from holdfast.errors import Corrupt, Invalid, TooLarge, Unsupported, WaitTimedOut
from holdfast.ids import check_id
from holdfast.steps.declare import UNDO

KIND = "run"
VERSION = 1
NOT_BEGUN = "not begun"
_SIGNAL = "signal\x1f"
_BESIDE = 65_536  # bytes in an event besides the value: names and errors

Standing = Literal["intended", "completed", "failed", "waiting"]
Status = Literal["open", "waiting", "stopped", "done", "failed", "cancelled"]
OWN = "holdfast."
"""The prefix of Holdfast's own handlers: turns of sessions, and learning from them."""
STORED: tuple[Status, ...] = get_args(Status)
ENDED = ("done", "failed", "cancelled")

KINDS = frozenset({
    "opened", "intent", "progress", "probed", "resolved", "completed", "failed", "unstarted", "waiting", "parked",
    "signal", "cancel", "spent", "released", "ended",
})  # fmt: skip


class StepRecord(msgspec.Struct):
    """The status of one step. ``result`` is as stored; ``how`` says where it came from."""

    name: str
    standing: Standing
    attempt: int = 0
    key: str = ""
    input: str = ""
    effect: str = ""
    on_unknown: str = "stop"
    compensable: bool = False
    how: str = ""
    result: Any = None
    error: dict[str, Any] | None = None
    progress: Any = None
    until: int | None = None
    begun: int = 0
    ended: int = 0
    position: int = 0
    since: int = 0


class RunHeader(msgspec.Struct, frozen=True):
    """The body of a run's record: who may act, and how far the run is. Changing it changes the record's version, which
    is the fence."""

    thread: str
    name: str
    handler: str
    status: Status = "open"
    input: Any = None
    holder: str = ""
    claims: int = 0
    parent: str | None = None
    waits: str | None = None
    v: int = VERSION

    def body(self) -> bytes:
        return encode({field: getattr(self, field) for field in self.__struct_fields__}, f"the input of {self.name!r}")


def peek_header(body: bytes) -> RunHeader:
    """What a listing needs of a run, even one recorded by a newer Holdfast."""
    return _to_header(decode(body))


def to_header(body: bytes) -> RunHeader:
    """What is needed to work with a run; one recorded by a newer Holdfast is refused."""
    plain = decode(body)
    newer = isinstance(plain, dict) and plain.get("v", 0)
    if newer and newer > VERSION:
        raise Unsupported(f"this run was recorded by a newer Holdfast (form {newer}, known: {VERSION}): upgrade")
    return _to_header(plain)


def _to_header(plain: Any) -> RunHeader:
    try:
        return msgspec.convert(plain, RunHeader)
    except msgspec.ValidationError as error:
        raise Corrupt(f"a stored run cannot be read: {error}; run verify") from error


def record_id(thread: str, name: str) -> str:
    """Runs of all threads share one kind; the length in front keeps ("a/b", "c") apart from ("a", "b/c")."""
    return f"{len(thread)}:{thread}/{check_id(name, 'run name')}"


def fact(kind: str, time: int, *, under: str | None = None, **facts: Any) -> Event:
    """One event for a run's stream; ``under`` is its key if only the first counts."""
    what = f"step {facts['step']!r}: its {kind} record" if "step" in facts else f"the {kind} record"
    return Event(kind, encode(facts, what), time, under)


def check_room(plain: Any, what: str) -> None:
    """Refuse now what would be too large to record later, in an event with other facts."""
    if plain is None or plain is True or plain is False or (type(plain) is int and -(2**63) <= plain < 2**63):
        return  # most results are this small
    try:
        size = len(encode([plain], what))
    except Invalid:
        encode(plain, what)  # names the place as the caller knows it
        raise
    if size > MAX_BODY_BYTES - _BESIDE:
        raise TooLarge(
            f"{what} takes {size:,} bytes; at most {MAX_BODY_BYTES - _BESIDE:,} are accepted: keep the large part "
            "elsewhere and store a reference",
            size_bytes=size, limit_bytes=MAX_BODY_BYTES - _BESIDE, what=what,
        )  # fmt: skip


def signal_key(name: str) -> str:
    """The key under which the first signal of a name stays the only one."""
    return f"{_SIGNAL}{name}"


class Journal:
    """The events of a run so far, folded. Thread-safe within one holder.

    Up to ``base`` they belong to the run that this one was forked from.
    """

    def __init__(self, base: int = 0) -> None:
        self._base = base
        self.steps: dict[str, StepRecord] = {}
        self.signals: dict[str, Any] = {}
        self.cancel: dict[str, Any] | None = None
        self.ended: dict[str, Any] | None = None
        self.spent: dict[str, float] = {}
        self.claims = 0
        self.fruitless = 0
        self.head = 0
        self._ahead: set[int] = set()
        self._lock = atfork.lock()

    def fold(self, events: Iterable[Event]) -> None:
        """Add events, each once, in whatever order the threads of this holder read them."""
        with self._lock:
            for event in events:
                if event.position <= self.head or event.position in self._ahead:
                    continue
                self._take(event)
                self._ahead.add(event.position)
                while self.head + 1 in self._ahead:
                    self.head += 1
                    self._ahead.discard(self.head)

    def behind(self, position: int) -> bool:
        """Whether others appended something before a position that is not yet known here."""
        with self._lock:
            return any(number not in self._ahead for number in range(self.head + 1, position))

    def _take(self, event: Event) -> None:
        if event.kind not in KINDS:
            raise Unsupported(
                f"this run holds a {event.kind!r} record, which this version does not know: upgrade holdfast",
                position=event.position,
            )
        facts = decode(event.body)
        handle = getattr(self, f"_on_{event.kind}", None)
        try:
            if handle is not None:
                handle(facts, event)
        except (KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"the {event.kind} record {event.position} of a run cannot be read; run verify") from error

    # What each kind of event means

    def _on_opened(self, facts: dict[str, Any], event: Event) -> None:
        if facts["why"] == "submitted":
            return  # not taken yet
        self.claims += 1
        self.fruitless += 1
        if facts["why"] == "reopened":
            self._try_again()

    def _try_again(self) -> None:
        """A failed run is to be retried: the failure that ended it is no longer final.

        A failure that the run's code handled stays final; otherwise both branches would happen.
        """
        self._wait_anew()
        culprit = (self.ended or {}).get("step")
        self.ended = None
        for step in self.steps.values():
            if step.standing == "failed" and (step.name == culprit or step.name.endswith(UNDO)):
                step.standing, step.attempt = "intended", 0
            elif step.standing == "completed":
                step.error = None  # what was not saved with it stays unsaved, and recorded as such

    def _wait_anew(self) -> None:
        """Forget the wait that made a run fail. One whose timeout the run's code handled stays answered."""
        error = (self.ended or {}).get("error") or {}
        codes = {plain.get("code") for plain in (error, *error.get("causes", ()))}
        late = [step for step in self.steps.values() if step.how == "timeout"]
        if late and WaitTimedOut.code in codes:
            del self.steps[max(late, key=lambda step: step.position).name]

    def _on_intent(self, facts: dict[str, Any], event: Event) -> None:
        name = facts["step"]
        known = self.steps.get(name)
        self.steps[name] = StepRecord(
            name, "intended", facts["attempt"], facts["key"], facts["input"], facts["effect"], facts["on_unknown"],
            facts["undo"], progress=known.progress if known else None, begun=known.begun if known else event.time,
            error=known.error if known else None, since=known.since if known else event.position,
        )  # fmt: skip

    def _on_progress(self, facts: dict[str, Any], event: Event) -> None:
        step = self.steps.get(facts["step"])
        if step is not None:  # otherwise it came late, after the step was settled
            step.progress = facts["value"]
            self.fruitless = 0

    def _on_completed(self, facts: dict[str, Any], event: Event) -> None:
        step = self.steps.setdefault(facts["step"], StepRecord(facts["step"], "completed", begun=event.time))
        if step.standing == "completed" and step.ended:
            return  # the first one counts
        step.standing, step.how, step.result = "completed", facts["how"], facts["result"]
        step.ended, step.position, step.error = event.time, event.position, facts.get("error")
        self.fruitless = 0

    def _on_failed(self, facts: dict[str, Any], event: Event) -> None:
        step = self.steps.get(facts["step"])
        if step is None or step.standing == "completed":
            return
        step.error = facts["error"]
        if facts["final"]:
            step.standing, step.ended, step.position = "failed", event.time, event.position
            self.fruitless = 0

    def _on_unstarted(self, facts: dict[str, Any], event: Event) -> None:
        self.steps.pop(facts["step"], None)

    def _on_waiting(self, facts: dict[str, Any], event: Event) -> None:
        step = self.steps.setdefault(facts["step"], StepRecord(facts["step"], "waiting", begun=event.time))
        step.until = facts["until"]

    def _on_signal(self, facts: dict[str, Any], event: Event) -> None:
        self.signals.setdefault(facts["name"], facts)
        self.fruitless = 0

    def _on_released(self, facts: dict[str, Any], event: Event) -> None:
        if facts["why"] == NOT_BEGUN:
            self.fruitless = max(0, self.fruitless - 1)  # given back before any attempt

    def _on_cancel(self, facts: dict[str, Any], event: Event) -> None:
        self.cancel = self.cancel or facts

    def _on_spent(self, facts: dict[str, Any], event: Event) -> None:
        for what, amount in facts["amounts"].items():
            self.spent[what] = self.spent.get(what, 0) + amount

    def _on_ended(self, facts: dict[str, Any], event: Event) -> None:
        self.ended = facts

    # Questions

    def in_doubt(self) -> list[StepRecord]:
        """Steps that were started and whose end is not recorded."""
        return [step for step in self.all() if step.standing == "intended"]

    def all(self) -> list[StepRecord]:
        """Every step so far, in the order they started."""
        with self._lock:
            return list(self.steps.values())

    def is_own(self, step: StepRecord) -> bool:
        """Whether a step was started here, and not by the run that this one was forked from."""
        return step.since > self._base

    def to_undo(self) -> list[StepRecord]:
        """Completed steps that declared a compensation, last first; not those that a fork only shares."""
        done = [step for step in self.all() if _undoable(step) and self.is_own(step)]
        return sorted(done, key=lambda step: step.position, reverse=True)


def _undoable(step: StepRecord) -> bool:
    return step.standing == "completed" and step.compensable and step.how != "skipped"
