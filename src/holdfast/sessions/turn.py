"""One turn: a question that is recorded before anything is done about it, and its answer, committed once.

The question goes into the log first, so after a crash the next process knows that it was asked. The work to answer it
is kept in a durable run named after the question, which starts with the first tool, so it is not repeated. The answer,
the tools it used and its cost are one commit, under a key made from the question: repeating it changes nothing. An
answer names its question in the usage entry committed with it. A question given up for another is marked as left; any
other is open, unless someone who does not use sessions answered it with an assistant message.

In order below: the fate of a question, what a user may give as one, what a client may give as an answer, and the
exchange itself. Deliberately absent: where an answer comes from (``model_loop``, or the caller).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from holdfast.context.report import Context
from holdfast.context.talk import Message, conversation, outside
from holdfast.engine.codec import encode
from holdfast.errors import (
    Conflict,
    Fenced,
    HoldfastError,
    Invalid,
    KeyReused,
    ModelFailed,
    NotFound,
    RunEnded,
    RunHeld,
    StepError,
    quoted,
)
from holdfast.ledger import typed
from holdfast.ledger.log import plain
from holdfast.ledger.speech import ASSISTANTS, least, marked, spoken, voices_in
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.records import TRUST, Draft, Entry, Memory, event, message, observation, tool_call
from holdfast.sessions.log_events import UNANSWERED, USAGE, is_event
from holdfast.sessions.tools import shown
from holdfast.steps import lifecycle
from holdfast.steps.declare import OPTIONS
from holdfast.steps.work import RunWrite

if TYPE_CHECKING:
    from holdfast.providers.models.model import ToolCall
    from holdfast.steps.flow import Flow
    from holdfast.steps.run import Run
    from holdfast.thread import Thread


HANDLER = "holdfast.turn"
_GIVEN_UP = "interrupted: another question was asked"


def unanswered(entries: Sequence[Entry]) -> Entry | None:
    """The newest open question of a user."""
    over: set[Any] = set()
    for entry in reversed(entries):
        if is_event(entry, USAGE) or (is_event(entry, UNANSWERED) and entry.content.get("left") is True):
            over.add(entry.content.get("question"))
        elif role_of(entry) in ASSISTANTS and not _is_ours(entry):
            return None
        elif role_of(entry) == "user" and entry.number not in over:
            return entry
    return None


def is_left(entries: Sequence[Entry], number: int) -> bool:
    """Whether a question was given up for another."""
    marks = (entry.content for entry in entries if is_event(entry, UNANSWERED))
    return any(mark.get("question") == number and mark.get("left") is True for mark in marks)


def role_of(entry: Entry) -> str:
    """Whose message an entry is: a tool's, where a user's message holds nothing but its result."""
    return voices_in(entry.kind, entry.content)[0].role if entry.kind == "message" else ""


def _is_ours(entry: Entry) -> bool:
    """Whether an entry belongs to a session's answer, which names its question: such entries carry its key."""
    return entry.key is not None and entry.key.startswith("answer:")


def partial_of(entries: Sequence[Entry], question: Entry) -> str:
    """The part of an answer that arrived before it broke off."""
    for entry in reversed(entries):
        if is_event(entry, UNANSWERED) and entry.content.get("question") == question.number:
            return str(entry.content.get("partial", ""))
    return ""


def answer_key(question: Entry) -> str:
    return f"answer:{question.number}:{question.digest.hex()[:8]}"


# Work for a question


def run_name(question: Entry) -> str:
    """It contains the digest, so that after a rewind another question does not get the same run."""
    return f"turn-{question.number}-{question.digest.hex()[:8]}"


def run_of(thread: Thread, question: Entry) -> tuple[str, bool]:
    """The name of a question's run, and whether it is already under way.

    An ended run is not continued; new work gets another run. A run ends only after its question was answered, so a
    caller who looks for the answer after this call finds it.
    """
    base = run_name(question)
    for attempt in count(1):
        name = base if attempt == 1 else f"{base}-{attempt}"
        try:
            info = thread.runbook.info(thread.id, name)
        except NotFound:
            return name, False
        if info.status not in ("done", "cancelled"):
            return name, True
    raise AssertionError("count does not end")


def has_begun(thread: Thread, name: str) -> bool:
    """Whether there is a run of this name, ended or not."""
    try:
        thread.runbook.record(thread.id, name)
    except NotFound:
        return False
    return True


def left(question: Entry, taken: Iterable[tuple[ToolCall, str]]) -> list[Draft]:
    """The entries for a question given up for another: what was done for it, and that it is left."""
    drafts: list[Draft] = []
    told: list[str] = []
    for call, result in taken:
        drafts += [tool_call(call.name, call.arguments, id=call.id), observation(result, of=call.id)]
        told.append(call.id)
    more: dict[str, Any] = {"told": told} if told else {}
    return [*drafts, event(UNANSWERED, question=question.number, why=_GIVEN_UP, left=True, **more)]


