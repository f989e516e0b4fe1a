"""Subtasks one after the other: one agent keeps the whole picture; each subtask has its own log and a budget.

A subtask that is done is not done again, and leaves one entry in the log of the agent that gave it out.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast


def inspect(task: holdfast.Subtask, boat: str) -> str:
    for part in ("hull", "mast", "keel"):
        task.step(part, lambda: "sound", effect="pure")
        task.thread.append({"role": "assistant", "content": f"The {part} of the {boat} is sound."}, key=part)
        task.spend(tokens=400)
    return f"{boat}: sound"


with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    thread = store.thread("survey-3", user="ana")
    for _ in range(2):  # the second time everything is already done
        with thread.run("survey") as run:
            report = [run.subtask(boat, inspect, boat, budget={"tokens": 2000}) for boat in ("Petrel", "Fulmar")]
        print(report, "entries:", thread.info().entries)

    with thread.run("in a hurry") as run:
        try:
            run.subtask("Kittiwake", inspect, "Kittiwake", budget={"tokens": 1000})
        except holdfast.errors.StepFailed as error:
            print("too expensive:", error.type)
    print(sorted(info.id for info in store.threads(user="ana")))

# prints:
# ['Petrel: sound', 'Fulmar: sound'] entries: 3
# ['Petrel: sound', 'Fulmar: sound'] entries: 3
# too expensive: BudgetExceeded
# ['survey-3', 'survey-3/in a hurry/Kittiwake', 'survey-3/survey/Fulmar', 'survey-3/survey/Petrel']
