"""What can be typed in a chat besides questions: a slash and a word, to look behind the conversation.

Deliberately absent: how it looks (``chat_view``), and anything that only a chat could do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.doors import plain
from holdfast.doors.cli import chat_view, state
from holdfast.doors.cli.desk import report
from holdfast.doors.cli.render import Screen
from holdfast.errors import HoldfastError, Invalid
from holdfast.handoff import HandoffDocument

if TYPE_CHECKING:
    from holdfast.doors.cli.chat import Chat

HELP = {
    "/state": "the state of this conversation, and what in it is stale",
    "/memory": "facts and recent memories; /memory WORDS searches",
    "/context": "what the last context contained, and what was left out",
    "/why": "what the last answer was based on",
    "/handoff": "the progress document; /handoff write writes it and starts afresh",
    "/forget": "/forget ID forgets a memory",
    "/resume": "answer the open question",
    "/help": "this list",
    "/quit": "write the handoff and end, as Ctrl-D does",
}
_HITS = 10
_LISTED = 20


class Commands:
    """The commands of one chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    def do(self, line: str) -> bool:
        """Do what a line says; False when the chat is to end."""
        name, _, rest = line.partition(" ")
        if name in ("/quit", "/exit", "/q"):
            return False
        command = getattr(self, f"_{name[1:]}", None) if name in HELP else None
        try:
            if command is None:
                raise Invalid(f"there is no {name}; /help lists the commands")
            command(rest.strip())
        except HoldfastError as error:
            facts = plain.error(error)
            self._chat.tell("refused", {"error": facts}, lambda _: report(facts, as_json=False))
        except KeyboardInterrupt:
            self._chat.desk.note("Interrupted.")
        return True

    def _help(self, _: str) -> None:
        def picture(screen: Screen) -> None:
            for name, what in HELP.items():
                screen.hanging([(name, "name")], [max(map(len, HELP))], what, indent=chat_view.INDENT)

        self._chat.tell("help", {"commands": HELP}, picture)

    def _state(self, _: str) -> None:
        chat = self._chat
        seen = state.load(chat.thread)
        if seen.stored:
            chat.tell("state", {"state": plain.state(*seen)}, lambda screen: state.show_state(chat.desk, screen, seen))
        else:
            chat.tell("state", {"state": None}, lambda screen: screen.line("No state was saved yet."))

    def _memory(self, query: str) -> None:
        chat = self._chat
        if not query:
            facts = chat.memory.facts()
            others = [memory for memory in chat.memory.memories(limit=_LISTED) if memory.key is None]
            data = {"facts": plain.plain(facts), "others": plain.plain(others)}
            chat.tell("memory", data, lambda screen: chat_view.show_memories(chat.desk, screen, facts, others))
            return
        found = chat.memory.recall(query, _HITS)

        def picture(screen: Screen) -> None:
            if not found.relevant:
                screen.line(("Nothing relevant was found.", "warn"), " The closest:" if found.hits else "")
            if found.hits:
                chat_view.show_hits(chat.desk, screen, found.hits)

        hits = [{"id": hit.id, "score": round(hit.score, 4), "text": hit.text} for hit in found]
        chat.tell("recalled", {"query": query, "relevant": found.relevant, "hits": hits}, picture)

    def _context(self, _: str) -> None:
        answer = self._chat.answer
        if answer is None or answer.context is None:
            self._nothing("context")
            return
        context = answer.context
        data = plain.plain(context.report)
        self._chat.tell("context", data, lambda screen: chat_view.show_context(screen, context))

    def _why(self, _: str) -> None:
        chat, answer = self._chat, self._chat.answer
        if answer is None:
            self._nothing("why")
            return
        context = answer.context
        data = {
            "question": answer.question.number, "model": chat.answers.model.name, "usage": plain.plain(answer.usage),
            "recalled": [] if context is None else [
                {"id": hit.id, "score": round(hit.score, 4), "text": hit.text} for hit in context.hits
            ],
            "known": {} if context is None else {name: context.section(name) for name in chat_view.KNOWN},
            "tools": [entry.content for entry in answer.entries if entry.kind in ("tool_call", "observation")],
            "quoted": list(chat.quoted),
        }  # fmt: skip
        chat.tell("why", data, lambda s: chat_view.show_why(chat.desk, s, answer, chat.answers.model.name, chat.quoted))

    def _nothing(self, event: str) -> None:
        self._chat.tell(event, {"answer": None}, lambda screen: screen.line("There is no answer yet."))

    def _handoff(self, rest: str) -> None:
        chat = self._chat
        if rest not in ("", "write"):
            raise Invalid("type /handoff to see it, or /handoff write to write it and start afresh")
        if not rest:
            self._show_handoff()
            return
        revision = chat.session.hand_off()
        done = f"Handoff written (revision {revision}). The next turn starts afresh from it."
        chat.tell("handed_off", {"handoff": revision}, lambda screen: screen.line(done))

    def _show_handoff(self) -> None:
        page = self._chat.thread.handoff
        document, text = page.read(), page.markdown()

        def picture(screen: Screen) -> None:
            if msgspec.structs.replace(document, revision=0) == HandoffDocument():
                screen.line("There is no handoff yet.")
            else:
                screen.markdown(text)

        self._chat.tell("handoff", {"handoff": plain.plain(document), "markdown": text}, picture)

    def _forget(self, id: str) -> None:
        if not id:
            raise Invalid("name a memory: /forget ID, as /memory and /why print it")
        gone = self._chat.memory.forget(id)[0]

        def picture(screen: Screen) -> None:
            screen.line("Forgotten: ", (gone.id, "name"), f"  {' '.join(gone.text.split())}")

        self._chat.tell("forgotten", {"memory": plain.plain(gone)}, picture)

    def _resume(self, _: str) -> None:
        self._chat.resume()