def told_of(entries: Iterable[Entry], question: Entry) -> frozenset[str]:
    """The calls recorded when a question was left: if it is answered after all, they need no second record."""
    marks = (entry.content for entry in entries if is_event(entry, UNANSWERED))
    told = (mark.get("told", ()) for mark in marks if mark.get("question") == question.number)
    return frozenset(id for ids in told if isinstance(ids, list) for id in ids if isinstance(id, str))


def end(run: Run, question: Entry) -> None:
    """End the run: the work for the question is recorded with its answer."""
    _end(run, lifecycle.finish(run.work, {"question": question.number}))


def set_aside(run: Run) -> None:
    """Set aside the run of a question that was left. If it is asked again by its key, the work is not repeated."""
    _end(run, lifecycle.fail(run.work, StepError(_GIVEN_UP), settled=True))


def _end(run: Run, flow: Flow[Any]) -> None:
    """End a run; one with an unsettled step stays visible."""
    try:
        run.work.runs.drive(flow)
    except RunEnded:
        return
    except StepError:
        run.release("the turn is over, but one of its steps is not settled")


def asked_of(input: Any) -> Message:
    """The input as a message: a text, a list of parts, or a whole message of a user."""
    if isinstance(input, Draft):
        input = input.content
    if isinstance(input, dict) and "content" not in input:
        raise Invalid("an input message needs content; this dict has none")
    mark = None
    if isinstance(input, dict):
        if input.get("role") not in (None, "user"):
            raise Invalid(f"the input is a user's message, not one of role {input['role']!r}")
        name, mark = input.get("name"), marked(input)
        input = input.get("content")
        if isinstance(name, str) and isinstance(input, str) and input.strip() and mark is None:
            input = f"{name}: {input}"  # as later turns will show it
    if isinstance(input, str):
        if not input.strip():
            raise Invalid("the input is empty: give a text, parts or a message")
        return Message("user", _as_told(sendable(input), mark))
    if not isinstance(input, list) or not all(isinstance(part, str | dict) for part in input):
        raise Invalid(f"the input is a text, a list of parts or a message, not {type(input).__name__}")
    parts = [_part(part, mark) for part in input]
    parts = [part for part in parts if not _is_text(part) or sendable(part["text"]).strip()]
    if not parts:
        raise Invalid("the input is empty: give a text, parts or a message")
    if any(part.get("type") in ("tool_use", "tool_result", "tool_call") for part in parts):
        raise Invalid("tool calls and their results are not input: append them, or use turn.step")
    text = "\n".join(part["text"] for part in parts if _is_text(part))
    return Message("user", text, parts=() if all(map(_is_text, parts)) else tuple(parts))


def _as_told(text: str, mark: tuple[str, str] | None) -> str:
    """A text of the input, which says so where it is not the user's own."""
    return outside(text, mark[1]) if mark is not None and mark[0] == TRUST[0] else text


def _part(part: str | dict[str, Any], mark: tuple[str, str] | None) -> dict[str, Any]:
    """A part of the input; text in the one form that all models take."""
    if isinstance(part, str) or isinstance(part.get("text"), str):
        text, own = (part, None) if isinstance(part, str) else (part["text"], marked(part))
        return {"type": "text", "text": _as_told(text, own or mark) if text.strip() else text}
    if part.get("type") == "text":
        raise Invalid("a part of the input has type text, but no text")
    if part.get("type") == "image_url" and not part.get("image_url"):
        raise Invalid("a part of the input is an image without a URL")
    try:
        encode(part, "a part of the input")
    except Invalid as error:
        raise Invalid(f"a part of the input cannot be sent: {error}") from error
    return part


