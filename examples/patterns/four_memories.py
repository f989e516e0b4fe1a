"""Four kinds of memory in one turn: procedural, episodic and semantic memory make up the working memory.

`session.turn` loads the thread, recalls, builds the context, calls the model, commits and learns.
"""

import sys
from tempfile import TemporaryDirectory

import holdfast
from holdfast.testing.models import Scripted  # stands for "anthropic:…", "openai:…" or your own function


def process_turn(store: holdfast.Store, text: str, model: Scripted) -> holdfast.types.Answer:
    thread = store.thread("owner-7", user="ana", agent="harbour")
    with store.session(thread, model=model, instructions="You run a harbour.", learn="rules") as session:
        return session.turn(text)


with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    store.memory(agent="harbour").remember("Name the price before you book", kind="procedural")
    store.memory("ana").remember("The Petrel has a draught of 1.8 metres")  # semantic
    process_turn(store, "I live in Porto. Is berth 12 free?", Scripted("It is, for 40 euros."))

    model = Scripted("Yes, berth 12 is 2.5 metres deep.")
    answer = process_turn(store, "Is it deep enough for the Petrel?", model)
    system, *earlier, asked = model.asked[0]  # the working memory, as the model got it
    print("procedural:", "Name the price" in system["content"])
    print("semantic:", "draught of 1.8 metres" in asked["content"], "learned:", "Porto" in system["content"])
    print("episodic:", [message["content"] for message in earlier])
    print("working:", answer.context.tokens <= answer.context.report.budget, answer.text)

# prints:
# procedural: True
# semantic: True learned: True
# episodic: ['I live in Porto. Is berth 12 free?', 'It is, for 40 euros.']
# working: True Yes, berth 12 is 2.5 metres deep.
