"""One exchange: a question that is on record before anything is done about it, and its answer, committed once.

The question goes into the log first, so whoever comes after a crash knows that it was asked. What is done to answer it
is kept in a durable run, which begins with the first tool; so it is not done again. The answer, the tools it used and
what it cost are one commit, under a key made of the question: repeating it changes nothing. Deliberately absent: where
an answer comes from (``converse``, or the caller).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from holdfast.context.report import Context
from holdfast.errors import Conflict, Fenced, HoldfastError, Invalid, KeyReused, ModelFailed, NotFound, RunHeld, quoted
from holdfast.ledger import typed
from holdfast.ledger.said import spoken
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.records import Draft, Entry, Memory, event, message, observation, tool_call
from holdfast.sessions.marks import UNANSWERED, USAGE, is_event
from holdfast.sessions.questions import HANDLER, answer_key, end, has_begun, run_name, told_of
from holdfast.sessions.replies import reply_of
from holdfast.sessions.tools import shown
from holdfast.steps.declare import OPTIONS
from holdfast.steps.recording import Writing

if TYPE_CHECKING:
    from holdfast.steps.run import Run
    from holdfast.thread import Thread

_LONG = 4_000
_ENTRIES = 2_000


class Answer(msgspec.Struct, frozen=True):
    """What came of a turn. ``entries`` are what it added to the log after the question.

    ``learned`` are the memories it gave, ``repeated`` says that it had been answered before, ``handed_off`` that the
    next turn begins a fresh session, and ``notes`` what did not go as it should.
    """

    text: str
    question: Entry
    entries: tuple[Entry, ...]
    usage: Usage
    context: Context | None = None
    learned: tuple[Memory, ...] = ()
    repeated: bool = False
    handed_off: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Exchange:
    """A question under way. ``messages`` goes to the model, ``reply`` takes what it says.

    ``with session.turn("…") as turn: turn.reply(my_model(turn.messages))``
    """

    def __init__(
        self,
        thread: Thread,
        question: Entry,
        run: str,
        context: Context,
        then: Callable[[Exchange, Answer], Answer],
        marks: dict[str, Any],
    ) -> None:
        self._thread, self._then, self._name, self._marks = thread, then, run, marks
        self._drafts: list[Draft] = []
        self._done: list[tuple[ToolCall, str]] = []
        self._told: frozenset[str] = frozenset()
        self._run: Run | None = None
        self._worked = False
        self.question, self.context = question, context
        self.answer: Answer | None = None
        self._stopped = ""

    def __repr__(self) -> str:
        return f"Exchange({self._thread.id!r} #{self.question.number}, {'answered' if self.answer else 'open'})"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What goes into the model, as OpenAI's clients take it; ``context.messages("anthropic")`` for the other."""
        found: list[dict[str, Any]] = self.context.messages("openai")
        for call, result in self._done:
            found.append(Reply(calls=(call,)).message())
            found.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return found

    def _take_up(self, done: Iterable[tuple[ToolCall, str]]) -> None:
        """Show and put on record what was done for this question before a crash."""
        self._done = list(done)
        for call, result in self._done:
            self._note(call.name, call.arguments, result, call.id)

    # What is done to answer

    def _opened(self) -> Run:
        """The durable run of this exchange, begun when it is first needed.

        It is the one that was chosen before the answer was looked for. Where that is over, there is one by now.
        """
        if self._run is None:
            run = self._thread.run(self._name, handler=HANDLER, input={"question": self.question.number})
            if run.status != "open":
                raise Fenced(
                    f"question #{self.question.number} was answered by somebody else meanwhile",
                    thread=self._thread.id, run=self._name,
                )  # fmt: skip
            if run.steps:  # done before, and maybe on record since the question was left
                self._told = told_of(self._thread.log(last=_ENTRIES), self.question)
            self._run, self._worked = run, True
        return self._run

    def _begun(self) -> Run | None:
        """The run of this exchange if it was begun, here or before a crash."""
        if self._run is None and has_begun(self._thread, self._name):
            return self._opened()
        return self._run

    def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Do something for the answer as a durable step of this turn (see ``Run.step``), and put it on record with it.

        The call and its result go into the log when the turn is committed.
        """
        self._refuse_answered()
        result = self._opened().step(name, fn, *args, log=False, **options)
        if any(call.name == name for call, _ in self._done):
            return result  # on record with what was done before the crash
        given = {"args": list(args)} if args else {}
        given |= {what: value for what, value in options.items() if what not in OPTIONS}
        self._note(name, typed.to_plain(given), shown(result), f"{name}-{self.question.number}")
        return result

    def _note(self, name: str, arguments: Any, result: str, id: str) -> None:
        """Put a use of a tool on record with the answer."""
        self._drafts += [tool_call(name, arguments, id=id), observation(result, of=id)]

    def append(self, *drafts: Draft) -> None:
        """Put more entries on record with the answer: ``holdfast.note(…)``, ``holdfast.event(…)``, …"""
        self._refuse_answered()
        self._drafts += drafts

    # The answer

    def reply(self, reply: Any, *, usage: Usage | None = None, state: Any = None) -> Answer:
        """Record the answer and end the turn, in one commit. Give a text, a message, or what a client returned.

        ``state`` is saved with it. Later uses of a closed exchange are refused.
        """
        self._refuse_answered()
        found = reply_of(reply)
        if usage is not None and not isinstance(usage, Usage):
            raise Invalid(f"usage is a holdfast.Usage, not {quoted(usage)}")
        self._stopped = found.stop if found.stop not in ("", "end", "tools") else ""
        spent = usage or found.usage
        said = (message("assistant", found.text), self._usage(spent, found))
        try:
            if self._worked:
                self._opened()  # also when it was released since: an answer that comes late counts
            entries = self._commit([*filter(self._is_new, self._drafts), *said], state)
        except (KeyReused, Fenced):  # somebody else was faster, and that answer stands
            self.answer = recorded(self._thread, self.question)
            if self.answer is None:
                raise
            self._over()
            return self.answer
        self._over()
        answer = Answer(found.text, self.question, tuple(entries), spent, self.context)
        self.answer = answer
        self.answer = self._then(self, answer)
        return self.answer

    def _commit(self, drafts: list[Draft], state: Any) -> list[Entry]:
        """Write the answer. Who used tools and was taken over has none to give: whoever has the run now answers."""
        turn = self._thread.turn(key=answer_key(self.question))
        turn._enter()
        try:
            turn.append(*drafts)
            if state is not None:
                turn.state(state)
        finally:
            turn._leave()
        pending = turn._pending()
        if self._run is None:
            self._thread.logbook.core.commit(pending)
        else:
            writing = Writing(pending.ops, pending.finish)
            self._run._drive(self._run._work.record((), turn=writing, time=pending.time))
        return turn.entries

    def _is_new(self, draft: Draft) -> bool:
        """Whether a draft is not of a call that went on record when the question was left."""
        named = {"tool_call": "id", "observation": "of"}.get(draft.kind)
        return named is None or draft.content.get(named) not in self._told

    def _over(self) -> None:
        """The answer is on record, so what was done for it is too. Nothing may be raised any more."""
        with suppress(HoldfastError):  # whoever holds the run, or comes next, meets the answer, and ends it
            if (run := self._begun()) is not None:
                end(run, self.question)

    def _usage(self, usage: Usage, reply: Reply) -> Draft:
        report = self.context.report
        more = {name: value for name, value in msgspec.to_builtins(usage).items() if value} | self._marks
        if self._stopped:
            more["stop"] = self._stopped
        if self.context.hits:
            more["recalled"] = [hit.id for hit in self.context.hits]
        return event(
            USAGE, question=self.question.number, model=reply.model, context=report.tokens, kept=report.kept, **more
        )

    def _fail(self, error: BaseException | None, said: str = "") -> None:
        """Leave the question open, with the reason where one can be told; ``resume`` takes it up again."""
        partial = said or (error.facts.get("partial", "") if isinstance(error, ModelFailed) else "")
        why = "it was left without a reply" if error is None else f"{type(error).__name__}: {error}".strip(": ")[:_LONG]
        more = {"partial": partial[:_LONG]} if partial else {}
        with suppress(HoldfastError):  # the store may be what failed; that there is no answer says enough
            if not self._elsewhere(error):
                self._note_open(event(UNANSWERED, question=self.question.number, why=why, **more))
        if self._run is not None:
            with suppress(HoldfastError):
                self._run.release("the turn was not answered")
            self._run = None

    def _note_open(self, remark: Draft) -> None:
        """Put on record that there is no answer, unless there is one by the very moment of that."""
        while True:
            length = self._thread.count()
            if recorded(self._thread, self.question) is not None:
                return
            with suppress(Conflict):  # something was said meanwhile: it may be the answer
                self._thread.append(remark, expect=length)
                return

    def _elsewhere(self, error: BaseException | None) -> bool:
        """Whether somebody else is answering this question: then it is not for this exchange to say that nobody did."""
        run = error.facts.get("run") if isinstance(error, RunHeld | Fenced) else None
        return isinstance(run, str) and run.startswith(run_name(self.question))

    def _refuse_answered(self) -> None:
        if self.answer is not None:
            raise Invalid("this exchange is answered; begin another with session.turn(…)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.answer is None:
            self._fail(error)


def recorded(thread: Thread, question: Entry) -> Answer | None:
    """The answer of a question, if it is on record."""
    try:
        first = thread.entry(key=answer_key(question))
    except NotFound:
        return None
    found: list[Entry] = []
    for entry in thread.log(after=first.number - 1, limit=_ENTRIES):
        found.append(entry)
        if is_event(entry, USAGE):
            break
    said = [entry for entry in found if entry.kind == "message"]
    text = spoken(said[-1].kind, said[-1].content) if said else ""
    spent = {name: found[-1].content[name] for name in Usage.__struct_fields__ if name in found[-1].content}
    return Answer(text, question, tuple(found), Usage(**{"requests": 0, **spent}), repeated=True)
