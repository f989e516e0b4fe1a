"""A support agent that remembers: what changed, what was wrong, what was true when, and when to say "I do not know".

    python examples/remembering.py

plays three months of one customer in a second, in a folder of its own (``--folder``), and prints what the agent knows
after each day. Run it again and nothing is remembered twice. Then look at the same store with the command:

    holdfast --db /tmp/holdfast-desk/agent.db facts --user ana
    holdfast --db /tmp/holdfast-desk/agent.db facts --user ana --history plan
    holdfast --db /tmp/holdfast-desk/agent.db recall "where does her sister live?" --user ana --explain
    holdfast --db /tmp/holdfast-desk/agent.db recall "Lena" --user ana --graph ana.dot
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import holdfast
from holdfast.testing import ManualClock  # so that three months take a second; leave it out in a real program

FOLDER = Path(tempfile.gettempdir(), "holdfast-desk")

MARCH, APRIL, MAY = (datetime(2026, month, 2, 9, 30, tzinfo=UTC) for month in (3, 4, 5))
QUESTIONS = ("Where does her sister Lena live?", "Which firmware version was it?", "What is her dog called?")
END_OF_MARCH = datetime(2026, 3, 31, tzinfo=UTC)


def march(store: holdfast.Store) -> None:
    """The first call. Every message can be found from now on; the rules find what is worth a fact."""
    thread = store.thread("call-1", user="ana", agent="desk")
    thread.append(
        holdfast.message("user", "Hi, my router drops the connection every evening.", key="1"),
        holdfast.message("assistant", "Which model is it?", key="2"),
        holdfast.message("user", "A Brook 7590, on the Gold plan. I live in Porto.", key="3"),
        holdfast.message("assistant", "Please update the firmware to version 7.57.", key="4"),
        holdfast.message("user", "That helped! My sister Lena lives in Oslo and has the same one.", key="5"),
    )
    memory = store.memory(user="ana")
    for learned in memory.learn("call-1"):
        say(f"learned by rule {(learned.origin.tool or '').removeprefix('rule:')!r}: {learned.text}")
    source = {"by": "user", "channel": "phone", "entries": [("call-1", 3)]}
    memory.remember("Gold plan, 29 euros a month", key="plan", origin=source, once="plan in March")
    memory.remember("Her contract began in 2021", origin="desk", once="contract began")
    memory.link("Porto", "is served by", "exchange 17", once="exchange of Porto")


def april(store: holdfast.Store) -> None:
    """The second call: one fact changes, one was never true."""
    thread = store.thread("call-2", user="ana", agent="desk")
    thread.append(
        holdfast.message("user", "I changed to the Silver plan yesterday.", key="1"),
        holdfast.message("user", "And my contract began in 2019, it never was 2021.", key="2"),
    )
    memory = store.memory(user="ana")
    # A change: the Gold plan was true until now, and stays in the history.
    memory.remember("Silver plan, 19 euros a month", key="plan", once="plan in April")
    # A correction: 2021 was never true. What was remembered once is given back under its name.
    wrong = memory.remember("Her contract began in 2021", origin="desk", once="contract began")
    memory.correct(wrong.id, "Her contract began in 2019", once="contract began, corrected")


def may(store: holdfast.Store) -> None:
    """A colleague's note does not fit what is known. Nobody has to decide at once; it is flagged."""
    memory = store.memory(user="ana")
    memory.remember("Ana lives in Braga", origin={"by": "bo", "channel": "mail"}, once="note of bo")
    lesson = "When a connection drops in the evening, update the firmware first"
    how = store.memory(agent="desk").remember(lesson, kind="procedural", once="firmware first")
    if how.uses == 0:
        store.memory(agent="desk").used(how.id, helped=True)


def show_what_is_true(memory: holdfast.Memories) -> None:
    plan, before = memory.fact("plan"), memory.fact("plan", as_of=END_OF_MARCH)
    assert plan is not None
    assert before is not None
    say(f"plan now: {plan.text}; in March: {before.text}")
    then = [version.memory.text for version in memory.history("plan", known_at=END_OF_MARCH)]
    say(f"what was known of it in March: {', '.join(then)}")
    say(f"when her contract began: {memory.recall('When did her contract begin?', k=1, log=False)[0].text}")
    for pair in memory.contradictions():
        say(f"to be settled by a person: {pair.first.text!r} and {pair.second.text!r} ({pair.why})")
    for link in memory.links("ana", hops=2):
        say(f"link: {link.subject} {link.relation} {link.object}")


def ask(memory: holdfast.Memories, question: str) -> None:
    """What an agent does with a question: take the best hits into its prompt, or say that it does not know."""
    found = memory.recall(question, k=3, explain=True)
    if not found.relevant:
        say(f"{question} I do not know. (confidence {found.confidence:.2f})")
        return
    best = found[0]
    parts = sorted(best.why.items(), key=lambda part: -part[1])[:3]
    why = ", ".join(f"{name} {value:.1f}" for name, value in parts)
    say(f"{question} {best.text!r} ({best.id}; mostly {why})")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What a support agent knows of a customer, over three months.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the store is; default: %(default)s")
    parser.add_argument("--embedder", default="auto", help="auto, none, wordllama, minilm, multilingual, openai:MODEL")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    clock = ManualClock(MARCH)
    with holdfast.open(given.folder / "agent.db", clock=clock, embedder=given.embedder) as store:
        for moment, call in ((MARCH, march), (APRIL, april), (MAY, may)):
            clock.set(moment)
            call(store)
        memory = store.memory(user="ana", agent="desk")
        show_what_is_true(store.memory(user="ana"))
        for question in QUESTIONS:
            ask(memory, question)
        for how in memory.procedures():
            say(f"always at hand: {how.text}")


if __name__ == "__main__":
    main()
