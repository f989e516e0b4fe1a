"""Answering a question with a model: ask it, carry out the tools it calls, show it the results, until it answers.

Each tool is a durable step of the exchange's run, and so is each reply that calls tools; after a crash they return what
is recorded, and the model continues from there. A model that was interrupted may ask once more for what it asked for
last: its first reply after a resume does not repeat a ``once`` call of the reply before; it is told the result again.
Mistakes of the model and errors of tools are shown to the model.
Deliberately absent: the store, and what happens after the answer.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.context.budget import PER_CALL, PER_MESSAGE
from holdfast.context.masking import least, mask
from holdfast.context.sections import Count
from holdfast.context.window import clip, clip_arguments
from holdfast.engine.codec import encode
from holdfast.errors import HoldfastError, Invalid, ModelFailed, StepFailed, StepTimeout, StepUnknown
from holdfast.providers.models.model import Model, Reply, ToolCall, Usage
from holdfast.records import TRUST, message
from holdfast.sessions.tools import Toolbox, shown
from holdfast.sessions.turn import Exchange
from holdfast.steps import lifecycle, resolve
from holdfast.steps.declare import Step, declare, fingerprint
from holdfast.steps.step_context import Attempt, describe_failure
from holdfast.steps.timeline import StepInfo

if TYPE_CHECKING:
    from holdfast.steps.run import Run

ROUNDS = 16
_REPLY = re.compile(r"model-\d+")
_ID = re.compile(r"[^A-Za-z0-9_-]+")
_SHARE = 4
_DONE_ONCE = ("once", "completed")
_AGAIN = (
    "\n(This was done before an interruption, and was not done again. Call it once more if it is to be done twice.)"
)


_HARDLY = 16
_LEFT_OUT = "(left out for lack of room"


class ModelLoop:
    """One question, put to a model until it is answered. ``usage`` is the cost so far."""

    def __init__(
        self,
        exchange: Exchange,
        model: Model,
        toolbox: Toolbox,
        counting: tuple[Count, int],
        timeout_s: float | None,
        rounds: int,
    ) -> None:
        self._exchange, self._model, self._toolbox = exchange, model, toolbox
        self._count, self._limit = counting
        self._timeout_s, self._rounds = timeout_s, rounds
        self._messages = exchange.messages
        self._given = len(self._messages)
        self._room = max(200, self._limit // _SHARE)
        self.usage = Usage(requests=0)
        self.results: dict[str, str] = {}
        self.reply = Reply()
        self.said = ""
        self._left_out = 0

    def pieces(self) -> Iterator[str]:
        """Continue until there is an answer, yielding its text as it arrives. ``reply`` is then the answer."""
        recorded: Reply | None = None
        for round in range(self._rounds + 1):
            resumed, recorded = recorded is not None, self._recorded(round)
            last = round == self._rounds
            reply = recorded or (yield from self._asked(last))
            self.usage += reply.usage
            if not reply.calls or last:
                if not reply.text.strip():
                    used = f" after {round} rounds of tools" if round else ""
                    raise ModelFailed(
                        f"{self._model.name} gave an empty answer{used}",
                        model=self._model.name,
                        reason="empty",
                        partial="",
                    )
                self.reply = msgspec.structs.replace(reply, calls=(), usage=self.usage)
                return
            if recorded is None:
                self._record(round, reply, self._repeated(round, reply) if resumed else {})
            self._carry_out(round, reply)

    # The model

    def _asked(self, last: bool) -> Generator[str, None, Reply]:
        """Ask the model. After its last allowed round, it gets no more tools."""
        tools = () if last else self._toolbox.definitions()
        whole: Reply | None = None
        self.said = ""
        try:
            for piece in self._model.stream(self._messages, tools=tools, timeout_s=self._timeout_s):
                if isinstance(piece, Reply):
                    whole = self._checked(piece)
                else:
                    self.said += piece
                    yield piece
        except HoldfastError:
            raise
        except Exception as error:  # the caller's own model may raise anything
            raise ModelFailed(
                f"{self._model.name} failed: {type(error).__name__}: {error}",
                model=self._model.name, reason="raised", partial=self.said,
            ) from error  # fmt: skip
        if whole is None:
            raise ModelFailed(
                f"{self._model.name} broke off before its answer was complete",
                model=self._model.name, reason="incomplete", partial=self.said,
            )  # fmt: skip
        return whole

    def _checked(self, reply: Reply) -> Reply:
        """A reply that can be recorded and read again, whatever the caller's own model returned."""
        try:
            plain = msgspec.to_builtins(reply)
            plain["calls"] = [_call_read(call) for call in plain.get("calls", ())]
            encode(plain, "a reply")
            return msgspec.convert(plain, Reply)
        except (TypeError, ValueError, Invalid) as error:
            raise ModelFailed(
                f"{self._model.name} gave an invalid reply: {error}",
                model=self._model.name, reason="unreadable", partial=self.said,
            ) from error  # fmt: skip

    def _recorded(self, round: int) -> Reply | None:
        """The reply of a round that was recorded before a crash."""
        step = self._step(_reply_name(round))
        if step is None or step.standing != "completed":
            return None
        return msgspec.convert(step.result, Reply)

    def _record(self, round: int, reply: Reply, again: dict[str, str]) -> None:
        """Record a reply that calls tools before any of them is used, and which calls are answered by earlier steps."""
        plain = msgspec.to_builtins(reply) | ({"again": again} if again else {})
        self._exchange._opened().step(_reply_name(round), lambda: plain, effect="pure", log=False)

    def _step(self, name: str) -> StepInfo | None:
        run = self._exchange._begun()
        return next((step for step in run.steps if step.name == name), None) if run is not None else None

    def _named(self, round: int, calls: Iterable[ToolCall]) -> Iterator[tuple[ToolCall, str, bool]]:
        """The calls of a recorded reply, each with the step that does it or did it, and whether it did it before."""
        reply = self._step(_reply_name(round))
        again = reply.result.get("again", {}) if reply is not None else {}
        for number, call in enumerate(calls):
            yield call, again.get(str(number)) or _call_name(call, round, number), str(number) in again

    def _repeated(self, round: int, reply: Reply) -> dict[str, str]:
        """Which calls of a reply are those of the one before it that were done and may be done once, each one once."""
        before = self._recorded(round - 1) or Reply()
        named = [(call.name, call.arguments, name) for call, name, _ in self._named(round - 1, before.calls)]
        done = [one for one in named if (step := self._step(one[2])) and (step.effect, step.standing) == _DONE_ONCE]
        found: dict[str, str] = {}
        for number, call in enumerate(reply.calls):
            same = next((one for one in done if one[:2] == (call.name, call.arguments)), None)
            if same is not None:
                done.remove(same)
                found[str(number)] = same[2]
        return found

    # The tools

    def _carry_out(self, round: int, reply: Reply) -> None:
        calls = _distinct(reply.calls, round)
        self._messages.append(msgspec.structs.replace(reply, calls=calls).message())
        if reply.text:
            self._exchange.append(message("assistant", reply.text))
        for call, name, again in self._named(round, calls):
            result = self._used(name, call) + _AGAIN * again
            tool = self._toolbox.named(call.name)
            trust = TRUST[-1] if tool is None else tool.trust_of(result)  # without a tool it is our own error
            self._exchange._note(call.name or "tool", call.arguments, result, call.id, trust)
            self.results[call.id] = result
            content = self._fitting(call.id, result)
            self._messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        self._make_room()

    def _used(self, name: str, call: ToolCall) -> str:
        """Carry out a call, or tell the model why it cannot be done. Completed calls are not checked again."""
        step = self._step(name)
        if step is not None and step.standing == "completed":
            return _known(step)
        try:
            tool = self._toolbox.find(call.name)
            arguments = tool.arguments(call)
        except Invalid as error:
            if step is not None and step.standing == "intended" and step.effect == "once":
                raise StepUnknown(
                    f"step {name!r} was started, its end is not recorded, and this session cannot probe it: {error}",
                    step=name, thread=self._exchange.question.thread, key=step.key,
                ) from error  # fmt: skip
            return f"error: {error}"
        try:
            return shown(use(self._exchange._opened(), name, tool.trusting(self._exchange.trust), arguments))
        except (StepFailed, StepTimeout) as error:
            return f"error: {_plain(error)}"

    def _make_room(self) -> None:
        """Shorten the oldest calls and results first, as long as the request is over its limit: to a stand-in, then to
        hardly more than that they were made. A model that no longer sees a call may make it again, so only what does
        not fit even so is left out."""
        used = self._messages[self._given :]
        defined = self._toolbox.tokens(self._count)
        over = self._exchange.context.tokens + defined + sum(map(self._cost, used)) - self._limit
        newest = max(at for at, one in enumerate(used) if one.get("tool_calls"))
        some = self._room // _SHARE
        for part, most in ((used[:newest], some), (used[:newest], _HARDLY), (used[newest:], some)):
            for one in part:
                if over <= 0:
                    return
                before = self._cost(one)
                self._shorten(one, most)
                over -= before - self._cost(one)
        self._leave_out(over)

    def _shorten(self, one: dict[str, Any], most: int) -> None:
        if one["role"] == "tool" and one["tool_call_id"] in self.results:
            id, old = one["tool_call_id"], _content(one)
            limit = max(most, least(id, self._count))
            stand_in = mask(self.results[id], fetch=id, count=self._count, limit=limit).text
            one["content"] = stand_in if len(stand_in) < len(old) else old
        for call in one.get("tool_calls", ()):
            given = call["function"]
            given["arguments"] = clip_arguments(given["arguments"], most, self._count)

    def _leave_out(self, over: int) -> None:
        """Leave out the oldest rounds, a call with its results, but never the newest; say so where the rest begins."""
        begins = [at for at in range(self._given, len(self._messages)) if self._messages[at].get("tool_calls")]
        cut = self._given
        for begin, end in pairwise(begins):
            if over <= 0:
                break
            over -= sum(map(self._cost, self._messages[begin:end]))
            self._left_out += len(self._messages[begin]["tool_calls"])
            cut = end
        del self._messages[self._given : cut]
        if cut != self._given:
            first = next(one for one in self._messages[self._given :] if one["role"] == "tool")
            said = _content(first)
            said = said.partition("\n")[2] if said.startswith(_LEFT_OUT) else said
            first["content"] = f"{_LEFT_OUT}: {self._left_out} earlier calls and their results)\n{said}"

    def _cost(self, one: dict[str, Any]) -> int:
        called = (call["function"] for call in one.get("tool_calls", ()))
        calls = sum(PER_CALL + self._count(each["name"]) + self._count(each["arguments"]) for each in called)
        return PER_MESSAGE + self._count(_content(one)) + calls

    def _fitting(self, id: str, result: str) -> str:
        """What the model sees of a result: all of it, unless it would push out everything else."""
        if len(result) <= self._room or self._count(result) <= self._room:
            return result
        return f"{clip(result, self._room, self._count)}\n(the whole result can be looked up as {id})"


