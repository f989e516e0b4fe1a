"""What must be done around ``os.fork``, so that a store works on both sides.

A forked child has a copy of everything but the other threads: locks that they held stay locked forever, and what they
were changing stays half changed. Connections are shared with the parent, though each side assumes it has them alone. So
owners of such things register here, and are called before a fork, after it in the parent, and after it in the child.
Locks for data in memory come from ``lock``, and properties that are worked out once from ``cached_property``.
Deliberately absent: order among the registered, and errors; a fork cannot
be refused, so its owner must later refuse whatever could not be made safe.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

Hook = Callable[[], object]
_log = logging.getLogger(__name__)
_FORKS_S = 30.0  # how long one fork waits for another thread's
_process = os.getpid()


Weak = Callable[[], Hook | None]


class _Joined(NamedTuple):
    before: Weak
    in_parent: Weak
    in_child: Weak


# Dictionaries without a lock: single operations on them are whole, and a fork may come at any time.
_numbers = count()
_joined: dict[int, _Joined] = {}
_locks: dict[int, tuple[weakref.ref[threading.RLock], Weak]] = {}
_forking = threading.RLock()


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: PLC0414 - for others to import from here
else:

    class cached_property(functools.cached_property):
        """Python 3.11's holds one lock for all objects while it works a value out: in a child it may stay locked."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            if self.attrname not in instance.__dict__:
                instance.__dict__[self.attrname] = self.func(instance)
            return instance.__dict__[self.attrname]


def join(*, before: Hook | None = None, in_parent: Hook | None = None, in_child: Hook) -> None:
    """Be told of every fork. What a bound method belongs to is not kept alive by this."""
    number = next(_numbers)
    _joined[number] = _Joined(_weak(before), _weak(in_parent), _weak(in_child, _removing(_joined, number)))


def lock(forget: Hook | None = None) -> threading.RLock:
    """A lock for what lives in memory. In a child nobody has it but the thread that forked.

    ``forget`` is called there when another thread had it: what the lock guards may be half changed.
    """
    made, number = threading.RLock(), next(_numbers)
    _locks[number] = (weakref.ref(made, _removing(_locks, number)), _weak(forget))
    return made


def notice() -> None:
    """Find out about a fork that Python was not told of, because other code than Python's made it."""
    if os.getpid() != _process:
        _after_in_child()


def keep_for_ever(*inherited: object) -> None:
    """Keep a reference to what the parent also has, even at interpreter exit: dropping it would close it."""
    if inherited:
        import ctypes  # noqa: PLC0415 - seldom needed

        for one in inherited:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _weak(hook: Hook | None, gone: Callable[[object], None] | None = None) -> Weak:
    """A way to a hook that does not keep alive whose it is. A function has no owner, and stays."""
    owner = getattr(hook, "__self__", None)
    if hook is None or owner is None:
        return lambda: hook
    ref, name = weakref.ref(owner, gone), hook.__name__

    def found() -> Hook | None:
        return None if (owner := ref()) is None else getattr(owner, name)

    return found


def _removing(registry: dict[int, Any], number: int) -> Callable[[object], None]:
    return lambda _: registry.pop(number, None) and None


def _before() -> None:
    _forking.acquire(timeout=_FORKS_S)  # two threads that fork at once do so one after the other
    for joined in list(_joined.values()):
        _call(joined.before())


def _after_in_parent() -> None:
    for joined in list(_joined.values()):
        _call(joined.in_parent())
    with suppress(RuntimeError):  # the other fork took too long
        _forking.release()


def _after_in_child() -> None:
    global _forking, _process
    _process, _forking = os.getpid(), threading.RLock()
    for ref, forget in list(_locks.values()):
        held = ref()
        if held is None or held.acquire(blocking=False):
            if held is not None:
                held.release()  # it was free, or this thread has it and keeps it
            continue
        held._at_fork_reinit()  # type: ignore[attr-defined]
        _call(forget())
    for joined in list(_joined.values()):
        _call(joined.in_child())


def _call(hook: Hook | None) -> None:
    try:
        if hook is not None:
            hook()
    except Exception:  # nobody to report to, and the other hooks must run too
        _log.exception("%r failed at a fork", hook)


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
