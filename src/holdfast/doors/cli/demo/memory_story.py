"""What the demonstration prints about memory: what was kept, then each question with the first thing found.

Deliberately absent: deciding anything. Whether it is the right thing is said where the claims are.
"""

from __future__ import annotations

from typing import Any

from holdfast.doors.cli.demo.story import Story


class MemoryStory:
    """Prints memory as part of the story."""

    def __init__(self, tale: Story) -> None:
        self._tale = tale
        self._asked = 0

    def remembered(self, event: dict[str, Any]) -> None:
        fact = f" (fact {event['key']})" if event["key"] else ""
        self._tale.under(("✓ ", "good"), (f"remembered in {event['ms']:.1f} ms: {event['text']}{fact}", "quiet"))

    def recalled(self, event: dict[str, Any]) -> None:
        if not self._asked:
            by = f"by words and vectors ({event['model']})" if event["model"] else "by words alone, without vectors"
            self._tale.heading("What does it remember?", by)
        self._asked += 1
        took = f"{event['ms']:.1f} ms" + (" the first time" if self._asked == 1 else "")
        answer: tuple[str, str] = ("it does not know", "warn")
        about = f"confidence {event['confidence']:.2f}"
        if event["relevant"]:
            hit = event["hits"][0]
            answer, about = (hit["text"], ""), "remembered" if hit["memory"] else hit["id"]
        before = "; ".join(version["text"] for version in event["history"][:-1])
        about = f"  {about}, {took}" + (f"; before: {before}" if before else "")
        self._tale.asked(event["asks"], answer, (about, "quiet"))
