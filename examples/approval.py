"""Wait for a person's word, for minutes or for months, over restarts.

    python examples/approval.py

works out a refund and leaves: the run waits for an approval, and no process does. Run it again and it still waits. Then
give the word from anywhere, and run it once more:

    holdfast --db /tmp/holdfast-refund/agent.db signal refund-7/refund approval '{"yes": true}' --by bo
    python examples/approval.py

Only the first word counts; a second one is told so. Try it with ``{"yes": false}`` in another ``--folder``, or let the
time run out with ``--within 1``. Kill it whenever you like: the customer is paid at most once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import holdfast

FOLDER = Path(tempfile.gettempdir(), "holdfast-refund")


def refund(run: holdfast.Run, bank: Path, within_s: float) -> str:
    """The whole story in one function, although it may take a month and many processes."""

    def amount(order: str) -> int:
        say(f"working out the refund for order {order}")
        return 42

    def pay(euros: int) -> str:
        key = holdfast.current_step().key
        say(f"paying {euros} EUR")
        with bank.open("a", encoding="utf-8") as file:
            file.write(f"{key} {euros}\n")
            file.flush()
            os.fsync(file.fileno())
        return key

    def find_payment(euros: int) -> str | None:
        key = holdfast.current_step().key
        paid = bank.read_text(encoding="utf-8").splitlines() if bank.exists() else []
        return key if f"{key} {euros}" in paid else None

    euros = run.step("amount", amount, run.input["order"], effect="pure")
    try:
        answer = run.wait("approval", timeout_s=within_s)  # in store.resume, this leaves
    except holdfast.errors.WaitTimedOut:
        return "nobody answered in time, so nothing was paid"
    if not answer["yes"]:
        return "the refund was declined"
    run.step("pay", pay, euros, effect="once", probe=find_payment)
    return f"{euros} EUR were paid back"


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="A refund that a person has to approve.")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the store and the bank's file are; default: %(default)s"
    )
    parser.add_argument("--within", type=float, default=30 * 24 * 3600, help="seconds to wait for an answer")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    database = given.folder / "agent.db"
    with holdfast.open(database) as store:
        thread = store.thread("refund-7", user="ana")
        thread.submit("refund", input={"order": "A-100"})  # written down once; again, it changes nothing
        store.resume({"refund": lambda run: refund(run, given.folder / "bank.txt", given.within)})
        found = thread.timeline("refund")
        if found.run.status == "waiting":
            say("waiting for an approval. To give it:")
            say(f"""  holdfast --db {database} signal refund-7/refund approval '{{"yes": true}}'""")
        else:
            say(f"{found.run.status}: {found.result}")


if __name__ == "__main__":
    main()
