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
    NO: "the answer is no: verify or the demo found a fault, git did not commit, or you declined",
    USAGE: "the call cannot be carried out as written",
    NOT_FOUND: "there is no such store, thread, entry, revision, checkpoint, run or memory",
    CONFLICT: "someone else changed it first, or it exists already",
    UNAVAILABLE: "the store, or a model, cannot answer now: try again later",
    CORRUPT: "stored data or a file is damaged",
    SCHEMA: "a stored state and its schema do not fit",
    STALE: "facts are too old to act on",
    UNSUPPORTED: "another engine, or an extra, is needed",
    MISCONFIGURED: "the store cannot be opened this way",
    UNFINISHED: "a step or run did not come to its end: it failed, stopped, timed out or was cancelled",
    INTERNAL: "a fault in Holdfast itself",
    INTERRUPTED: "interrupted from the keyboard",
    READER_GONE: "whoever read the output went away",
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
