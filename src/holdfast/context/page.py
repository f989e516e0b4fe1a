"""A packed context before it is rendered: a system text, the turns, and what comes with the input.

Deliberately absent: any format of a vendor (``render``), and choosing (``pack``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from holdfast.context.talk import Message

BEFORE = "(The conversation so far.)"
"""What a conversation begins with that is shown from the middle, for those who insist that a user begins it."""


class Dropped(msgspec.Struct, frozen=True):
    """Something that is not in a context: of which section, what, and why not."""

    section: str
    what: str
    why: str


class Page(NamedTuple):
    """The parts of a context in the order they are sent. What changes least comes first."""

    system: str
    turns: tuple[Message, ...]
    recalled: str
    news: str
    state: str
    input: Message
    sections: Mapping[str, str]

    def last(self) -> Message:
        """The message that carries the input, with what belongs to this turn before it. Parts stay in their order."""
        texts = (self.news, self.state, self.recalled, "" if self.input.parts else self.input.text)
        return self.input._replace(text="\n\n".join(text for text in texts if text))

    def messages(self) -> tuple[Message, ...]:
        return (*self.turns, self.last())
