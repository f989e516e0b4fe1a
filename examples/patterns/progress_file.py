"""Progress file: each session reads it first, does the next thing and writes down what comes after.

Session one sets up, a person edits the file, session two goes on, session three finishes. `git=True` commits it.
"""

import sys
import tempfile
from pathlib import Path

import holdfast

with tempfile.TemporaryDirectory() as folder:
    address, file = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db", Path(f"{folder}/PROGRESS.md")

    with holdfast.open(address) as store:  # session one
        handoff = store.thread("refit-9").handoff
        plan = ["sand the hull", "paint it", "launch"]
        handoff.update(goal="Refit the Petrel", todo=plan, next_action=plan[0], context={"colour": "red"})
        handoff.write(file)

    file.write_text(file.read_text().replace('"red"', '"blue"').replace("launch", "launch on 3 May"))  # a person

    for _ in ("two", "three"):
        with holdfast.open(address) as store:
            handoff = store.thread("refit-9").handoff
            print("edited:", handoff.reload(file), handoff.read().data)
            doing = handoff.read().next_action
            left = [step.text for step in handoff.read().todo if step.text != doing]
            handoff.update(done=doing, next_action=left[0], blockers=["rain"] if doing == "paint it" else [])
            handoff.write(file)

    print(file.read_text().split("## Steps\n")[1].split("\n\n## Context")[0])

# prints:
# edited: True {'colour': 'blue'}
# edited: False {'colour': 'blue'}
# 1. [x] sand the hull
# 2. [x] paint it
# 3. [ ] launch on 3 May
#
# ## Blockers
# - rain
#
# ## Next action
# launch on 3 May
