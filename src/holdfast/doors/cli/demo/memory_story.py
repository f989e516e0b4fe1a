"""How remembering and recall are told: what was kept, then each question with the first thing found for it.

Deliberately absent: deciding anything. Whether it is the right thing is said where the claims are.
"""

from __future__ import annotations

from typing import Any

from holdfast.doors.cli.demo.story import Story


class MemoryStory:
    """Tells of memory on the screen of the tale that it is a part of."""

    def __init__(self, tale: Story) -> None:
        self._tale = tale
        self._asked = 0

    def remembered(self, event: dict[str, Any]) -> None:
        fact = f" (fact {event['key']})" if event["key"] else ""
        self._tale.under(("✓ ", "good"), (f"remembered in {event['ms']:.1f} ms: {event['text']}{fact}", "quiet"))

    def recalled(self, event: dict[str, Any]) -> None:
        if not self._asked:
            by = f"by words and vectors ({event['model']})" if event["model"] else "by words alone, without vectors"
            self._tale.heading("It is asked what the killed one knew", by)
        self._asked += 1
        self._tale.says("asked", "person", event["asks"])
        took = f"{event['ms']:.1f} ms" + (" the first time" if self._asked == 1 else "")
        if not event["relevant"]:
            told = (f"  confidence {event['confidence']:.2f}, {took}", "quiet")
            self._tale.says("found", "name", ("nothing relevant", "warn"), told)
            return
        hit = event["hits"][0]
        where = "remembered" if hit["memory"] else hit["id"]
        self._tale.says("found", "name", hit["text"], (f"  {where}, {took}", "quiet"))
        if event["key"]:
            before = "; ".join(version["text"] for version in event["history"][:-1]) or "nothing"
            self._tale.under((f"in the history of the fact {event['key']}: {before}", "quiet"))
