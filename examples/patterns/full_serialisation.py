"""Full serialisation: a whole conversation goes into a file, and another store goes on from it.

The file has everything: numbers, times, keys, state, forks. Its name chooses the format: .json, .yaml or .msgpack.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast

with TemporaryDirectory() as folder:
    with holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
        thread = store.thread("berth-12", user="ana")
        with thread.turn() as turn:
            turn.append({"role": "system", "content": "You let berths in a harbour."})
            turn.append({"role": "user", "content": "Is berth 12 free in May?"})
            turn.append({"role": "assistant", "content": "Yes, from the 3rd."})
            turn.save({"berth": 12, "from": "3 May"})
        for name in ("talk.json", "talk.msgpack"):
            store.export(f"{folder}/{name}", thread="berth-12")
            with holdfast.open("ram:") as copy:  # stands for another machine
                copy.import_(f"{folder}/{name}")
                again = copy.thread("berth-12", user="ana")
                print(name, again.log() == thread.log(), again.state(dict).value)

    damaged = Path(f"{folder}/damaged.json")
    damaged.write_text(Path(f"{folder}/talk.json").read_text(encoding="utf-8").replace("May?", "June?"))
    with holdfast.open("ram:") as copy:
        try:
            copy.import_(damaged)
        except holdfast.errors.Corrupt:
            print("a file that was changed is refused;", len(copy.threads()), "threads")

# prints:
# talk.json True {'berth': 12, 'from': '3 May'}
# talk.msgpack True {'berth': 12, 'from': '3 May'}
# a file that was changed is refused; 0 threads
