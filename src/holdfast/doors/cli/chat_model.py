"""Who answers in a chat: the model that is named, one whose vendor's key is there, or else quotes of what was said.

A model of a vendor works inside the session: it uses the tools of memory, extracts, summarises and hands over. A
local one and the quoting answerer only answer; rules do the rest, and do it better. Deliberately absent: asking them
anything.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

from holdfast import config
from holdfast.doors.cli import chat_local
from holdfast.doors.cli.chat_local import Wording
from holdfast.doors.cli.chat_quotes import NAME, Quoting
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.providers.models.choose import LOCAL, choose
from holdfast.providers.models.local import Local, check_installed
from holdfast.providers.models.model import Model

NONE = (NAME, "none")
_ANSWER_TOKENS = 700
_LOCAL_LIMIT_S = 120.0
_FREE = "no model named: it quotes what it remembers"


class Answerer(NamedTuple):
    """What answers. ``inside`` says whether the session works with it, ``why`` how it came to be chosen."""

    model: Model
    inside: bool
    why: str = ""
    local: Local | None = None

    @property
    def speaks(self) -> bool:
        """Whether a language model answers, which takes a while to begin."""
        return self.model.name != NAME

    @property
    def said(self) -> str:
        """Who answers and why, for people."""
        return f"answers by {self.model.name}{f' ({self.why})' if self.why else ''}"

    @property
    def room(self) -> int | None:
        """The tokens that a context may have for it at most, where its window is small."""
        return self.model.window - _ANSWER_TOKENS if isinstance(self.model, Local) else None

    def close(self) -> None:
        if self.local is not None:
            self.local.close()


def answerer(named: str | None, limit_s: float | None = None) -> Answerer:
    """What is named answers, or it is an error. Where nothing is named, whatever can be used without asking."""
    found = config.model()
    if named is None and found is not None and found[1] == config.MODEL_VARIABLE:
        named = found[0]
    if named is not None:
        return _named(named.strip(), limit_s)
    if found is None:
        return Answerer(Quoting(), inside=False, why=_FREE)
    model, variable = found
    if importlib.util.find_spec("pydantic_ai") is None:
        why = f"{_FREE}; {variable} is set, and after pip install 'holdfast[llm]' it would use {model}"
        return Answerer(Quoting(), inside=False, why=why)
    try:
        return _named(model, limit_s)._replace(why=f"{variable} is set")
    except HoldfastError as error:  # nobody asked for it by name, so it is no error that it cannot be had
        return Answerer(Quoting(), inside=False, why=f"{_FREE}, although {variable} is set ({error})")


def _named(spec: str, limit_s: float | None) -> Answerer:
    if spec.casefold() in NONE:
        return Answerer(Quoting(), inside=False, why="it quotes what it remembers")
    kind, _, file = spec.partition(":")
    if kind.casefold() == LOCAL:
        return _local(file, limit_s)
    model = choose(spec, **_reach(spec))
    if model is None:
        raise Misconfigured(f'A model is "vendor:model", "local", "local:FILE.gguf" or "none", not {spec!r}.')
    check = getattr(model, "check", None)
    if check is not None:
        check()  # a missing key or package is better said now than after the first question
    return Answerer(model, inside=True)


def _local(file: str, limit_s: float | None) -> Answerer:
    """The small model of the wheel words what was quoted; a file of your own answers from a context."""
    check_installed()
    if file:
        model = Local(file, max_tokens=_ANSWER_TOKENS // 2, timeout_s=limit_s or _LOCAL_LIMIT_S)
        return Answerer(model, inside=False, local=model)
    model = Local(max_tokens=chat_local.TOKENS, stop=chat_local.STOP)
    wording = Wording(model, limit_s or chat_local.LIMIT_S)
    return Answerer(wording, inside=False, why="a very small model; what it goes by stands beneath", local=model)


def _reach(spec: str) -> dict[str, Any]:
    """The address and the key that the environment names for servers that speak as OpenAI's do."""
    return config.endpoint() if spec.casefold().startswith("openai:") else {}
