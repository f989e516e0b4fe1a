"""Log with a window: every message is stored as it happens, and after a restart the agent reads the newest ones.

Reading the newest touches no older history. With a token budget, `store.context` chooses how far back to go.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast

QUESTION = "Which boat came last?"


def arrivals(first: int, last: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Boat {number} arrived."} for number in range(first, last + 1)]


with TemporaryDirectory() as folder:
    address = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    with holdfast.open(address) as store:
        store.thread("arrivals").append(*arrivals(1, 500))  # one commit

    with holdfast.open(address) as store:  # after the restart
        thread = store.thread("arrivals")
        print([message["content"] for message in thread.messages(last=2)])
        print("page:", [entry.number for entry in thread.log(after=100, limit=3)])
        ctx = store.context(thread, QUESTION, budget=600, recall=False)
        first, last = ctx.window
        print("whole turns, the newest ones:", last, last - first < 60, "within the budget:", ctx.tokens <= 600)
        print(ctx.messages("openai")[-1]["content"].splitlines()[-1])

# prints:
# ['Boat 499 arrived.', 'Boat 500 arrived.']
# page: [101, 102, 103]
# whole turns, the newest ones: 500 True within the budget: True
# Which boat came last?