def _call_read(call: Any) -> Any:
    """A call whose arguments may be JSON text, as some clients give them."""
    if not isinstance(call, dict) or not isinstance(call.get("arguments"), str):
        return call
    try:
        return {**call, "arguments": msgspec.json.decode(call["arguments"], type=dict)}
    except msgspec.DecodeError as error:
        return {**call, "arguments": {"raw": call["arguments"]}, "invalid": str(error)}


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def use(run: Run, name: str, tool: Step, arguments: dict[str, Any]) -> Any:
    """Carry out a tool as a step. Not with ``run.step``, because an argument may have the name of an option."""
    return run.work.runs.drive(run.work.step(name, tool, (), arguments, {"log": False}))


def _plain(error: HoldfastError) -> str:
    described = error.facts.get("error")
    return describe_failure(described) if isinstance(described, dict) else str(error)


def _distinct(calls: tuple[ToolCall, ...], round: int) -> tuple[ToolCall, ...]:
    """The calls with unique ids: some models repeat the same id, or give none."""
    return tuple(
        msgspec.structs.replace(call, id=f"{_ID.sub('_', call.id)[:28] or 'call'}-{round}-{number}")
        for number, call in enumerate(calls)
    )


def settle_known(run: Run, toolbox: Toolbox) -> None:
    """Probe the tools of a turn that is given up, if they have a probe, and record the answers."""
    for call, step in _calls(run.steps):
        if step is None or step.standing != "intended":
            continue
        with suppress(Invalid):  # a tool that this session does not have, or that changed
            tool = toolbox.find(call.name)
            arguments = tool.arguments(call)
            spec = declare(step.name, tool.step, {"log": False})
            attempt = Attempt(spec, tool.step.fn, (), arguments, fingerprint(step.name, (), arguments), step.key)
            answer = run.work.runs.drive(resolve.ask(run.work, attempt, step.attempts))
            if answer.what != "unknown":
                happened = answer.what == "happened"
                run.work.runs.drive(lifecycle.settle(run.work, step.name, happened, answer.result, "the probe found"))


