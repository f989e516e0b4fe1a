"""Every error that Holdfast raises, in one tree whose branches say what you can do.

    HoldfastError
    ├── Conflict            someone else changed it: read again, then retry
    │   ├── RunHeld         another process works on this run: wait, or work on another
    │   ├── ThreadHeld      another caller holds this thread: wait for it
    │   ├── Fenced          another process took over this run: stop, you can no longer write to it
    │   └── NotSaved        the step is done, but the state or entries it saves with its completion were refused
    ├── Unavailable         the store cannot answer now: retry later
    │   ├── QuotaExceeded   the tenant has reached its limit: make room, or raise the limit
    │   ├── OutcomeUnknown  a commit may or may not have happened: retry with the same key
    │   └── ModelFailed     a language model gave no usable answer: the question is kept, ask again
    ├── NotFound            there is no such thing
    │   ├── Erased          it was erased, and stays erased
    │   └── FeedTrimmed     that part of the feed was dropped: continue from where it begins now
    ├── Invalid             fix the call
    │   ├── KeyReused       this key already names other content
    │   ├── TooLarge        over a size limit
    │   ├── BudgetTooSmall  the budget is too small for the required parts of a context
    │   ├── StepChanged     this step is recorded with other input
    │   ├── ResultInvalid   a step returned something that cannot be stored
    │   └── RunEnded        the run is over
    ├── SchemaError         stored state and today's code do not match
    │   ├── SchemaUnknown   no such schema is registered
    │   ├── SchemaTooNew    written by newer code
    │   ├── MigrationMissing  a gap in the chain of migrations
    │   ├── MigrationFailed   a migration raised
    │   └── StateInvalid    the value does not validate
    ├── StepError           a step or a run did not complete
    │   ├── StepFailed      the step failed and its retries are used up: handle it, or reopen the run
    │   ├── StepTimeout     the step took longer than allowed
    │   ├── StepUnknown     it is unknown whether the step happened: find out, then settle it
    │   ├── WaitTimedOut    the signal did not come in time
    │   ├── Cancelled       the run was cancelled: stop here
    │   ├── BudgetExceeded  the subtask used more than its budget
    │   └── ReplayDiverged  today's code does not do what was recorded
    ├── Stale               facts must be verified before acting on them
    ├── Unsupported         another engine, or an extra, is needed
    ├── Corrupt             stop, and run verify
    └── Misconfigured       fix how the store is opened
        └── FileGone        the file of an open store was moved, deleted or replaced: find out why, then reopen

Each class has a stable ``code`` and says whether retrying can help. Facts are attributes, so you need not parse a
message; a class's docstring is its default message. Whatever the input, a message can be printed, echoes little of the
input and shows no password. Deliberately absent: exit codes and HTTP statuses (the doors map those), and names that
shadow builtins.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

_MOST = 1_000  # characters of a message
_ECHOED = 200  # of those, for one echoed value
_ECHO = re.compile(rf"(?<!\w)'[^'\n]*'|(?<!\w)\"[^\"\n]*\"|[^\s'\"]{{{_ECHOED + 1},}}")
"""What a message may echo: something in quotation marks, short ones too, so that pairs stay pairs; or one long word."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SECRETS = (
    (re.compile(r"(://[^\s/:@]*:)[^\n]*@"), r"\1***@"),  # to the last @: a password may hold anything
    (re.compile(r"(/[^\s/:@]*:)[^\s'\"]*@"), r"\1***@"),  # an address that was taken for a path
    (re.compile(r"(?i)(passw(?:or)?d\s*=\s*)('[^'\n]*'|[^\s&]+)"), r"\1***"),
)


def quoted(value: object) -> str:
    """A value as a message shows it: shortened, even if its own repr fails."""
    try:
        text = repr(value)
    except Exception:  # the caller's type may raise, a number have too many digits
        text = f"<{type(value).__name__}>"
    return _cut(text, _ECHOED)


def _cut(text: str, most: int) -> str:
    """The beginning and the end of a text; the end often says what to do."""
    return text if len(text) <= most else f"{text[: most * 2 // 3]}…{text[1 - most // 3 :]}"


def _message(text: str) -> str:
    """A message that can be printed anywhere, is not too long, and shows no password."""
    for pattern, mask in _SECRETS:
        text = pattern.sub(mask, text)
    text = _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return _cut(_ECHO.sub(lambda found: _cut(found[0], _ECHOED), text), _MOST)


