"""A support agent over days: it remembers the customer in every thread, and a crash makes no second refund.

    python examples/support_agent.py

plays a week of one customer in seconds, each day in a process of its own. On Monday she chats, on Wednesday a
colleague answers her, a week later she sends a mail, and the agent is killed (SIGKILL) right after it paid her back.
The next process finds the question unanswered, asks the bank, and answers. Run it again: nothing happens twice. The
language model is played by a function; to have a real one, and to look at what is left behind:

    python examples/support_agent.py --folder /tmp/shop2 --model anthropic:claude-haiku-4-5
    holdfast --db /tmp/holdfast-shop/agent.db log mail
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import holdfast
from holdfast.testing import ManualClock  # so that a week takes seconds; leave it out in a real program

FOLDER = Path(tempfile.gettempdir(), "holdfast-shop")

BROKEN = "Hello, the kettle of my order K-1042 leaks. It was 42 euros. I live in Porto."
MOVED = "I have moved to Braga, please send the new kettle there. And please always confirm refunds by mail."
MONEY_BACK = "The new kettle leaks as well. I would like my money back."
HOW = "You answer for a shop of kitchenware. Be short. Refund what is broken, once; say what you did."


def stand_in(messages: list[dict[str, Any]], tools: list[Any]) -> str | holdfast.types.Reply:
    """Plays the language model. It knows nothing but what is in the messages, as a real one would."""
    page = "\n".join(str(message["content"]) for message in messages)
    if "one JSON object" in page:
        return "{}"  # asked for a handoff at the end of a session; it has nothing to add
    if messages[-1]["role"] == "tool":
        to, by_mail = re.findall(r"ana lives in (\w+)", page)[-1], "always confirm refunds by mail" in page
        return f"{messages[-1]['content']}.{f' A letter to {to} confirms it.' if by_mail else ''}"
    if MONEY_BACK in page:
        order, euros = re.findall(r"order (\S+) leaks. It was (\d+) euros", page)[-1]
        return holdfast.types.Reply(
            calls=(holdfast.types.ToolCall("1", "refund", {"order": order, "euros": int(euros)}),)
        )
    return "I am sorry. A new one is on its way."


def refunding(bank: Path, *, dies: bool) -> holdfast.Step:
    """The agent's tool: a model is told its name, its docstring and its types. The bank is a file, and a careless one:
    it pays again whenever it is asked again. But it can be asked what it paid."""

    def find_refund(order: str, euros: int) -> str | None:
        say("  (asking the bank whether it has paid that already)")
        paid = holdfast.current_step().key in bank.read_text(encoding="utf-8")
        return f"{euros} EUR for {order} were paid back" if paid else None

    @holdfast.step(effect="once", probe=find_refund)
    def refund(order: str, euros: int) -> str:
        """Pay the price of an order back to the customer."""
        with bank.open("a", encoding="utf-8") as file:
            file.write(f"{euros} EUR for {order}, reference {holdfast.current_step().key}\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)  # paid, and nobody was told
        return f"{euros} EUR for {order} were paid back"

    return refund


def agent(store: holdfast.Store, thread: str, given: argparse.Namespace, *, dies: bool = False) -> holdfast.Session:
    """A session of the agent in one of Ana's threads. What she says is learned by rules, or by the real model."""
    ways: Any = {"model": given.model} if given.model else {"model": stand_in, "learn": "rules"}
    tool = refunding(given.folder / "bank.txt", dies=dies)
    return store.session(store.thread(thread, user="ana", agent="desk"), tools=[tool], instructions=HOW, **ways)


def monday(store: holdfast.Store, given: argparse.Namespace) -> None:
    with agent(store, "chat", given) as session:
        tell(session.turn(BROKEN, key="chat-1"))  # with a key, a message that comes twice is answered once


def wednesday(store: holdfast.Store, given: argparse.Namespace) -> None:
    """A colleague answers. Without a model a turn comes in halves, also for a model that you call yourself."""
    session = store.session(store.thread("chat", user="ana", agent="desk"))
    with session.turn(MOVED, key="chat-2") as turn:
        say(f"  (Bo is shown {turn.context.report.tokens} tokens: what is known, and what was said)")
        if turn.answer is None:  # a repetition has its answer already
            turn.reply("Noted: Braga, and refunds are confirmed by mail. Bo")
    tell(turn.answer)


def next_monday(store: holdfast.Store, given: argparse.Namespace) -> None:
    """Another thread, and a process that does not live to answer."""
    with agent(store, "mail", given, dies=True) as session:
        tell(session.turn(MONEY_BACK, key="mail-1"))


def an_hour_later(store: holdfast.Store, given: argparse.Namespace) -> None:
    with agent(store, "mail", given) as session:
        opening = session.start()
        if opening.unanswered is not None:
            say(f"  not answered yet: {opening.unanswered.content['content']}")
            for tool, result in opening.done:
                say(f"  done for it: {tool}: {result}")
            tell(answer := session.resume())
            report = answer.context.report
            sections = ", ".join(f"{section.name} {section.tokens}" for section in report.sections)
            say(f"  (its context: {report.tokens} of {report.budget:,} tokens: {sections})")
            say(f"  (recalled for it: {', '.join(hit.id for hit in answer.context.hits)})")
    memory = store.memory(user="ana")
    homes = [f"{version.memory.text} (since {version.since:%d %B})" for version in memory.history("home")]
    say(f"what became of a fact: {', then '.join(homes)}")
    say(f"always at hand: {', '.join(how.text for how in memory.procedures())}")
    payments = (given.folder / "bank.txt").read_text(encoding="utf-8").splitlines()
    say(f"the bank paid {len(payments)} time(s)")


def tell(answer: holdfast.types.Answer) -> None:
    say(f"  ana:  {answer.question.content['content']}\n  desk: {answer.text}")
    for memory in answer.learned:
        say(f"  (learned: {memory.text})")


def say(text: str) -> None:
    print(text, flush=True)


DAYS = {
    "monday": (datetime(2026, 3, 2, 9, tzinfo=UTC), monday),
    "wednesday": (datetime(2026, 3, 4, 9, tzinfo=UTC), wednesday),
    "next-monday": (datetime(2026, 3, 9, 9, tzinfo=UTC), next_monday),
    "an-hour-later": (datetime(2026, 3, 9, 10, tzinfo=UTC), an_hour_later),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="A week of a support agent.")
    parser.add_argument("day", nargs="?", choices=[*DAYS], help="one day only; without it, all of them")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the store and the bank's file are; default: %(default)s"
    )
    parser.add_argument("--model", help="vendor:name of a real model")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    (given.folder / "bank.txt").touch()
    if given.day is not None:
        moment, play = DAYS[given.day]
        with holdfast.open(given.folder / "agent.db", clock=ManualClock(moment)) as store:
            return play(store, given)
    for day in DAYS:
        say(f"{day}:")
        ended = subprocess.run([sys.executable, __file__, day, *sys.argv[1:]], check=False)
        if ended.returncode == -signal.SIGKILL:
            say("  (the process was killed)")
        elif ended.returncode:
            sys.exit(ended.returncode)


if __name__ == "__main__":
    main()
