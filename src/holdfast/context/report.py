"""A context, and a report of how it was built.

Deliberately absent: how it was packed (``pack``).
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.context.budget import SECTIONS
from holdfast.context.page import Dropped, Page
from holdfast.context.render import render
from holdfast.errors import Invalid, quoted
from holdfast.records import TRUST, Hit


class SectionReport(msgspec.Struct, frozen=True):
    """One section of a context: how many tokens it takes, and how many pieces it shows and left out."""

    name: str
    tokens: int
    shown: int
    dropped: int = 0


class ContextReport(msgspec.Struct, frozen=True):
    """How a context was packed.

    ``why`` says how the budget came about. ``counter`` names what counted the tokens, ``exact`` says whether the model
    counts the same. ``kept`` is how many tokens at the beginning are the same as in the previous context, so a
    provider's cache can serve them; ``skipped`` lists the stages that recall left out; ``relevant`` says whether it
    found anything that answers the input, and then ``found`` has the ids of what it found and the context shows, best
    first, in whichever section: a fact that stands among the facts is not recalled again.
    """

    budget: int
    tokens: int
    sections: tuple[SectionReport, ...]
    dropped: tuple[Dropped, ...]
    kept: int
    counter: str
    exact: bool
    ms: float
    masked: int = 0
    clipped: int = 0
    skipped: tuple[str, ...] = ()
    relevant: bool | None = None
    notes: tuple[str, ...] = ()
    why: str = ""
    found: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """The unused tokens of the budget."""
        return self.budget - self.tokens


class Context(msgspec.Struct, frozen=True):
    """What goes into the model for this turn. ``messages("openai")``, ``"anthropic"`` or ``"gemini"`` renders it.

    ``hits`` are what recall found and the context shows; ``window`` has the numbers of the first and the last entry
    that it shows word for word, if any. ``trust`` is the least trust of all that is shown of memory.
    """

    page: Page
    report: ContextReport
    hits: tuple[Hit, ...] = ()
    window: tuple[int, int] | None = None
    trust: str = TRUST[-1]

    def messages(self, format: str = "openai") -> Any:
        """The messages for OpenAI's, Anthropic's or Gemini's client; with ``plain``, one text."""
        return render(self.page, format)

    @property
    def system(self) -> str:
        """The text before the conversation; Anthropic and Gemini take it separately from the messages."""
        return self.page.system

    @property
    def text(self) -> str:
        """The whole context as one plain text."""
        text: str = render(self.page, "plain")
        return text

    @property
    def tokens(self) -> int:
        return self.report.tokens

    def section(self, name: str) -> str:
        """The text of one section; empty if it shows nothing."""
        if not isinstance(name, str) or name not in SECTIONS:
            raise Invalid(f"there is no section {quoted(name)}; there are {', '.join(SECTIONS)}")
        if name == "recent":
            return "\n\n".join(f"{message.role}: {message.text}" for message in self.page.turns if message.text)
        return self.page.input.text if name == "input" else self.page.sections.get(name, "")