class HoldfastError(Exception):
    """Something went wrong in Holdfast."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        super().__init__(_message(str(message)) if message else (self.__doc__ or "").strip().splitlines()[0])
        self.facts = facts

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(f"{type(self).__name__} has no fact {name!r}")

    def again(self) -> HoldfastError:
        """A copy of the error for another thread: an exception object belongs to the thread that raises it."""
        twin = type(self)(str(self), **self.facts)
        twin.__cause__ = self.__cause__
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.facts)


def _rebuild(kind: type[HoldfastError], message: str, facts: dict[str, Any]) -> HoldfastError:
    return kind(message, **facts)


class Conflict(HoldfastError):
    """Someone else changed this first. Read it again and retry."""

    code = "conflict"
    retryable = True


class RunHeld(Conflict):
    """Another process holds this run."""

    code = "run_held"


class ThreadHeld(Conflict):
    """Another caller holds this thread."""

    code = "thread_held"


class Fenced(Conflict):
    """Another process took over this run. This process can no longer write to it."""

    code = "fenced"
    retryable = False


class NotSaved(Conflict):
    """The step is done, but the state or entries it saves with its completion were refused."""

    code = "not_saved"
    retryable = False


class Unavailable(HoldfastError):
    """The store cannot answer right now. Retry later."""

    code = "unavailable"
    retryable = True


class QuotaExceeded(Unavailable):
    """The tenant has reached its limit."""

    code = "quota_exceeded"
    retryable = False


class OutcomeUnknown(Unavailable):
    """The connection broke during a commit: it may or may not have happened. Retry with the same key."""

    code = "outcome_unknown"


class ModelFailed(Unavailable):
    """The language model gave no usable answer. The question is kept; ask again."""

    code = "model_failed"


class NotFound(HoldfastError):
    """There is no such thing in this store."""

    code = "not_found"


class Erased(NotFound):
    """This was erased, and stays erased."""

    code = "erased"


class FeedTrimmed(NotFound):
    """That part of the feed was dropped."""

    code = "feed_trimmed"


class Invalid(HoldfastError):
    """The call cannot be carried out as written."""

    code = "invalid"


class KeyReused(Invalid):
    """This key already names other content."""

    code = "key_reused"


class TooLarge(Invalid):
    """This is larger than the store accepts."""

    code = "too_large"


class BudgetTooSmall(Invalid):
    """The budget is too small for the required parts of a context."""

    code = "budget_too_small"


class StepChanged(Invalid):
    """This step is recorded with other input."""

    code = "step_changed"


class ResultInvalid(Invalid):
    """The step returned something that cannot be stored."""

    code = "result_invalid"


class RunEnded(Invalid):
    """The run is over."""

    code = "run_ended"


class SchemaError(HoldfastError):
    """The stored state and today's code do not match."""

    code = "schema"


class SchemaUnknown(SchemaError):
    """No schema of this name is registered."""

    code = "schema_unknown"


class SchemaTooNew(SchemaError):
    """This state was written by newer code."""

    code = "schema_too_new"


class MigrationMissing(SchemaError):
    """The chain of migrations has a gap."""

    code = "migration_missing"


class MigrationFailed(SchemaError):
    """A migration raised an error."""

    code = "migration_failed"


class StateInvalid(SchemaError):
    """The value does not fit its schema."""

    code = "state_invalid"


class StepError(HoldfastError):
    """A step or a run did not complete."""

    code = "step"


class StepFailed(StepError):
    """The step failed, and its retries are used up."""

    code = "step_failed"


class StepTimeout(StepError):
    """The step took longer than it was allowed to."""

    code = "step_timeout"


class StepUnknown(StepError):
    """It is unknown whether this step happened. Find out, then settle it."""

    code = "step_unknown"


class WaitTimedOut(StepError):
    """The signal did not come in time."""

    code = "wait_timed_out"


class Cancelled(StepError):
    """The run was cancelled."""

    code = "cancelled"


class BudgetExceeded(StepError):
    """The subtask used more than its budget."""

    code = "budget_exceeded"


class ReplayDiverged(StepError):
    """The code did something that is not recorded for this run."""

    code = "replay_diverged"


class Stale(HoldfastError):
    """Facts in this state are too old to act on."""

    code = "stale"


class Unsupported(HoldfastError):
    """This engine or installation cannot do that."""

    code = "unsupported"


class Corrupt(HoldfastError):
    """Stored data is damaged. Stop, and run verify."""

    code = "corrupt"


class Misconfigured(HoldfastError):
    """The store cannot be opened this way."""

    code = "misconfigured"


class FileGone(Misconfigured):
    """The file of this store was moved, deleted or replaced while the store was open. Open it again."""

    code = "file_gone"
