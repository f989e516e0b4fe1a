"""How much each model takes at once, and how much it writes at most. The table is of 15 November 2026.

A model is found by the longest name in the table that its own name begins with, after any vendor ("openai:gpt-4o",
"meta-llama/Llama-3.3-70B-Instruct"), and only where no other version follows: "gpt-5" is not taken for "gpt-5.9", nor
"claude-opus-4" for "claude-opus-4-9". **A model that is not in the table gives None**; nothing is guessed from its
relatives. The numbers are the vendors' own where their documentation could be read, else those of LiteLLM's public
registry; where sources differ, the smaller. A host may offer less than the model can: then pass ``overrides``.

The window is input and output together. Models with open weights have no limit of their own for the output; theirs is
the window. Deliberately absent: prices, rates, and limits that depend on who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from holdfast.errors import Invalid, quoted

# model, window, output, encoding where we can count it exactly, family for the estimate where we cannot
_TABLE = """
gpt-3.5-turbo               16385    4096  cl100k_base  large
gpt-4                        8192    4096  cl100k_base  large
gpt-4-32k                   32768    4096  cl100k_base  large
gpt-4-0125-preview         128000    4096  cl100k_base  large
gpt-4-1106-preview         128000    4096  cl100k_base  large
gpt-4-turbo                128000    4096  cl100k_base  large
gpt-4o                     128000   16384  o200k_base   large
gpt-4o-2024-05-13          128000    4096  o200k_base   large
chatgpt-4o                 128000   16384  o200k_base   large
gpt-4.1                   1047576   32768  o200k_base   large
o1                         200000  100000  o200k_base   large
o1-mini                    128000   65536  o200k_base   large
o1-preview                 128000   32768  o200k_base   large
o3                         200000  100000  o200k_base   large
o4-mini                    200000  100000  o200k_base   large
gpt-5                      400000  128000  o200k_base   large
gpt-5-chat                 128000   16384  o200k_base   large
gpt-5-pro                  400000  272000  o200k_base   large
gpt-5.1                    400000  128000  o200k_base   large
gpt-5.1-chat               128000   16384  o200k_base   large
gpt-5.2                    400000  128000  o200k_base   large
gpt-5.2-chat               128000   16384  o200k_base   large
gpt-5.3-codex              400000  128000  o200k_base   large
gpt-5.3-chat               128000   16384  o200k_base   large
gpt-5.4                   1050000  128000  o200k_base   large
gpt-5.4-mini               400000  128000  o200k_base   large
gpt-5.4-nano               400000  128000  o200k_base   large
gpt-5.5                   1050000  128000  o200k_base   large
gpt-5.6                   1050000  128000  o200k_base   large
gpt-5.6-cyber              400000  128000  o200k_base   large
gpt-oss                    131072  131072  o200k_base   large
claude-3-haiku             200000    4096  -            claude
claude-3-opus              200000    4096  -            claude
claude-3-5-haiku           200000    8192  -            claude
claude-3-5-sonnet          200000    8192  -            claude
claude-3-7-sonnet          200000   64000  -            claude
claude-opus-4              200000   32000  -            claude
claude-sonnet-4            200000   64000  -            claude
claude-opus-4-1            200000   32000  -            claude
claude-haiku-4-5           200000   64000  -            claude
claude-sonnet-4-5          200000   64000  -            claude
claude-opus-4-5            200000   64000  -            claude
claude-opus-4-6           1000000  128000  -            claude
claude-sonnet-4-6         1000000  128000  -            claude
claude-opus-4-7           1000000  128000  -            claude-5
claude-opus-4-8           1000000  128000  -            claude-5
claude-opus-5             1000000  128000  -            claude-5
claude-sonnet-5           1000000  128000  -            claude-5
claude-fable-5            1000000  128000  -            claude-5
claude-fable-5-1          1000000  128000  -            claude-5
claude-opus-5-5           1000000  128000  -            claude-5
claude-sonnet-5-5         1000000  128000  -            claude-5
claude-haiku-5-5          1000000  128000  -            claude-5
gemini-2.0-flash          1048576    8192  -            large
gemini-2.5-pro            1048576   65536  -            large
gemini-2.5-flash          1048576   65536  -            large
gemini-3-pro              1048576   65536  -            large
gemini-3-flash            1048576   65536  -            large
gemini-3.1-pro            1048576   65536  -            large
gemini-3.1-flash-lite     1048576   65536  -            large
gemini-3.5-flash          1048576   65536  -            large
gemini-flash-latest       1048576   65536  -            large
gemini-pro-latest         1048576   65536  -            large
gemma-2                      8192    8192  -            large
gemma-3                    131072    8192  -            large
gemma3                     131072    8192  -            large
gemma-4                    262144   32768  -            large
open-mistral-nemo          128000  128000  tekken       large
mistral-nemo               128000  128000  tekken       large
mistral-7b                  32768   32768  -            small
mixtral-8x7b                32768   32768  -            small
mistral-small-2603         256000  256000  -            large
mistral-medium-3-5         256000  256000  -            large
mistral-medium-3.5         256000  256000  -            large
mistral-large-2512         256000  256000  -            large
mistral-large-3            256000  256000  -            large
mistral-small-latest       256000  256000  -            large
mistral-medium-latest      256000  256000  -            large
mistral-large-latest       256000  256000  -            large
codestral-2508             128000  128000  -            large
llama-2                      4096    4096  -            small
llama2                       4096    4096  -            small
llama-3                      8192    8192  llama3       large
llama3                       8192    8192  llama3       large
meta-llama-3                 8192    8192  llama3       large
llama-3.1                  131072  131072  llama3       large
llama3.1                   131072  131072  llama3       large
meta-llama-3.1             131072  131072  llama3       large
llama-3.2                  131072  131072  llama3       large
llama3.2                   131072  131072  llama3       large
llama-3.3                  131072  131072  llama3       large
llama3.3                   131072  131072  llama3       large
llama-4-scout            10000000 10000000 -            large
llama-4-maverick          1000000 1000000  -            large
qwen2.5                     32768    8192  qwen         large
qwen-2.5                    32768    8192  qwen         large
qwen3                       32768   32768  qwen         large
qwen3-max                  262144   65536  -            large
qwen3-next                 262144   65536  -            large
qwen3-coder                262144   65536  -            large
deepseek-chat              131072    8192  -            large
deepseek-reasoner          131072   65536  -            large
deepseek-v4-flash         1000000  393216  -            large
deepseek-v4-pro           1000000  393216  -            large
deepseek-flash            1000000  393216  -            large
grok-4                     256000  256000  -            any
grok-4-fast               2000000   30000  -            any
grok-4-1-fast             2000000   30000  -            any
grok-4.1-fast             2000000   30000  -            any
grok-code-fast             256000  256000  -            any
grok-4.3                  1000000 1000000  -            any
kimi-k2                    131072  131072  -            large
kimi-k2.5                  262144  262144  -            large
kimi-k2.6                  262144  262144  -            large
glm-4.5                    128000   32000  -            large
glm-4.6                    200000  128000  -            large
glm-4.7                    200000  128000  -            large
command-a-03-2025          256000    8000  -            any
command-r-08-2024          128000    4096  -            any
command-r-plus-08-2024     128000    4096  -            any
smollm2                      8192    8192  -            small
"""
# Whose tokenisers were measured: a model of theirs that is too new for the table is estimated like its relatives.
_FAMILIES = {
    "claude": "claude-5",
    **dict.fromkeys(("gpt", "gemini", "gemma", "qwen", "deepseek", "kimi", "glm"), "large"),
}
_ANOTHER_VERSION = re.compile(r"[a-z0-9.]|[-_@]\d{1,2}(?![\da-z])")


class ModelWindow(msgspec.Struct, frozen=True):
    """What a model takes: ``tokens`` in all, of which at most ``output`` may be written by the model itself."""

    model: str
    tokens: int
    output: int
    encoding: str | None


def window_of(model: str, overrides: Mapping[str, int] | None = None) -> ModelWindow | None:
    """The window of a model, or None where it is not known. ``overrides`` (name to tokens) go before the table."""
    known = _longest(model, _WINDOWS)
    given = {_plain(name): _positive(name, tokens) for name, tokens in (overrides or {}).items()}
    override = _longest(model, given)
    if override is None:
        return None if known is None else _WINDOWS[known]
    tokens = given[override]
    if known is None:
        return ModelWindow(override, tokens, tokens, None)
    return ModelWindow(override, tokens, min(tokens, _WINDOWS[known].output), _WINDOWS[known].encoding)


def family_of(model: str) -> str:
    """Which family of tokenisers an estimate for this model should assume; "any" where nothing is known of it."""
    known = _longest(model, _FAMILY_OF)
    if known is not None:
        return _FAMILY_OF[known]
    vendors = (family for name in _names(model) for start, family in _FAMILIES.items() if name.startswith(start))
    return next(vendors, "any")


def _longest(model: str, table: Mapping[str, object]) -> str | None:
    for name in _names(model):
        fits = [start for start in table if name.startswith(start) and not _ANOTHER_VERSION.match(name, len(start))]
        if fits:
            return max(fits, key=len)
    return None


def _names(model: str) -> Iterator[str]:
    """The name itself, then without what may be a vendor; "llama3.1:8b" is a model, "openai:gpt-4o" a vendor's."""
    whole = _plain(model)
    yield whole
    if "claude" in whole:  # "us.anthropic.claude-sonnet-4-5-v1:0", "anthropic/claude-sonnet-4.5"
        yield whole[whole.rindex("claude") :].replace(".", "-")
    tail = whole.rpartition("/")[2]
    yield tail
    while ":" in tail:
        tail = tail.partition(":")[2]
        yield tail


def _plain(name: str) -> str:
    return name.strip().casefold()


def _positive(name: str, tokens: int) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        raise Invalid(f"The window of {name!r} is a number of tokens above zero, not {quoted(tokens)}.")
    return tokens


def _rows() -> Iterator[tuple[ModelWindow, str]]:
    for line in _TABLE.split("\n"):
        if line:
            model, tokens, output, encoding, family = line.split()
            yield ModelWindow(model, int(tokens), int(output), None if encoding == "-" else encoding), family


_WINDOWS = {window.model: window for window, _ in _rows()}
_FAMILY_OF = {window.model: family for window, family in _rows()}
