"""What a step declares about itself: its effect, how to find out whether it happened, and how hard to try.

A declaration is checked when it is made, before anything is recorded: a ``once`` step with neither a probe nor a policy
is refused. Deliberately absent: a default effect. Guessing one is how bookings get made twice.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, NoReturn, cast, get_args
from weakref import WeakKeyDictionary

import msgspec

from holdfast.checks import check_whole, is_seconds
from holdfast.engine.codec import encode
from holdfast.errors import Invalid, quoted
from holdfast.ids import check_id
from holdfast.ledger import typed

Effect = Literal["pure", "idempotent", "once"]
OnUnknown = Literal["stop", "rerun", "skip"]
_EFFECTS, _POLICIES = get_args(Effect), get_args(OnUnknown)
UNDO = ":undo"
PROBE_TIMEOUT_S = 30.0


class Done(msgspec.Struct, frozen=True):
    """A probe's answer "it happened, with this result". You need it only when the result itself is None."""

    result: Any = None


class Unknown(Exception):
    """Raised by a probe that cannot say whether the step happened."""


class NotDone(Exception):
    """Raised by the function of a ``once`` step that failed, for certain, before anything happened.

    Any other error leaves that open: a lost answer looks just like a refusal.
    """


class Retry(msgspec.Struct, frozen=True):
    """How often to try a step, and how long to wait in between: ``delay_s``, then ``factor`` times more each time."""

    attempts: int = 3
    delay_s: float = 1.0
    factor: float = 2.0
    longest_s: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)

    def after(self, attempt: int) -> float:
        """The seconds to wait after a failed attempt."""
        check_whole("an attempt", attempt)
        if not self.delay_s:
            return 0.0
        try:
            return min(self.longest_s, self.delay_s * self.factor ** (attempt - 1))
        except OverflowError:
            return self.longest_s


ONCE_ONLY = Retry(attempts=1)


class Spec(msgspec.Struct, frozen=True):
    """A step's declaration, apart from its function and input."""

    name: str
    effect: Effect
    probe: Callable[..., Any] | None = None
    on_unknown: OnUnknown = "stop"
    retry: Retry = ONCE_ONLY
    timeout_s: float | None = None
    probe_timeout_s: float = PROBE_TIMEOUT_S
    compensate: Any = None
    returns: Any = None
    log: Any = True


def declare(name: str, fn: Callable[..., Any], options: dict[str, Any]) -> Spec:
    """Check a declaration and complete it from the function's decorator."""
    declared = dict(fn.options) if isinstance(fn, Step) else {}
    chosen = {**declared, **{what: value for what, value in options.items() if value is not None}}
    check_id(name, "step name")
    effect = chosen.pop("effect", None)
    if not isinstance(effect, str) or effect not in _EFFECTS:
        _refuse(name, f"declare its effect: pure, idempotent or once, not {quoted(effect)}")
    on_unknown = chosen.pop("on_unknown", None)
    probe = chosen.get("probe")
    if effect == "once" and probe is None and on_unknown is None:
        _refuse(
            name,
            "a once step needs a probe (a function that asks the outside world whether it happened), or on_unknown: "
            "stop, rerun or skip",
        )
    if on_unknown is not None and not (isinstance(on_unknown, str) and on_unknown in _POLICIES):
        _refuse(name, f"on_unknown is stop, rerun or skip, not {quoted(on_unknown)}")
    if not callable(fn):
        _refuse(name, f"its function is {quoted(fn)}, which cannot be called")
    for what in ("probe", "compensate"):
        if chosen.get(what) is not None and not callable(chosen[what]):
            _refuse(name, f"{what} is {quoted(chosen[what])}, which cannot be called")
    chosen["retry"] = _retry(name, chosen.get("retry"))
    for what in ("timeout_s", "probe_timeout_s"):
        _check_seconds(name, what, chosen.get(what))
    _check_result(name, chosen.get("returns"), chosen.get("log", True))
    if "returns" not in chosen:
        chosen["returns"] = _annotated(fn)
    return Spec(name=name, effect=cast(Effect, effect), on_unknown=cast(OnUnknown, on_unknown or "stop"), **chosen)


