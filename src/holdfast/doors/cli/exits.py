"""Which exit code means what. Scripts rely on these numbers, so they stay.

One mapping from an error's code to an exit code, complete for every class in ``errors.py`` (a test looks).
Deliberately absent: anything that prints or ends the process.
"""

from __future__ import annotations

from holdfast.errors import HoldfastError

OK = 0
NO = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
UNAVAILABLE = 5
CORRUPT = 6
SCHEMA = 7
STALE = 8
UNSUPPORTED = 9
MISCONFIGURED = 10
UNFINISHED = 11
INTERNAL = 70
INTERRUPTED = 130
READER_GONE = 141  # 128 + SIGPIPE, what a shell reports for any other program whose reader left

MEANINGS: dict[int, str] = {
    OK: "done",
    NO: "the answer is no: verify or the demo found a fault, git did not commit, or you said no",
    USAGE: "wrong usage: an option, an argument or a value",
    NOT_FOUND: "not found: a store, thread, entry, revision, checkpoint, run or memory",
    CONFLICT: "another process changed it first, or it already exists",
    UNAVAILABLE: "the store or a model cannot answer now; try again later",
    CORRUPT: "stored data or a file is damaged",
    SCHEMA: "a stored state does not fit its schema",
    STALE: "facts are too old to act on",
    UNSUPPORTED: "this needs another engine, or an extra",
    MISCONFIGURED: "the store cannot be opened with these settings",
    UNFINISHED: "a step or run did not finish: it failed, stopped, timed out or was cancelled",
    INTERNAL: "a fault in Holdfast itself",
    INTERRUPTED: "interrupted from the keyboard",
    READER_GONE: "the reader of the output went away",
}

BY_CODE: dict[str, int] = {
    "error": INTERNAL,
    "internal": INTERNAL,
    "usage": USAGE,
    "invalid": USAGE,
    "key_reused": USAGE,
    "too_large": USAGE,
    "quota_exceeded": USAGE,
    "budget_too_small": USAGE,
    "step_changed": USAGE,
    "result_invalid": USAGE,
    "run_ended": USAGE,
    "not_found": NOT_FOUND,
    "erased": NOT_FOUND,
    "feed_trimmed": NOT_FOUND,
    "conflict": CONFLICT,
    "run_held": CONFLICT,
    "thread_held": CONFLICT,
    "fenced": CONFLICT,
    "not_saved": CONFLICT,
    "unavailable": UNAVAILABLE,
    "outcome_unknown": UNAVAILABLE,
    "model_failed": UNAVAILABLE,
    "corrupt": CORRUPT,
    "schema": SCHEMA,
    "schema_unknown": SCHEMA,
    "schema_too_new": SCHEMA,
    "migration_missing": SCHEMA,
    "migration_failed": SCHEMA,
    "state_invalid": SCHEMA,
    "step": UNFINISHED,
    "step_failed": UNFINISHED,
    "step_timeout": UNFINISHED,
    "step_unknown": UNFINISHED,
    "wait_timed_out": UNFINISHED,
    "cancelled": UNFINISHED,
    "budget_exceeded": UNFINISHED,
    "replay_diverged": UNFINISHED,
    "stale": STALE,
    "unsupported": UNSUPPORTED,
    "misconfigured": MISCONFIGURED,
    "file_gone": MISCONFIGURED,
}


def exit_code(error: HoldfastError) -> int:
    """Return the exit code of an error; a class of someone else's counts as the nearest class of ours."""
    for kind in type(error).__mro__:
        code = BY_CODE.get(getattr(kind, "code", ""))
        if code is not None:
            return code
    return INTERNAL
