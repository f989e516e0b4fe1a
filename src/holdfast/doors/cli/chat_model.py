"""Who answers in a chat: the model that is named, one whose vendor's key is there, or else quotes of what was said.

A model of a vendor works inside the session: it uses the tools of memory, extracts, summarises and hands over. The
small local one and the quoting answerer only answer; rules do the rest, and do it better. Deliberately absent: asking
them anything.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

from holdfast import config
from holdfast.doors.cli.chat_quotes import NAME, Quoting
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.providers.models.choose import choose
from holdfast.providers.models.local import NAME as LOCAL
from holdfast.providers.models.local import Local
from holdfast.providers.models.model import Model

NONE = (NAME, "none")
_ANSWER_TOKENS = 700
_FREE = "no model named: it quotes what it remembers"


class Answerer(NamedTuple):
    """What answers. ``inside`` says whether the session works with it, ``why`` how it came to be chosen."""

    model: Model
    inside: bool
    why: str = ""

    @property
    def speaks(self) -> bool:
        """Whether it is a language model, which can be told how to answer."""
        return not isinstance(self.model, Quoting)

    @property
    def said(self) -> str:
        """Who answers and why, for people."""
        return f"answers by {self.model.name}{f' ({self.why})' if self.why else ''}"

    @property
    def room(self) -> int | None:
        """The tokens that a context may have for it at most, where its window is small."""
        return self.model.window - _ANSWER_TOKENS if isinstance(self.model, Local) else None

    def close(self) -> None:
        if isinstance(self.model, Local):
            self.model.close()


def answerer(named: str | None) -> Answerer:
    """What is named answers, or it is an error. Where nothing is named, whatever can be used without asking."""
    found = config.model()
    if named is None and found is not None and found[1] == config.MODEL_VARIABLE:
        named = found[0]
    if named is not None:
        return _named(named.strip())
    if found is None:
        return Answerer(Quoting(), inside=False, why=_FREE)
    model, variable = found
    if importlib.util.find_spec("pydantic_ai") is None:
        why = f"{_FREE}; {variable} is set, and after pip install 'holdfast[llm]' it would use {model}"
        return Answerer(Quoting(), inside=False, why=why)
    try:
        return _named(model)._replace(why=f"{variable} is set")
    except HoldfastError as error:  # nobody asked for it by name, so it is no error that it cannot be had
        return Answerer(Quoting(), inside=False, why=f"{_FREE}, although {variable} is set ({error})")


def _named(spec: str) -> Answerer:
    if spec.casefold() in NONE:
        return Answerer(Quoting(), inside=False, why="it quotes what it remembers")
    model = choose(spec, **_reach(spec))
    if model is None:
        raise Misconfigured(f'A model is "vendor:model", "local", "local:FILE.gguf" or "none", not {spec!r}.')
    check = getattr(model, "check", None)
    if check is not None:
        check()  # a missing key or package is better said now than after the first question
    if isinstance(model, Local):
        return Answerer(model, inside=False, why="a very small model: expect little" if model.name == LOCAL else "")
    return Answerer(model, inside=True)


def _reach(spec: str) -> dict[str, Any]:
    """The address and the key that the environment names for servers that speak as OpenAI's do."""
    return config.endpoint() if spec.casefold().startswith("openai:") else {}
