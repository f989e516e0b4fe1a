"""Summaries: when the conversation outgrows its share of the budget, older turns become a summary.

The newest turns stay as they were said, no range is summarised twice, and the log keeps every word.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast


def answer(messages: list[dict]) -> str:  # stands for a model
    return "Noted: " + messages[-1]["content"].splitlines()[-1]


with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    thread = store.thread("arrivals", user="ana")
    with store.session(thread, model=answer, budget=1200, learn="off", recall=False) as session:
        for number in range(1, 31):
            last = session.turn(f"Boat {number} of the spring fleet arrived at berth {number + 100} with the tide.")

    summaries = [entry.content for entry in thread.log() if entry.kind == "summary"]
    covered = [(one["first"], one["last"]) for one in summaries]
    print("summaries:", len(summaries) > 1, "one after the other:", covered == sorted(covered))
    print("all within the budget:", last.context.tokens <= 1200)
    print("the model sees them:", "Boat" in last.context.section("summary"), "and the last turns:", last.text)
    print("messages in the log:", len(thread.messages()))

# prints:
# summaries: True one after the other: True
# all within the budget: True
# the model sees them: True and the last turns: Noted: Boat 30 of the spring fleet arrived at berth 130 with the tide.
# messages in the log: 60