def _calls(recorded: Iterable[StepInfo]) -> Iterator[tuple[ToolCall, StepInfo | None]]:
    """Every call that a model made in a turn, with the step that it became."""
    steps = {step.name: step for step in recorded}
    for round in count():
        asked = steps.get(_reply_name(round))
        if asked is None or asked.standing != "completed":
            return
        for number, call in enumerate(_distinct(msgspec.convert(asked.result, Reply).calls, round)):
            yield call, steps.get(_call_name(call, round, number))


def steps_taken(recorded: Iterable[StepInfo]) -> Iterator[tuple[ToolCall, str]]:
    """What was done for an answer that broke off: each tool called, and what is known of its result."""
    steps = list(recorded)
    called = [(call, step) for call, step in _calls(steps) if step is not None]
    yield from ((call, _known(step)) for call, step in called)
    told = {step.name for _, step in called}
    for step in steps:
        if step.name not in told and not _REPLY.fullmatch(step.name):  # by hand, in halves
            yield ToolCall(step.name, step.name, {}), _known(step)


def _known(step: StepInfo) -> str:
    if step.standing == "completed":
        return shown(step.result)
    if step.standing == "failed":
        return f"error: {describe_failure(step.error or {})}"
    if step.standing == "intended":
        return "it is unknown whether this happened: it was started, and its end is not recorded"
    return "it did not happen"


def _reply_name(round: int) -> str:
    return f"model-{round}"


def _call_name(call: ToolCall, round: int, number: int) -> str:
    return f"{call.name or 'tool'}-{round}.{number}"
