"""Checkpoints: mark a moment, go back to it, or try another way from it, without losing either.

A rewind or a fork copies nothing and deletes nothing, and the state goes along.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast

with TemporaryDirectory() as folder:
    address = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    with holdfast.open(address) as store:
        thread = store.thread("refit-9", user="ana")
        with thread.turn() as turn:
            turn.append({"role": "user", "content": "Paint the hull."})
            turn.save({"colour": None})
        thread.checkpoint("before-colour", note="all agreed but the colour")
        with thread.turn() as turn:
            turn.append({"role": "user", "content": "In red."})
            turn.save({"colour": "red"})

    with holdfast.open(address) as store:  # another process
        thread = store.thread("refit-9", user="ana")
        blue = thread.fork("refit-9-blue", at="before-colour")
        blue.append({"role": "user", "content": "In blue."})
        blue.patch("colour", "blue")
        undo = thread.rewind("before-colour")
        print("rewound:", [m["content"] for m in thread.messages()], thread.state(dict).value)
        thread.rewind(undo.name)
        print("undone:", [m["content"] for m in thread.messages()], thread.state(dict).value)
        print("fork:", [m["content"] for m in blue.messages()], blue.state(dict).value)

# prints:
# rewound: ['Paint the hull.'] {'colour': None}
# undone: ['Paint the hull.', 'In red.'] {'colour': 'red'}
# fork: ['Paint the hull.', 'In blue.'] {'colour': 'blue'}
