"""Procedural, episodic and semantic memory make up the working memory of one turn.

Lacks: vectors and ranking (words must match), facts that supersede each other, more than one rule of learning, exact
token counts, resuming a question that a crash left unanswered, and history of what was known when.
"""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from tempfile import TemporaryDirectory

Messages = list[dict[str, str]]
BUDGET = 8000
COMMON = {"is", "it", "for", "the", "a", "an", "i", "in", "to", "of", "and", "you"}


class Memory:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.executescript(
            "CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, thread TEXT, role TEXT, content TEXT);"
            "CREATE TABLE IF NOT EXISTS procedures (agent TEXT, text TEXT);"
            "CREATE TABLE IF NOT EXISTS facts (user TEXT, key TEXT, text TEXT, PRIMARY KEY (user, key));"
            "CREATE VIRTUAL TABLE IF NOT EXISTS knowledge USING fts5(user UNINDEXED, text, tokenize = 'porter');"
        )

    def say(self, thread: str, role: str, content: str) -> None:
        with self.db:
            self.db.execute("INSERT INTO messages (thread, role, content) VALUES (?, ?, ?)", (thread, role, content))

    def history(self, thread: str) -> Messages:
        rows = self.db.execute("SELECT role, content FROM messages WHERE thread = ? ORDER BY number", (thread,))
        return [{"role": role, "content": content} for role, content in rows]

    def search(self, user: str, text: str, k: int = 3) -> list[str]:
        words = [word for word in re.findall(r"\w+", text.lower()) if word not in COMMON]
        if not words:
            return []
        asked = " OR ".join(f'"{word}"' for word in words)
        query = "SELECT text FROM knowledge WHERE knowledge MATCH ? AND user = ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self.db.execute(query, (asked, user, k))]

    def system(self, agent: str, user: str) -> str:
        how = self.db.execute("SELECT text FROM procedures WHERE agent = ?", (agent,))
        known = self.db.execute("SELECT text FROM facts WHERE user = ?", (user,))
        return "\n".join(["You run a harbour.", *(f"- {row[0]}" for row in (*how, *known))])

    def working(self, thread: str, user: str, agent: str, text: str) -> Messages:
        recalled = "\n".join(f"- {found}" for found in self.search(user, text))
        system = {"role": "system", "content": self.system(agent, user)}
        asked = {"role": "user", "content": f"Known:\n{recalled}\n\n{text}"}
        earlier = self.history(thread)
        while earlier and tokens([system, *earlier, asked]) > BUDGET:
            earlier.pop(0)
        return [system, *earlier, asked]

    def learn(self, user: str, text: str) -> None:
        if home := re.search(r"\bI live in (\w+)", text):
            with self.db:
                fact = (user, "home", f"{user} lives in {home[1]}")
                self.db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", fact)


def tokens(messages: Messages) -> int:
    return sum(len(message["content"]) // 4 + 4 for message in messages)


def process_turn(memory: Memory, text: str, model: Callable[[Messages], str]) -> tuple[str, Messages]:
    messages = memory.working("owner-7", "ana", "harbour", text)
    memory.say("owner-7", "user", text)
    answer = model(messages)
    memory.say("owner-7", "assistant", answer)
    memory.learn("ana", text)
    return answer, messages


with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/agent.db")) as db:
    memory = Memory(db)
    with db:
        db.execute("INSERT INTO procedures VALUES ('harbour', 'Name the price before you book')")
        db.execute("INSERT INTO knowledge VALUES ('ana', 'The Petrel has a draught of 1.8 metres')")
    process_turn(memory, "I live in Porto. Is berth 12 free?", lambda messages: "It is, for 40 euros.")

    model = lambda messages: "Yes, berth 12 is 2.5 metres deep."  # noqa: E731
    answer, messages = process_turn(memory, "Is it deep enough for the Petrel?", model)
    system, *earlier, asked = messages
    print("procedural:", "Name the price" in system["content"])
    print("semantic:", "draught of 1.8 metres" in asked["content"], "learned:", "Porto" in system["content"])
    print("episodic:", [message["content"] for message in earlier])
    print("working:", tokens(messages) <= BUDGET, answer)
