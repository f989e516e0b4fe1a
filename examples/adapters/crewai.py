"""A CrewAI memory and a CrewAI flow that remember: run it twice, and the second run knows what the first one did.

    python examples/adapters/crewai.py

keeps both in ``holdfast-crewai.db`` in the temporary folder, works without any key or network, and prints what is
known. Then look at the same store with the command:

    holdfast --db /tmp/holdfast-crewai.db state visits
    holdfast --db /tmp/holdfast-crewai.db log visits
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path

# This file is called like the package that it shows, and Python would take it for that one.
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import Memory  # noqa: E402
from crewai.flow.flow import Flow, listen, start  # noqa: E402
from crewai.flow.persistence import persist  # noqa: E402
from crewai.llms.base_llm import BaseLLM  # noqa: E402

from holdfast.adapters.crewai import install  # noqa: E402

DATABASE = Path(tempfile.gettempdir(), "holdfast-crewai.db")


def embed(texts: list[str]) -> list[list[float]]:
    """An embedder that needs no network: texts that share words are near. Leave it out to use the one of CrewAI."""
    vectors = []
    for text in texts:
        vector = [0.0] * 64
        for word in text.lower().split():
            vector[hashlib.blake2b(word.encode(), digest_size=1).digest()[0] % 64] += 1.0
        vectors.append(vector)
    return vectors


class Silent(BaseLLM):
    """No model is asked where scope, categories and importance are given."""

    def call(self, messages: object, *args: object, **kwargs: object) -> str:
        return '{"actions": [], "insert_new": true}'


def main() -> None:
    with install(DATABASE, user="ana"):  # from here on memories and flows keep what they have in Holdfast
        memory = Memory(embedder=embed, llm=Silent(model="silent"))
        known = memory.recall("where does Ana sit", depth="shallow")
        print("known:", ", ".join(hit.record.content for hit in known) or "nothing yet")
        if not known:
            memory.remember("Ana sits on the aisle", scope="/travel", categories=["seat"], importance=0.8)
        memory.close()

        @persist()
        class Visits(Flow):  # type: ignore[type-arg]
            @start()
            def count(self) -> None:
                self.state["visits"] = self.state.get("visits", 0) + 1

            @listen(count)
            def tell(self) -> None:
                print("this is visit", self.state["visits"])

        Visits(suppress_flow_events=True).kickoff(inputs={"id": "visits"})


if __name__ == "__main__":
    main()
