"""Long-term memory as a tool: the model asks for what it needs, instead of getting everything.

A memory handle among the tools gives the model `recall`, `remember` and `forget`; each call is a durable step.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast
from holdfast.testing.models import Scripted  # stands for a model that calls tools
from holdfast.types import ToolCall

with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    memory = store.memory("ana")
    memory.remember("The Petrel has a draught of 1.8 metres")
    memory.remember("Prefers calls before nine")
    model = Scripted(
        ToolCall("c1", "recall", {"query": "draught of the Petrel"}),
        ToolCall("c2", "remember", {"text": "Ana books berth 12 for the Petrel", "key": "berth"}),
        "Berth 12 is deep enough. It is yours.",
    )
    thread = store.thread("berth-12", user="ana")
    with store.session(thread, model=model, tools=[memory], recall=False, learn="off") as session:
        print(session.turn("Is berth 12 deep enough? Then I take it.").text)

    print("told at once:", "draught" in str(model.asked[0]), "after asking:", "1.8 metres" in str(model.asked[1]))
    print("remembered:", memory.fact("berth").text)
    print([entry.kind for entry in thread.log()])

# prints:
# Berth 12 is deep enough. It is yours.
# told at once: False after asking: True
# remembered: Ana books berth 12 for the Petrel
# ['message', 'tool_call', 'observation', 'tool_call', 'observation', 'message', 'event', 'event']