def _refuse(name: str, why: str) -> NoReturn:
    raise Invalid(f"step {name!r}: {why}", step=name)


def _retry(name: str, retry: Any) -> Retry:
    if retry is None:
        return ONCE_ONLY
    if type(retry) is int:
        retry = Retry(attempts=retry)
    if not isinstance(retry, Retry) or type(retry.attempts) is not int or retry.attempts < 1:
        _refuse(name, f"retry is a number of attempts, 1 or more, or a holdfast.Retry, not {quoted(retry)}")
    for what in ("delay_s", "factor", "longest_s"):
        if not is_seconds(getattr(retry, what)):
            _refuse(name, f"the {what} of its retry is a number, 0 or more, not {quoted(getattr(retry, what))}")
    kinds = retry.on if isinstance(retry.on, tuple) else (retry.on,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        _refuse(name, f"the on of its retry is one or more exception classes, not {quoted(retry.on)}")
    return retry


def _check_seconds(name: str, what: str, value: Any) -> None:
    if value is not None and not (is_seconds(value) and value > 0):
        _refuse(name, f"{what} is a number of seconds over 0, not {quoted(value)}")


def _check_result(name: str, returns: Any, log: Any) -> None:
    if returns is not None and not (isinstance(returns, type) and typed.fields(returns) is not None):
        _refuse(name, f"returns is a dataclass, a Struct, a TypedDict or a pydantic model, not {quoted(returns)}")
    if not isinstance(log, bool) and not callable(log):
        _refuse(name, f"log is False, or a function from the result to the content to log, not {quoted(log)}")


def _annotated(fn: Callable[..., Any]) -> Any:
    """The return type of a function, if plain data can be turned back into it."""
    target = fn.fn if isinstance(fn, Step) else fn
    if "return" not in getattr(target, "__annotations__", ()):
        return None
    try:
        hinted = inspect.get_annotations(target, eval_str=True).get("return")
    except Exception:  # a name that only a type checker knows, or a builtin
        return None
    return hinted if isinstance(hinted, type) and typed.fields(hinted) is not None else None


OPTIONS = frozenset(Spec.__struct_fields__) - {"name"}


class Step:
    """A function with its declaration. Inside a run, a call to it is a durable step of that run."""

    def __init__(self, fn: Callable[..., Any], name: str, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.name, self.options = fn, name, options

    def named(self, name: str) -> Step:
        """The same step under another name, for a second use in one run."""
        return Step(self.fn, name, self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from holdfast.steps.step_context import running  # noqa: PLC0415 - what is current knows this class

        for what in kwargs:
            if what in OPTIONS:
                _refuse(self.name, f"its argument {what!r} has the name of an option; pass it by position")
        return running(self.name).step(self.name, self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"Step({self.name!r}, effect={self.options.get('effect')!r})"


def step(  # noqa: PLR0913 - a declaration has many options, each by name
    name: str | None = None,
    *,
    effect: Effect,
    probe: Callable[..., Any] | None = None,
    on_unknown: OnUnknown | None = None,
    retry: int | Retry | None = None,
    timeout_s: float | None = None,
    probe_timeout_s: float | None = None,
    compensate: Callable[..., Any] | None = None,
    returns: Any = None,
    log: Any = None,
) -> Callable[[Callable[..., Any]], Step]:
    """Declare a function as a step: ``@holdfast.step(effect="once", probe=find_charge)``.

    Inside a run (``with thread.run(…)``, or a handler), a call to the function is then a durable step, named after the
    function or by the name you give here. ``run.step(name, function, …)`` uses the declaration too.
    """
    options = {
        "effect": effect, "probe": probe, "on_unknown": on_unknown, "retry": retry, "timeout_s": timeout_s,
        "probe_timeout_s": probe_timeout_s, "compensate": compensate, "returns": returns, "log": log,
    }  # fmt: skip
    options = {what: value for what, value in options.items() if value is not None}
    if name is not None and not isinstance(name, str):
        raise Invalid("give the effect: write @holdfast.step(effect=…) above the function")

    def decorate(fn: Callable[..., Any]) -> Step:
        chosen = name or fn.__name__
        declare(chosen, fn, options)  # refuse it where it is written, not when it first runs
        return Step(fn, chosen, options)

    return decorate


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling a function returns something to await."""
    target = fn.fn if isinstance(fn, Step) else fn
    while isinstance(target, functools.partial):
        target = target.func
    if type(target) is FunctionType and not hasattr(target, "_is_coroutine_mark"):  # the common case, on a hot path
        return bool(target.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004 - asked of the method, to see what it gives


def refuse_async(spec: Spec, fn: Callable[..., Any]) -> None:
    """Refuse, before anything is recorded, functions that a blocking run cannot call."""
    for what, called in (("function", fn), ("probe", spec.probe), ("compensation", spec.compensate)):
        if called is not None and is_async(called):
            _refuse(spec.name, f"its {what} is async and needs an async run (holdfast.aio)")


# Weak, because a function often refers to its run, and a referenced run keeps its lease.
_signatures: WeakKeyDictionary[Any, inspect.Signature | None] = WeakKeyDictionary()


def _takes(fn: Callable[..., Any], count: int) -> bool:
    """Whether a function plainly takes that many arguments; False when that needs a closer look."""
    if type(fn) is not FunctionType or fn.__code__.co_kwonlyargcount or hasattr(fn, "__wrapped__"):
        return False
    most = fn.__code__.co_argcount
    return most - len(fn.__defaults__ or ()) <= count <= most


def _signature(fn: Callable[..., Any]) -> inspect.Signature | None:
    if fn not in _signatures:
        try:
            _signatures[fn] = inspect.signature(fn)
        except (ValueError, TypeError):  # some builtins have none
            _signatures[fn] = None
    return _signatures[fn]


def refuse_calls(spec: Spec, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse, before anything is recorded, a step whose function, probe or compensation could not be called."""
    _refuse_call(spec.name, "function", fn, args, kwargs)
    if spec.probe is not None:
        _refuse_call(spec.name, "probe", spec.probe, args, kwargs)
    if spec.compensate is not None:
        _refuse_call(spec.name, "compensation", spec.compensate, (None,), {})


def _refuse_call(name: str, what: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that a function does not take, such as a misspelt option."""
    if not kwargs and _takes(fn, len(args)):
        return
    try:
        signature = _signature(fn)
    except TypeError:  # an unhashable callable cannot be cached
        return
    try:
        if signature is not None:
            signature.bind(*args, **kwargs)
    except TypeError as error:
        given = {"function": "these arguments", "probe": "the arguments of the step", "compensation": "the result"}
        hint = f"; the options of a step are {_OPTIONS}" if what == "function" else ""
        _refuse(name, f"its {what} does not take {given[what]}: {error}{hint}")


_OPTIONS = "effect, probe, on_unknown, retry, timeout_s, probe_timeout_s, compensate, returns and log"


def fingerprint(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A short digest of a step's input, to notice when the input changes."""
    given = [list(args), dict(sorted(kwargs.items()))]
    try:
        body = _encoded(given, f"the input of step {name!r}")
    except Invalid as error:
        raise Invalid(
            f"step {name!r}: its input must be plain or typed data, so that it can be compared on resume ({error}); "
            "bind anything else with functools.partial",
            step=name,
        ) from error
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _encoded(given: list[Any], what: str) -> bytes:
    try:
        return encode(given, what)
    except Invalid:
        return encode(typed.to_plain(given), what)  # dates, sets and typed values compare by content


def key_of(tenant: str, stream: int, name: str) -> str:
    """The key with which the outside world recognises a repetition: the same for every attempt at one step of a run."""
    text = f"{tenant}\x00{stream}\x00{name}".encode()
    return f"hf-{hashlib.blake2b(text, digest_size=16).hexdigest()}"
