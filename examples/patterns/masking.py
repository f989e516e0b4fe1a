"""Masking of tool output: an old, long observation becomes a short stand-in that keeps every error.

The whole text stays in the log. What the agent and the user said is never shortened.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast

OUTPUT = "\n".join(f"frame {number}: ok" for number in range(2000))
OUTPUT += "\nERROR frame 1127: crack of 4 mm\n1 error in 2000 frames\n"

with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    thread = store.thread("survey-3", user="ana")
    thread.append(
        {"role": "user", "content": "Is the hull sound?"},
        holdfast.tool_call("scan_hull", {"boat": "Petrel"}, id="call-1"),
        holdfast.observation(OUTPUT, of="call-1"),
        {"role": "assistant", "content": "Not quite: frame 1127 has a crack."},
    )
    whole = store.context(thread, "What do we repair?", budget=100_000, recall=False)
    masked = store.context(thread, "What do we repair?", budget=100_000, recall=False, verbatim=0)
    print("tokens:", whole.tokens > 5_000, masked.tokens < 400, "masked:", masked.report.masked)
    call, shown, said = masked.messages("openai")[-4:-1]
    print("the error is there:", "ERROR frame 1127: crack of 4 mm" in shown["content"])
    print("what was said is whole:", said["content"])
    print("the log has all of it:", thread.entry(3).content["content"] == OUTPUT)

# prints:
# tokens: True True masked: 1
# the error is there: True
# what was said is whole: Not quite: frame 1127 has a crack.
# the log has all of it: True
