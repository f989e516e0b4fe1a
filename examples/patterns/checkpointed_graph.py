"""Checkpointed graph: LangGraph saves each step in Holdfast, and the same thread_id goes on where it stopped.

Needs `pip install 'holdfast[langgraph]'`. What was said is also in the thread's log, where recall finds it.
"""

import sys
from tempfile import TemporaryDirectory

from langgraph.graph import END, START, MessagesState, StateGraph

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver

CONFIG = {"configurable": {"thread_id": "berth-12", "user_id": "ana"}}


def answer(state: MessagesState) -> dict:
    return {"messages": [("ai", f"Noted, {len(state['messages'])} messages so far.")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END)

with TemporaryDirectory() as folder:
    address = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db"
    for text in ("A berth for the Petrel, please.", "From May on."):
        with holdfast.open(address) as store:  # a process of its own, as it were
            app = graph.compile(checkpointer=HoldfastSaver(store))
            print(app.invoke({"messages": [("user", text)]}, CONFIG)["messages"][-1].content)

    with holdfast.open(address) as store:
        app = graph.compile(checkpointer=HoldfastSaver(store))
        before = next(one for one in app.get_state_history(CONFIG) if len(one.values["messages"]) == 2)
        app.invoke({"messages": [("user", "From June on.")]}, before.config)  # another way, from there
        print([message.content for message in app.get_state(CONFIG).values["messages"]][2:])

# prints:
# Noted, 1 messages so far.
# Noted, 3 messages so far.
# ['From June on.', 'Noted, 3 messages so far.']
