"""A session: an agent's turns in one thread, from reading the last handoff to writing the next.

``start`` reads what the last session left. ``turn`` records the question, recalls, builds the context, gets an answer,
commits it, learns from it, and keeps the window small. ``end`` hands over. A session holds nothing that is not in the
store: kill it anywhere, and the next one knows what was asked, what was done for it, and what is missing.

Deliberately absent: packing (``context``), calling models (``providers``), and loops around turns, which you write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

import msgspec

from holdfast.atfork import cached_property
from holdfast.checks import check_choice, check_flag, is_seconds
from holdfast.context.allowance import Allowance
from holdfast.context.budget import Share, shares, tokens
from holdfast.context.report import Context
from holdfast.errors import (
    Conflict,
    Fenced,
    HoldfastError,
    Invalid,
    KeyReused,
    Misconfigured,
    ModelFailed,
    NotFound,
    RunHeld,
    StepFailed,
    quoted,
)
from holdfast.handoff import HandoffDocument
from holdfast.ledger.thread import sibling
from holdfast.providers.models.model import Model, Usage
from holdfast.records import Draft, Entry, Hit, Loaded, Memory, event
from holdfast.sessions import context_source, handoff, learning, summaries
from holdfast.sessions.context_source import Builder, Settings, check_settings, owner_of
from holdfast.sessions.log_events import SESSION, chain
from holdfast.sessions.model_loop import ROUNDS, ModelLoop, settle_known, steps_taken
from holdfast.sessions.tools import Toolbox, lookup_tool
from holdfast.sessions.turn import (
    HANDLER,
    Answer,
    Exchange,
    end,
    has_begun,
    is_left,
    left,
    partial_of,
    recorded,
    role_of,
    run_of,
    set_aside,
    unanswered,
)
from holdfast.sessions.watched_file import WatchedFile
from holdfast.steps.journal import OWN

if TYPE_CHECKING:
    from types import TracebackType

    from holdfast.memory.handle import Memories
    from holdfast.steps.run import Run
    from holdfast.thread import Thread

_log = logging.getLogger(__name__)
SHARES: dict[str, Share | float | int] = {"recent": Share(0.15, 0.75, 5), "recalled": Share(160, 320, 3)}
"""A session shows more turns, which a provider's cache can keep, and fewer recalled hits, which it cannot."""
LEARNING = (learning.BY_RULES, learning.BY_MODEL, "off")
"""How a session learns. Asking a model about a turn is a second call, so it happens only where the caller says so."""
_READ = 400


class SessionSettings(Settings, total=False):
    """Settings of a session: those of a context, and these."""

    budget: int | None
    tools: Sequence[Any]
    learn: str
    summarise: bool
    hand_off: float | None
    handoff_file: str | PathLike[str] | None
    touch: bool
    rounds: int
    timeout_s: float | None


class Opening(msgspec.Struct, frozen=True):
    """What a session starts from.

    ``unanswered`` is a question that never got an answer, ``done`` what was done for it, as pairs of a tool and its
    result, and ``partial`` the part of an answer that had arrived. ``must_verify`` names fields of the state that are
    too old to act on.
    """

    handoff: HandoffDocument
    state: Loaded[Any]
    recent: tuple[Entry, ...]
    unanswered: Entry | None = None
    done: tuple[tuple[str, str], ...] = ()
    partial: str = ""

    @property
    def must_verify(self) -> tuple[str, ...]:
        return self.state.must_verify


class _Leaving(NamedTuple):
    """Entries about a question given up for another, the length of the log they are for, and the run, held."""

    drafts: list[Draft]
    length: int
    run: Run | None = None