def sendable(text: str, what: str = "the input has") -> str:
    """Check that a text can be sent; a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{what} half a character (a lone surrogate), which no model accepts") from error
    return text


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


_INPUT = ("input_tokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "completion_tokens")
_CACHED = ("cache_read_input_tokens", "cached_tokens")


def reply_of(given: Any) -> Reply:
    """A reply from what the caller gave. It must not call tools, because they are not carried out here."""
    if isinstance(given, Reply):
        return _whole(given)
    if isinstance(given, str):
        given = {"content": given}
    fields = given if isinstance(given, dict | list) else plain(given)
    if isinstance(fields, list):
        fields = {"role": "assistant", "content": fields}
    if not isinstance(fields, dict):
        raise Invalid(f"a reply is a text, a message or a client's response, not {type(given).__name__}")
    said = _message(fields)
    entry = Entry("", 1, "message", {"role": "assistant", **said}, None, 0, b"")
    try:
        messages = [message for stretch in conversation([entry]) for message in stretch.messages]
    except Exception as error:  # an object that is not plain data may raise anything
        raise Invalid(f"this reply cannot be read: {type(error).__name__}") from error
    if said.get("role", "assistant") not in ASSISTANTS:
        raise Invalid(f"a reply is an assistant's message, not one of role {said['role']!r}")
    calls = tuple(ToolCall(call.id, call.name, {}) for message in messages for call in message.calls)
    text = "\n".join(message.text for message in messages if message.text) or str(said.get("refusal") or "")
    return _whole(Reply(text, calls, _usage(fields.get("usage")), str(fields.get("model") or "")))


def _whole(reply: Reply) -> Reply:
    """A reply that is a complete answer."""
    if reply.calls:
        raise Invalid("this reply calls tools: run them with turn.step, ask the model again, and reply with its answer")
    if not reply.text.strip():
        raise Invalid("this reply is empty; leave the block without a reply to keep the question open")
    return reply


def _message(fields: dict[str, Any]) -> dict[str, Any]:
    choices = fields.get("choices")
    if isinstance(choices, list):
        first = choices[0] if choices else None
        if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
            raise Invalid("this client response has no choices, so there is nothing to record")
        message: dict[str, Any] = first["message"]
        return message
    if "content" not in fields and "text" not in fields:
        raise Invalid("a dict as a reply needs content, like a message, or choices, like a client's response")
    return fields


def _usage(fields: Any) -> Usage:
    if not isinstance(fields, dict):
        return Usage()
    details = fields.get("prompt_tokens_details")
    cached = _number(fields, _CACHED) or (_number(details, _CACHED) if isinstance(details, dict) else 0)
    return Usage(_number(fields, _INPUT), _number(fields, _OUTPUT), cached)


def _number(fields: dict[str, Any], names: tuple[str, ...]) -> int:
    return next((value for name in names if type(value := fields.get(name)) is int), 0)


_LONG = 4_000
_ENTRIES = 2_000


class Answer(msgspec.Struct, frozen=True):
    """The outcome of a turn. ``entries`` are what it added to the log after the question.

    ``learned`` are the memories learned from it, and ``learning`` is what asking a model for them took: nothing by
    rules, no part of ``usage``, and with what earlier answers still had to teach. ``repeated`` means that it was
    answered before, ``handed_off`` that the next turn starts afresh, and ``notes`` say what went wrong.
    """

    text: str
    question: Entry
    entries: tuple[Entry, ...]
    usage: Usage
    context: Context | None = None
    learned: tuple[Memory, ...] = ()
    learning: Usage = Usage(requests=0)
    repeated: bool = False
    handed_off: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Exchange:
    """A question being answered. Send ``messages`` to the model, and give its answer to ``reply``.

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
        brought = (said.trust for said in voices_in(question.kind, question.content))
        self._read = least(["stated", context.trust, *brought])

    def __repr__(self) -> str:
        return f"Exchange({self._thread.id!r} #{self.question.number}, {'answered' if self.answer else 'open'})"

    @property
    def trust(self) -> str:
        """How far anything the model concludes is to be trusted: as little as the least it was shown in this turn.

        That is what came with the question, text or not, what the context shows of memory, and what tools returned.
        """
        return self._read

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages to send, in OpenAI's format; for Anthropic use ``context.messages("anthropic")``."""
        found: list[dict[str, Any]] = self.context.messages("openai")
        for call, result in self._done:
            found.append(Reply(calls=(call,)).message())
            found.append({"role": "tool", "tool_call_id": call.id, "content": result})
        return found

    def _take_up(self, done: Iterable[tuple[ToolCall, str]]) -> None:
        """Show and record what was done for this question before a crash."""
        self._done = list(done)
        for call, result in self._done:
            self._note(call.name, call.arguments, result, call.id)

    # Work for the answer

    def _opened(self) -> Run:
        """The durable run of this exchange, started when first needed.

        It was chosen before looking for the answer. If it has ended since, there is an answer by now.
        """
        if self._run is None:
            run = self._thread.run(self._name, handler=HANDLER, input={"question": self.question.number})
            if run.status != "open":
                raise Fenced(
                    f"another process answered question #{self.question.number} first",
                    thread=self._thread.id, run=self._name,
                )  # fmt: skip
            if run.steps:  # done before, and maybe recorded when the question was left
                self._told = told_of(self._thread.log(last=_ENTRIES), self.question)
            self._run, self._worked = run, True
        return self._run

    def _begun(self) -> Run | None:
        """The run of this exchange if it was started, here or before a crash."""
        if self._run is None and has_begun(self._thread, self._name):
            return self._opened()
        return self._run

    def step(self, name: str, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Do something for the answer as a durable step of this turn (see ``Run.step``).

        The call and its result go into the log with the answer, when the turn is committed.
        """
        self._refuse_answered()
        if "log" in options:
            raise Invalid("a step of a turn has no log=: its call and its result are recorded with the answer")
        result = self._opened().step(name, fn, *args, log=False, **options)
        id = f"{name}-{self.question.number}"
        if any(call.name == name for call, _ in self._done) or any(
            draft.content.get("id") == id for draft in self._calls()
        ):
            return result  # recorded already, or with the work from before the crash
        given = {"args": list(args)} if args else {}
        given |= {what: value for what, value in options.items() if what not in OPTIONS}
        self._note(name, typed.to_plain(given), shown(result), id)
        return result

    def _note(self, name: str, arguments: Any, result: str, id: str, trust: str = TRUST[0]) -> None:
        """Record a tool use with the answer, and that its result was read."""
        self._read = least((self._read, trust))
        self._drafts += [tool_call(name, arguments, id=id), observation(result, of=id)]

    def _calls(self) -> list[Draft]:
        return [draft for draft in self._drafts if draft.kind == "tool_call"]

    def append(self, *drafts: Draft) -> None:
        """Add entries to commit with the answer: ``holdfast.note(…)``, ``holdfast.event(…)``, …"""
        self._refuse_answered()
        self._drafts += drafts

    # The answer

    def reply(self, reply: Any, *, usage: Usage | None = None, state: Any = None) -> Answer:
        """Record the answer and end the turn, in one commit. Give a text, a message, or a client's response.

        ``state`` is saved with it. An answered exchange refuses further use.
        """
        self._refuse_answered()
        found = reply_of(reply)
        if usage is not None and not isinstance(usage, Usage):
            raise Invalid(f"usage is a holdfast.types.Usage, not {quoted(usage)}")
        self._stopped = found.stop if found.stop not in ("", "end", "tools") else ""
        spent = usage or found.usage
        more: dict[str, Any] = {"derived": True} if found.derived else {}
        said = (message("assistant", found.text, **more), self._usage(spent, found))
        try:
            if self._worked:
                self._opened()  # even if released since: a late answer counts
            entries = self._commit([*filter(self._is_new, self._drafts), *said], state)
        except (KeyReused, Fenced):  # another process changed it first, and that answer stands
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
        """Write the answer. If this exchange used tools and lost its run, it cannot: the run's new holder answers."""
        turn = self._thread.turn(key=answer_key(self.question)).draft
        turn.begin()
        try:
            turn.append(*drafts)
            if state is not None:
                turn.save(state)
        finally:
            turn.leave()
        pending = turn.pending()
        if self._run is None:
            self._thread.logbook.core.commit(pending)
        else:
            writing = RunWrite(pending.ops, pending.finish)
            self._run.work.runs.drive(self._run.work.record((), turn=writing, time=pending.time))
        return turn.entries

    def _is_new(self, draft: Draft) -> bool:
        """Whether a draft is not for a call already recorded when the question was left."""
        named = {"tool_call": "id", "observation": "of"}.get(draft.kind)
        return named is None or draft.content.get(named) not in self._told

    def _over(self) -> None:
        """The answer and the work for it are recorded. From here on nothing may raise."""
        with suppress(HoldfastError):  # the run's holder, or the next process, finds the answer and ends it
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
        """Leave the question open, with the reason if it can be recorded; ``resume`` continues it."""
        partial = said or (error.facts.get("partial", "") if isinstance(error, ModelFailed) else "")
        why = "left without a reply" if error is None else f"{type(error).__name__}: {error}".strip(": ")[:_LONG]
        more = {"partial": partial[:_LONG]} if partial else {}
        with suppress(HoldfastError):  # the store itself may have failed; the missing answer says enough
            if not self._elsewhere(error):
                self._note_open(event(UNANSWERED, question=self.question.number, why=why, **more))
        if self._run is not None:
            with suppress(HoldfastError):
                self._run.release("the turn was not answered")
            self._run = None

    def _note_open(self, remark: Draft) -> None:
        """Record that there is no answer, unless there is one at that very moment."""
        while True:
            length = self._thread.logbook.head()
            if recorded(self._thread, self.question) is not None:
                return
            with suppress(Conflict):  # the log grew in the meantime, maybe by the answer
                self._thread.append(remark, expect=length)
                return

    def _elsewhere(self, error: BaseException | None) -> bool:
        """Whether someone else is answering this question: then this exchange must not record that nobody did."""
        run = error.facts.get("run") if isinstance(error, RunHeld | Fenced) else None
        return isinstance(run, str) and run.startswith(run_name(self.question))

    def _refuse_answered(self) -> None:
        if self.answer is not None:
            raise Invalid("this exchange is already answered; begin another with session.turn(…)")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.answer is None:
            self._fail(error)


def recorded(thread: Thread, question: Entry) -> Answer | None:
    """The recorded answer to a question, if any."""
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
