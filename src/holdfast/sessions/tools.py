"""Tools that a model may use in a turn: functions with a declared effect, memories, and lookup of shortened text.

A function's signature and docstring are its definition; the model's arguments are checked against it before
anything is done. Whatever a model gets wrong is returned to it as a sentence. Deliberately absent: tools without a
declared effect, because after a crash we must know whether they may be repeated; and threads other than those
that the session's own user may see.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import msgspec

from holdfast.engine.codec import encode
from holdfast.errors import Invalid, NotFound, quoted
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import Core
from holdfast.ledger.speech import spoken
from holdfast.memory.handle import Memories
from holdfast.memory.reading import trust_of_result
from holdfast.providers.models.model import ToolCall
from holdfast.records import TRUST
from holdfast.steps.declare import Step, is_async, step

if TYPE_CHECKING:
    from holdfast.thread import Thread


_LONG = 1_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Tool(NamedTuple):
    """One tool: its definition for the model, its parameters, its step, and the memories it is about, if any."""

    name: str
    definition: dict[str, Any]
    takes: Any
    step: Step
    memory: Memories | None = None

    def trusting(self, trust: str) -> Step:
        """Its step, for a model that has read something trusted so much: nothing it remembers is trusted more."""
        if self.memory is None:
            return self.step
        return Step(_using(self.memory, self.name, trust), self.name, self.step.options)

    def trust_of(self, result: str) -> str:
        """How far what it returned is to be trusted."""
        return TRUST[0] if self.memory is None else trust_of_result(result)

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """The checked arguments of a call. ``Invalid`` tells the model what is wrong."""
        if call.invalid:
            raise Invalid(f"the arguments could not be read: {call.invalid}")
        if self.takes is None:
            return call.arguments
        try:
            given = msgspec.convert(call.arguments, self.takes, strict=False)
        except msgspec.ValidationError as error:
            raise Invalid(f"the arguments do not fit: {error}") from error
        return {name: getattr(given, name) for name in call.arguments}


class Toolbox:
    """The tools of one session, by name."""

    def __init__(self, tools: Iterable[Any] = (), core: Core | None = None) -> None:
        self._tools: dict[str, Tool] = {}
        if not isinstance(tools, list | tuple):
            raise Invalid(f"tools are given as a list, not as {type(tools).__name__}")
        for given in tools:
            if isinstance(given, Memories) and core is not None and given.core is not core:
                raise Invalid("the memory handle among the tools belongs to another store than the thread")
            for tool in _of_memory(given) if isinstance(given, Memories) else (_of_function(given),):
                if tool.name in self._tools:
                    raise Invalid(f"two tools are called {tool.name!r}; give one of them another name")
                self._tools[tool.name] = tool

    def __bool__(self) -> bool:
        return bool(self._tools)

    def add(self, fn: Step) -> None:
        """Add a tool of the session's own, unless the caller has one of that name."""
        tool = _of_function(fn)
        self._tools.setdefault(tool.name, tool)

    def definitions(self) -> list[dict[str, Any]]:
        return [tool.definition for tool in self._tools.values()]

    def tokens(self, count: Callable[[str], int]) -> int:
        """What the definitions take."""
        return count(msgspec.json.encode(self.definitions()).decode())

    def named(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def find(self, name: str) -> Tool:
        if name not in self._tools:
            raise Invalid(f"there is no tool {name!r}; there are {', '.join(self._tools) or 'none'}")
        return self._tools[name]


def _of_function(given: Any) -> Tool:
    if not isinstance(given, Step):
        raise Invalid(
            f"tool {quoted(getattr(given, '__name__', given))}: declare its effect with "
            "@holdfast.step(effect=…): pure, idempotent or once"
        )
    if is_async(given.fn):
        raise Invalid(f"tool {given.name!r} is an async function: give a blocking one, as with asyncio.run")
    if not _NAME.fullmatch(given.name):
        raise Invalid(f"tool {given.name!r}: a name has at most 64 letters, digits, _ and -")
    takes = _takes(given)
    text = inspect.getdoc(given.fn) or given.name.replace("_", " ")
    step = Step(_storing(given.fn), given.name, given.options)
    return Tool(given.name, _definition(given.name, text[:_LONG], _schema(takes)), takes, step)


def _storing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a result that can always be recorded: anything but data becomes the text the model sees."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        try:
            encode(schemas.dump(result))
        except Invalid:
            return str(result).encode(errors="replace").decode()
        return result

    return call


def _takes(step: Step) -> type[msgspec.Struct]:
    """What a function takes, as a type that arguments can be checked against."""
    hints = _hints(step.fn)
    fields: list[Any] = []
    for name, parameter in inspect.signature(step.fn).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise Invalid(f"tool {step.name!r}: a model gives arguments by name, so it cannot take {parameter}")
        if name == "self" and _is_method(step.fn):
            raise Invalid(f"tool {step.name!r} is a method: give a function that calls it")
        kind, default = hints.get(name, Any), parameter.default
        if isinstance(default, list | dict | set):  # not shared between two calls
            default = msgspec.field(default_factory=functools.partial(copy.copy, default))
        fields.append((name, kind) if parameter.default is parameter.empty else (name, kind, default))
    try:
        return msgspec.defstruct(step.name, fields, forbid_unknown_fields=True, kw_only=True)
    except TypeError as error:
        raise Invalid(f"tool {step.name!r}: {error}") from error


def _is_method(fn: Callable[..., Any]) -> bool:
    """Whether a function was defined in a class, so that its first argument is an object of it."""
    place = getattr(fn, "__qualname__", "").rpartition(".")[0]
    return bool(place) and not place.endswith("<locals>")


def _hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(fn, include_extras=True)  # what Annotated says is checked too
    except Exception as error:  # a name that no longer exists, or something that is no type
        raise Invalid(f"tool {getattr(fn, '__name__', fn)!r}: its annotations cannot be read: {error}") from error


def _schema(takes: type[msgspec.Struct]) -> dict[str, Any]:
    try:
        (found,), parts = msgspec.json.schema_components([takes], ref_template="#/$defs/{name}")
    except TypeError as error:
        what = str(error).splitlines()[0]
        raise Invalid(f"tool {takes.__name__!r}: a model cannot give these arguments: {what}") from error
    own = parts.pop(takes.__name__, found)
    schema = {name: value for name, value in own.items() if name != "title"}
    return {**schema, "$defs": parts} if parts else schema


def _definition(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def _of_memory(memory: Memories) -> Iterable[Tool]:
    """The tools of a memory handle. Each use has a name, so that it is remembered once, however often it runs."""
    for definition in memory.tools("openai"):
        name = definition["function"]["name"]
        step = Step(_using(memory, name), name, {"effect": "idempotent"})
        yield Tool(name, definition, None, step, memory)


def _using(memory: Memories, name: str, trust: str = "stated") -> Callable[..., str]:
    def use(**arguments: Any) -> str:
        from holdfast.steps.step_context import current_step  # noqa: PLC0415

        step = current_step()
        return memory.use(name, arguments, origin={"by": "agent", "tool": name}, trust=trust, once=step.key)

    return use


def shown(result: Any) -> str:
    """A tool's result, as a model sees it."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


_LINES = 80
_LONG_LOOKUP = 8_000


def lookup_tool(thread: Thread, results: Mapping[str, str], elsewhere: Callable[[str], str | None]) -> Step:
    """A tool that reads entries of a thread, of others that its user may see, and results of the turn under way."""

    @step("look_up", effect="pure")
    def look_up(ref: str, find: str = "", line: int = 1, lines: int = _LINES) -> str:
        """Read the whole text of something that is shown in short here: a masked tool result, a cited entry or file.

        ref is THREAD#NUMBER, like trip-42#17, with the thread under whose heading it is shown; #17 alone is of this
        conversation, FOLDER/PATH@VERSION a file, and the id of a call a result of this turn. find gives only the lines
        that contain a text, with their numbers. line and lines say which lines to read.
        """
        return excerpted(_text(thread, results, elsewhere, ref), find, line, lines)

    return look_up


def _text(thread: Thread, results: Mapping[str, str], elsewhere: Callable[[str], str | None], ref: str) -> str:
    if ref in results:
        return results[ref]
    name, _, number = ref.strip().rpartition("#")
    is_file = "/" in ref and ref.strip().rpartition("@")[2].isdecimal()
    if not number.isdecimal() and not is_file:
        raise Invalid(f"{ref!r} is not THREAD#NUMBER, #NUMBER, FOLDER/PATH@VERSION or the id of a call of this turn")
    if is_file or name not in ("", thread.id):
        text = elsewhere(ref.strip())
        if text is None:
            raise Invalid(f"there is no {'file' if is_file else 'entry'} {ref!r} here")
        return text
    try:
        entry = thread.entry(int(number))
    except NotFound as error:
        raise Invalid(str(error)) from error
    return spoken(entry.kind, entry.content)


def excerpted(text: str, find: str, line: int, lines: int) -> str:
    """Some lines of a text, each with its number, and a note of what is left out."""
    every = list(enumerate(text.splitlines() or [""], 1))
    if find:
        chosen = [(number, content) for number, content in every if find.casefold() in content.casefold()]
    else:
        chosen = every[max(0, line - 1) :]
    shown: list[str] = []
    size = 0
    for number, content in chosen[: max(1, lines)]:
        size += len(content) + 8
        if size > _LONG_LOOKUP and shown:
            break
        shown.append(f"{number}: {content[:_LONG_LOOKUP]}")
    left = len(chosen) - len(shown)
    head = f"{len(every):,} lines" if not find else f"{len(chosen):,} of {len(every):,} lines contain {find!r}"
    return "\n".join([f"[{head}{f'; {left:,} more are not shown' if left else ''}]", *shown])