class Session:
    """An agent's turns in one thread. ``with store.session(thread, model="…") as session: session.turn("…")``

    ``opening`` is what it started from, ``answer`` the last answer, ``usage`` the total of all model calls, and
    ``learning`` the part of it that learning took.
    """

    def __init__(
        self,
        thread: Thread,
        builder: Builder,
        memory: Callable[..., Memories],
        model: Model | None,
        **ways: Unpack[SessionSettings],
    ) -> None:
        self.thread, self.model, self._builder, self._handle = thread, model, builder, memory
        self._ways = ways
        self._settings: Settings = {name: ways[name] for name in Settings.__annotations__ if name in ways}  # type: ignore[assignment, literal-required]
        name, window = None if model is None else model.name, getattr(model, "window", None)
        self._allowance = builder.allowance(ways.get("budget"), name, window if type(window) is int else None)
        self.budget = self._allowance.tokens
        self._settings["shares"] = {**SHARES, **self._allowance.shares, **_checked(ways.get("shares"))}
        tokens = self._settings.get("tokens")
        self._counter = builder.counter(name if tokens is None else tokens)
        self._settings.setdefault("tokens", self._counter)
        self._toolbox = Toolbox(ways.get("tools", ()), thread.logbook.core)
        self._results: dict[str, str] = {}
        if self._toolbox and getattr(model, "takes_tools", True) is False:
            raise Invalid("this model function takes no tools; declare it as def model(messages, tools)")
        if self._toolbox:
            self._toolbox.add(lookup_tool(thread, self._results, self._elsewhere))
        _check(ways, model)
        check_settings(self._settings)
        self._file = WatchedFile(ways.get("handoff_file"))
        self._reading = sibling(thread, thread.id, thread.logbook.scope)  # the caller has not seen these states
        self.opening: Opening | None = None
        self.answer: Answer | None = None
        self._handed_off = False
        self._way = ways.get("learn", learning.BY_RULES)
        self._taught: set[bytes] = set()  # digests of usage entries: nothing left to learn
        self.usage = Usage(requests=0)
        self.learning = Usage(requests=0)

    def __repr__(self) -> str:
        return f"Session({self.thread.id!r}, model={None if self.model is None else self.model.name!r})"

    # The beginning

    def start(self) -> Opening:
        """Read what the last session left: handoff, state, recent entries, and any unanswered question."""
        self._file.take_in(self.thread.handoff)
        entries, marks, *_ = self._builder.recent(self.thread, self._context_allowance.tokens, self._settings)
        question = unanswered(entries)
        name, begun = ("", False) if question is None else run_of(self.thread, question)
        taken = steps_taken(self.thread.timeline(name).steps) if begun else ()
        done = tuple((call.name, result) for call, result in taken)
        self.opening = Opening(
            self.thread.handoff.read(),
            self._reading.state(self._settings.get("state")),
            tuple(entry for entry in self.thread.log(last=_READ) if entry.number >= marks.start),
            question,
            done,
            "" if question is None else partial_of(entries, question),
        )
        return self.opening

    # Turns

    def turn(self, input: Any, *, key: str | None = None) -> Any:
        """Do one whole turn and return its ``Answer``; in a session without a model, return an ``Exchange``.

        With ``key`` a repetition is recognised: an answered question returns the same answer (an ``Exchange`` has it as
        ``answer``), an unanswered one is resumed. After ``ModelFailed`` the question stays open: call ``resume``, or
        repeat the call with the same key. After ``StepUnknown``, settle the step first. ``RunHeld`` means that another
        process is answering the question, ``Fenced`` that another process took it over.
        """
        exchange = self._asked(input, key)
        if isinstance(exchange, Answer) or self.model is None:
            return exchange
        for _ in self._answering(exchange):
            pass
        return exchange.answer

    def stream(self, input: Any, *, key: str | None = None) -> Iterator[str]:
        """Do one whole turn, and yield the text of the answer as it arrives.

        Nothing happens until you iterate. The turn is committed at the end; the session's ``answer`` is then set.
        """
        self._need_model("stream")
        exchange = self._asked(input, key)
        if isinstance(exchange, Answer):
            self.answer = exchange
            yield exchange.text
            return
        yield from self._answering(exchange)

    def resume(self) -> Any:
        """Answer the unanswered question, without repeating what was done for it. None if there is no such question.

        Without a model, return an ``Exchange``, as ``turn`` does.
        """
        exchange = self._resumed()
        if exchange is None or self.model is None:
            return exchange
        for _ in self._answering(exchange):
            pass
        return exchange.answer

    def resume_stream(self) -> Iterator[str]:
        """Resume, and yield the text of the answer as it arrives; yield nothing if there is nothing to resume."""
        self._need_model("stream")
        exchange = self._resumed()
        if exchange is not None:
            yield from self._answering(exchange)

    def recalled_for(self, number: int) -> list[Hit]:
        """The hits recalled for a question of this thread that still exist: what its answer could know."""
        answer = recorded(self.thread, self.thread.entry(number))
        used = [] if answer is None else answer.entries[-1].content.get("recalled", [])
        return self._again([id for id in used if isinstance(id, str)])

    def context(self, input: Any) -> Context:
        """The context that a turn with this input would get. Nothing is written."""
        return self._built(input)

    @property
    def _memory(self) -> Memories:
        """The memories of the thread's own user, whoever opened the session."""
        user, agent = owner_of(self.thread)
        return self._handle(user=user, agent=agent)

    def _elsewhere(self, ref: str) -> str | None:
        """The text of an entry of another thread, if this thread's user may see it."""
        hits = self._again([ref])
        return "\n".join(hit.text for hit in hits) if hits else None

    def _again(self, ids: Sequence[str]) -> list[Hit]:
        trust = self._settings.get("trust")
        return context_source.again(self.thread.logbook.core, self._memory, ids, trust)

    # Inside a turn

    def _asked(self, input: Any, key: str | None) -> Exchange | Answer:
        """Record a question, unless it is recorded already, and prepare to answer it."""
        self._file.take_in(self.thread.handoff)
        input = input.content if isinstance(input, Draft) else input
        content = input if isinstance(input, dict) else {"content": input}
        asked = Draft("message", {**content, "role": "user"}, key)
        while True:
            question = None if key is None else self._known(key, input)
            if question is None:
                self._builder.check(input, self._context_allowance.tokens, self._settings)
                question = self._put(asked)
            if question is not None:
                return self._answered_or_taken_up(question)

    def _put(self, asked: Draft) -> Entry | None:
        """Append a question, in one commit with the entries about the question it leaves behind.

        None if the log grew in the meantime: the question to leave may be answered by now, or already left.
        """
        leaving = self._left(asked.key)
        if leaving is None:
            return _last(self.thread.append(asked))
        try:
            question = _last(self.thread.append(*leaving.drafts, asked, expect=leaving.length))
        except BaseException as error:
            if leaving.run is not None:
                with suppress(HoldfastError):  # its lease will run out
                    leaving.run.release("the question was not given up after all")
            if isinstance(error, Conflict):
                return None
            raise
        if leaving.run is not None:
            with suppress(HoldfastError):  # the question is recorded either way
                set_aside(leaving.run)
        return question

    def _built(self, input: Any, question: Entry | None = None) -> Context:
        name = None if self.model is None else self.model.name
        apart = None if question is None else question.number
        return self._builder.build(self._reading, input, self._context_allowance, name, self._settings, apart=apart)

    @cached_property
    def _context_allowance(self) -> Allowance:
        """What a context may have of the budget: with tools two thirds of what their definitions leave over."""
        if not self._toolbox:
            return self._allowance
        defined = min(self._toolbox.tokens(self._counter.count), self.budget // 2)
        tokens = (self.budget - defined) * 2 // 3
        why = f"{tokens:,} tokens of {self._allowance.why}; tools take {defined:,}, and their results the rest"
        return msgspec.structs.replace(self._allowance, tokens=tokens, why=why)

    def _known(self, key: str, input: Any) -> Entry | None:
        """The question recorded with this key, if any; its content must be the same."""
        try:
            question = self.thread.entry(key=key)
        except NotFound:
            return None
        said = question.content.get("content") if role_of(question) == "user" else None
        if said != (input.get("content") if isinstance(input, dict) else input):
            raise KeyReused(f"the key {key!r} already names other content in thread {self.thread.id!r}", key=key)
        return question

    def _answered_or_taken_up(self, question: Entry) -> Exchange | Answer:
        """The recorded answer or, in a session without a model, an exchange that has it."""
        run, _ = run_of(self.thread, question)  # before looking for the answer: an ended run means there is one
        answer = recorded(self.thread, question)
        if answer is not None:
            self._catch_up()  # perhaps asked again because the answering process was killed
        if answer is not None and self.model is not None:
            return answer
        exchange = self._taken_up(question, run)
        exchange.answer = answer
        return exchange

    def _resumed(self) -> Exchange | None:
        """Prepare to answer the open question, if there is one."""
        self._file.take_in(self.thread.handoff)
        question = unanswered(self._builder.entries(self.thread))
        while question is not None:
            run, _ = run_of(self.thread, question)
            still = unanswered(self._builder.entries(self.thread))
            if still == question:
                return self._taken_up(question, run)
            question = still  # someone answered it, or asked something else, in the meantime
        return None

    def _taken_up(self, question: Entry, run: str) -> Exchange:
        """Prepare to answer a recorded question; the work for it is in the run of this name."""
        self._handed_off = False
        context = self._built(question.content, question)
        entries = self._builder.seen(self.thread)
        missed = [] if self._way == "off" else learning.missed(entries, self._taught)
        marks = {} if self._way == "off" else {"learn": self._way, "learned": learning.upto(entries, missed)}
        exchange = Exchange(self.thread, question, run, context, partial(self._after, missed), marks)
        if self.model is None and (begun := exchange._begun()) is not None:
            exchange._take_up(steps_taken(begun.steps))
        return exchange

    def _answering(self, exchange: Exchange) -> Iterator[str]:
        """Let the model answer a question, and record the answer. An error leaves the question open with a reason."""
        model = self._need_model("answer")
        rounds = self._ways.get("rounds", ROUNDS)
        counting = (self._counter.count, self.budget)
        work = ModelLoop(exchange, model, self._toolbox, counting, self._ways.get("timeout_s"), rounds)
        work.results = self._results
        self._results.clear()
        try:
            yield from work.pieces()
            exchange.reply(work.reply, usage=work.usage)
        except BaseException as error:  # also an interrupt, or a caller who stopped iterating
            if isinstance(error, Conflict) and exchange.answer is None:
                exchange.answer = recorded(self.thread, exchange.question)  # another process answered it first
            if exchange.answer is None:
                exchange._fail(error, work.said)
            if exchange.answer is None or not isinstance(error, Conflict):
                raise
            if not work.said:
                yield exchange.answer.text
        self.answer = exchange.answer

    def _left(self, key: str | None) -> _Leaving | None:
        """The question to give up for another, unless someone works on it."""
        entries = self._builder.entries(self.thread)
        question = unanswered(entries)
        if question is None or (key is not None and question.key == key):  # someone else just asked it
            return None
        length = entries[-1].number
        name, begun = run_of(self.thread, question)
        if not begun:
            return _Leaving(left(question, ()), length)
        try:
            run = self.thread.run(name)
            if run.status == "open":
                settle_known(run, self._toolbox)
        except (RunHeld, Fenced):
            return None
        return _Leaving(left(question, steps_taken(run.steps)), length, run)

    def _tend(self) -> None:
        """Finish what a crash left undone after an answer: end its run, and learn from it."""
        for info in self.thread.runs(status="interrupted"):
            number = info.input.get("question") if isinstance(info.input, dict) else None
            if not info.handler.startswith(OWN) or type(number) is not int:
                continue
            with suppress(NotFound, RunHeld, Fenced):  # rewound, or someone else works on it
                question = self.thread.entry(number)
                answer = recorded(self.thread, question)
                if info.handler == HANDLER and answer is not None:
                    end(self.thread.run(info.name), question)
                elif info.handler == HANDLER and is_left(self._builder.entries(self.thread), number):
                    set_aside(self.thread.run(info.name))
                elif info.handler == learning.LEARNER and answer is not None and self._way != "off":
                    self._learn(question, answer, self._way, [])

    # After a turn

    def _after(self, missed: Sequence[Entry], exchange: Exchange, answer: Answer) -> Answer:
        """Learn from a turn and keep the window small. The answer stands even if this fails."""
        notes = self._file.notes()
        learned: list[Memory] = []
        before = self.learning
        self._try(
            self._tend,
            *(partial(self._make_up, usage) for usage in missed),
            lambda: learned.extend(self._learn(exchange.question, answer, self._way, notes)),
            lambda: self._count_recalls(exchange.context),
            self._tidied,
            notes=notes,
        )
        if exchange._stopped:
            notes.append(f"the model stopped before the end: {exchange._stopped}")
        self.usage += answer.usage
        self.answer = msgspec.structs.replace(
            answer,
            learned=tuple(learned),
            learning=self.learning - before,
            handed_off=self._handed_off,
            notes=tuple(notes),
        )
        return self.answer

    def _count_recalls(self, context: Context) -> None:
        if self._ways.get("touch", False):
            self._memory.visible.recalled([hit.id for hit in context.hits if hit.memory is not None])

    def _try(self, *works: Callable[[], object], notes: list[str]) -> None:
        """Do work whose failure must not break the turn; note the failure."""
        for work in works:
            try:
                work()
            except Exception as error:  # the caller's own model may raise anything
                _log.warning("after a turn of %s: %s", self.thread.id, error)
                notes.append(f"{type(error).__name__}: {error}")

    def _tidied(self) -> None:
        """Keep the window small: summarise what outgrew it, and hand off when it is nearly full."""
        if self._ways.get("summarise", True):
            self.roll()
        if self._full():
            self.hand_off()

    # Learning

    def _catch_up(self) -> dict[str, Any]:
        """Learn from answers not learned from yet; return details for the log."""
        entries: Sequence[Entry] = ()
        with suppress(HoldfastError):  # the answers stand even if this fails
            entries = self._builder.entries(self.thread) if self._way != "off" else ()
        if not entries:
            return {}
        missed = learning.missed(entries, self._taught)
        self._try(self._tend, *(partial(self._make_up, usage) for usage in missed), notes=[])
        return {"learned": learning.upto(entries, learning.missed(entries, self._taught))}

    def _make_up(self, usage: Entry) -> None:
        """Learn from an answer, unless someone began to: the process that gave it may have been killed right after."""
        if usage.digest in self._taught:
            return
        with suppress(NotFound):  # rewound or erased in the meantime
            question = self.thread.entry(usage.content["question"])
            answer = recorded(self.thread, question)
            if answer is not None and answer.entries[-1].digest == usage.digest and self._is_missed(question, usage):
                way = self._way if usage.content["learn"] == learning.BY_MODEL else learning.BY_RULES
                self._learn(question, answer, way, [])
        self._taught.add(usage.digest)

    def _is_missed(self, question: Entry, usage: Entry) -> bool:
        """Whether nobody began to learn from an answer. History that a fork shares is for its origin to learn from."""
        if usage.number <= self.thread.logbook.existing().base:
            return False
        by_model = usage.content["learn"] == learning.BY_MODEL
        return not (by_model and has_begun(self.thread, learning.run_name(question, usage)))

    def _learn(self, question: Entry, answer: Answer, way: str, notes: list[str]) -> tuple[Memory, ...]:
        """Learn from a turn, and remember that it is done. Repeating it changes nothing."""
        learned = self._learned(question, answer, way, notes)
        self._taught.add(answer.entries[-1].digest)
        return learned

    def _learned(self, question: Entry, answer: Answer, way: str, notes: list[str]) -> tuple[Memory, ...]:
        if way == "off":
            return ()
        if owner_of(self.thread)[0] is None:  # memories without a user would be shown to everyone
            notes.append("nothing was learned: this thread has no user; give one, as in store.thread(id, user=…)")
            return ()
        if way == learning.BY_RULES:
            return learning.by_rules(self._memory, (question, *answer.entries))
        try:
            name = learning.run_name(question, answer.entries[-1])
            run = self.thread.run(name, handler=learning.LEARNER, input={"question": question.number})
        except RunHeld:
            notes.append("another process is learning from this turn")
            return ()
        try:
            return self._extracted(run, (question, *answer.entries), notes)
        except Exception:  # also disk or index errors: the next session continues it
            with suppress(HoldfastError):
                run.release("the result could not be recorded")
            raise

    def _extracted(self, run: Run, turn: Sequence[Entry], notes: list[str]) -> tuple[Memory, ...]:
        """What the model finds in a turn; if it fails, what the rules find."""
        assert self.model is not None
        timeout_s = self._ways.get("timeout_s")
        try:
            learned = learning.learn(run, self._memory, self.thread, turn, self.model, timeout_s=timeout_s)
        except (ModelFailed, Misconfigured, StepFailed) as error:
            notes.append(f"learned by rules alone: {error}")
            by_rules = learning.by_rules(self._memory, turn)
            run.fail(error)  # after the rules: an ended run is not continued
            return by_rules
        run.finish()
        self.usage += learned.usage
        self.learning += learned.usage
        notes += [f"not learned: {refused.text!r} ({refused.why})" for refused in learned.refused]
        return learned.memories

    def roll(self) -> Entry | None:
        """Summarise the older turns if they outgrew their share of the budget; return the summary."""
        room = tokens(shares(self._settings["shares"])["recent"].most, self._context_allowance.tokens)
        recent = self._builder.recent(self.thread, self._context_allowance.tokens, self._settings)
        done = summaries.roll(self.thread, recent, room, self._counter.count, self.model, self._ways.get("timeout_s"))
        if done is None:
            return None
        self.usage += done[1]
        return done[0]

    # The end

    def hand_off(self) -> int:
        """Write the handoff and start the next turn afresh from it; return the handoff's revision."""
        revision = self._write_handoff()
        self._handed_off = True
        self.thread.append(event(SESSION, fresh=True, handoff=revision))
        return revision

    def end(self) -> int:
        """Store what the next session needs: summary, handoff and learned memories. Return the handoff's revision."""
        marks = self._catch_up()
        revision = self._write_handoff()
        self.thread.append(event(SESSION, ended=True, handoff=revision, **marks))
        return revision

    def _write_handoff(self) -> int:
        self._file.take_in(self.thread.handoff)
        entries, marks, *_ = self._builder.recent(self.thread, self._context_allowance.tokens, self._settings)
        earlier = [summary.text for summary in chain(marks, self.thread.entry)][::-1]
        recent = [entry for entry in entries if entry.number >= marks.start]
        revision, usage = handoff.write(
            self.thread, recent, earlier, unanswered(entries), (self._counter.count, self.budget), self.model,
            self._ways.get("timeout_s"),
        )  # fmt: skip
        self.usage += usage
        self._file.put_out(self.thread.handoff, handoff.BY)
        return revision

    def _full(self) -> bool:
        """Whether the conversation since the last handoff fills nearly all of the budget."""
        share = self._ways.get("hand_off")
        return share is not None and self.fullness() >= share

    def fullness(self) -> float:
        """The share of the budget that summaries and turns since the last handoff take; 1 is all of it."""
        return (
            self._builder.weight(self.thread, self._context_allowance.tokens, self._settings)
            / self._context_allowance.tokens
        )

    def _need_model(self, what: str) -> Model:
        if self.model is None:
            raise Invalid(f"a session without a model cannot {what}; name one: store.session(thread, model=…)")
        return self.model

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.answer is not None and not self._handed_off:
            self.end()


def _checked(changes: Any) -> Mapping[str, Share | float | int]:
    shares(changes)
    return changes or {}


def _last(entries: Entry | list[Entry]) -> Entry:
    return entries[-1] if isinstance(entries, list) else entries


def _check(ways: SessionSettings, model: Model | None) -> None:
    if unknown := set(ways) - SessionSettings.__annotations__.keys() - Settings.__annotations__.keys():
        known = ", ".join(sorted({*SessionSettings.__annotations__, *Settings.__annotations__}))
        raise Invalid(f"a session has no setting {', '.join(sorted(unknown))}; it has {known}")
    check_choice("learn", ways.get("learn", learning.BY_RULES), LEARNING)
    if ways.get("learn") == "model" and model is None:
        raise Invalid('learn="model" needs a model')
    check_flag("touch", ways.get("touch", False))
    rounds, timeout_s = ways.get("rounds", ROUNDS), ways.get("timeout_s")
    if type(rounds) is not int or rounds < 0:
        raise Invalid(f"rounds is the number of tool rounds per turn, 0 or more, not {quoted(rounds)}")
    if timeout_s is not None and not (is_seconds(timeout_s) and timeout_s > 0):
        raise Invalid(f"timeout_s is a number of seconds over 0, not {quoted(timeout_s)}")
    share = ways.get("hand_off")
    if share is not None and (isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1):
        raise Invalid(
            f"hand_off is the share of the budget at which to hand off, over 0 and up to 1, not {quoted(share)}"
        )
