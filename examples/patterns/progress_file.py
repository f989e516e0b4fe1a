"""Progress file: each session reads it first, does the next thing and writes down what comes after.

Session one plans, a person edits the file, two more sessions go on. `write(…, git=True)` commits it, too.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast

with TemporaryDirectory() as folder:
    address, file = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db", Path(folder, "PROGRESS.md")

    with holdfast.open(address) as store:
        handoff = store.thread("refit-9").handoff
        plan = ["sand the hull", "paint it", "launch it"]
        handoff.update(goal="Refit the Petrel", todo=plan, next_action=plan[0], context={"colour": "red"})
        handoff.write(file)

    file.write_text(file.read_text().replace('"red"', '"blue"'))  # a person edits it

    for blockers in ([], ["rain"]):
        with holdfast.open(address) as store:
            handoff = store.thread("refit-9").handoff
            edited, progress = handoff.reload(file), handoff.read()
            print(f"{progress.next_action} in {progress.data['colour']}; edited: {edited}")
            after = [step.text for step in progress.todo if step.text != progress.next_action]
            handoff.update(done=progress.next_action, next_action=after[0], blockers=blockers)
            handoff.write(file)

    print([line for line in file.read_text().splitlines() if line[:2] in ("1.", "2.", "3.", "- ")])

# prints:
# sand the hull in blue; edited: True
# paint it in blue; edited: False
# ['1. [x] sand the hull', '2. [x] paint it', '3. [ ] launch it', '- rain']
