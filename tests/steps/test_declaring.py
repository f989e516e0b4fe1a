"""What a step declares, and what is refused before anything is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.thread import replay

pytestmark = pytest.mark.usefixtures("any_engine")


def three() -> int:
    return 3


def add(one: int, two: int = 0) -> int:
    return one + two


def test_an_effect_is_never_guessed(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    with pytest.raises(errors.Invalid, match="declare its effect"):
        run.step("s", three)
    with pytest.raises(errors.Invalid, match="declare its effect"):
        run.step("s", three, effect="twice")  # type: ignore[arg-type]
    assert len(thread.timeline("r").moments) == 1


def test_once_needs_a_probe_or_a_policy(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    with pytest.raises(errors.Invalid, match="needs a probe"):
        run.step("s", three, effect="once")
    with pytest.raises(errors.Invalid, match="needs a probe"):
        holdfast.step(effect="once")(three)
    assert run.step("a", three, effect="once", probe=lambda: None) == 3
    assert run.step("b", three, effect="once", on_unknown="skip") == 3


BAD: dict[str, list[Any]] = {
    "on_unknown": ["give up", 1],
    "probe": [5, "probe"],
    "compensate": [5],
    "retry": [0, -1, 2.5, "3", True, holdfast.Retry(attempts=0), holdfast.Retry(delay_s=-1),
              holdfast.Retry(factor=float("inf")), holdfast.Retry(longest_s=float("nan")),
              holdfast.Retry(on=("ValueError",)), holdfast.Retry(on=(KeyboardInterrupt,))],
    "timeout_s": [0, -1, "1", True, float("nan"), float("inf")],
    "returns": [5, "Ticket", int],
    "log": [5, "yes"],
}  # fmt: skip


@pytest.mark.parametrize(("option", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_wrong_options_are_refused_where_they_are_written(thread: holdfast.Thread, option: str, value: Any) -> None:
    run: Any = thread.run("r")
    with pytest.raises(errors.Invalid, match="'s'"):
        run.step("s", three, effect="pure", **{option: value})
    with pytest.raises(errors.Invalid, match="'three'"):
        holdfast.step(effect="pure", **{option: value})(three)
    assert len(thread.timeline("r").moments) == 1


@pytest.mark.parametrize("name", ["", "a\x00b", 5, "x" * 600, "\ud800", "book:undo"])
def test_wrong_names_are_refused(thread: holdfast.Thread, name: Any) -> None:
    run = thread.run("r")
    with pytest.raises(errors.Invalid):
        run.step(name, three, effect="pure")
    assert len(thread.timeline("r").moments) == 1


@pytest.mark.parametrize("name", ["", "a\x00b", 5, "x" * 600])
def test_wrong_names_of_runs_are_refused(thread: holdfast.Thread, name: Any) -> None:
    for act in (thread.run, thread.submit):
        with pytest.raises(errors.Invalid):
            act(name)
    assert not thread.exists()


def test_a_step_needs_a_function_of_this_kind_of_run(thread: holdfast.Thread) -> None:
    async def later(*_: Any) -> None: ...

    run = thread.run("r")
    for option in ("probe", "compensate"):
        with pytest.raises(errors.Invalid, match="async"):
            run.step("s", three, effect="pure", **{option: later})  # type: ignore[arg-type]
    with pytest.raises(errors.Invalid, match="cannot be called"):
        run.step("s", 5, effect="pure")  # type: ignore[arg-type]
    with pytest.raises(errors.Invalid, match="async"):
        run.step("s", later, effect="pure")
    assert len(thread.timeline("r").moments) == 1


def test_arguments_that_the_function_does_not_take_are_refused_before_it_is_begun(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    for args, kwargs in (((), {}), ((1, 2, 3), {}), ((1,), {"on_unkown": "stop"})):
        with pytest.raises(errors.Invalid, match="does not take these arguments"):
            run.step("s", add, *args, effect="pure", **kwargs)  # type: ignore[arg-type]
    with pytest.raises(errors.Invalid, match="its probe does not take"):
        run.step("s", add, 1, effect="once", probe=three)
    with pytest.raises(errors.Invalid, match="its compensation does not take"):
        run.step("s", add, 1, effect="pure", compensate=three)
    assert run.step("s", add, 1, two=2, effect="pure", compensate=[].append) == 3
    assert run.step("builtin", max, 1, 2, effect="pure") == 2
    assert len(thread.timeline("r").steps) == 2


def test_input_must_be_comparable(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    with pytest.raises(errors.Invalid, match=r"functools\.partial"):
        run.step("s", lambda x: 1, object(), effect="pure")
    assert len(thread.timeline("r").moments) == 1


def test_input_may_be_typed_and_is_compared_by_what_it_stands_for(thread: holdfast.Thread) -> None:
    import datetime  # noqa: PLC0415

    run = thread.run("r")
    run.step("s", lambda day, tags: 1, datetime.date(2026, 1, 1), tags={"b", "a"}, effect="pure")
    run.step("s", lambda day, tags: 1, datetime.date(2026, 1, 1), tags={"a", "b"}, effect="pure")
    with pytest.raises(errors.StepChanged):
        run.step("s", lambda day, tags: 1, datetime.date(2026, 1, 2), tags={"a", "b"}, effect="pure")


# The decorator


def test_calling_a_declared_function_in_a_run_is_a_step(process: Any, other: Any) -> None:
    calls: list[int] = []

    @holdfast.step(effect="once", on_unknown="stop")
    def book(seat: int) -> int:
        """Book a seat."""
        calls.append(seat)
        return seat

    with process.thread().run("r"):
        assert book(4) == 4
        assert book(4) == 4
        with pytest.raises(errors.StepChanged):
            book(5)
        assert book.named("book another")(5) == 5
    assert calls == [4, 5]
    assert (book.__name__, book.__doc__, book.name) == ("book", "Book a seat.", "book")
    assert [step.name for step in other.thread().run("r").steps] == ["book", "book another"]


def test_a_declared_function_outside_a_run_says_so(thread: holdfast.Thread) -> None:
    @holdfast.step("my step", effect="pure")
    def plain(number: int) -> int:
        return number

    with pytest.raises(errors.Invalid, match="outside a run"):
        plain(1)
    assert plain.fn(1) == 1
    with thread.run("r"):
        plain(1)
    with pytest.raises(errors.Invalid, match="outside a run"):
        plain(1)
    assert [step.name for step in thread.run("r").steps] == ["my step"]


def test_a_declaration_can_be_used_under_a_name_and_changed(thread: holdfast.Thread) -> None:
    tries: list[int] = []

    @holdfast.step(effect="idempotent", retry=3)
    def fails() -> None:
        tries.append(1)
        raise ValueError

    run = thread.run("r")
    with pytest.raises(errors.StepFailed):
        run.step("three times", fails)
    with pytest.raises(errors.StepFailed):
        run.step("once", fails, retry=1)
    assert len(tries) == 4


def test_an_argument_with_the_name_of_an_option_is_not_swallowed(thread: holdfast.Thread) -> None:
    @holdfast.step(effect="pure")
    def call(log: str, timeout_s: float = 1.0) -> str:
        return f"{log} {timeout_s}"

    with thread.run("r"):
        with pytest.raises(errors.Invalid, match="by position"):
            call("x", timeout_s=2.0)
        with pytest.raises(errors.Invalid, match="by position"):
            call(log="x")
        assert call("x", 2.0) == "x 2.0"


def test_the_decorator_needs_its_parentheses() -> None:
    with pytest.raises(errors.Invalid, match=r"write @holdfast\.step"):
        holdfast.step(three, effect="pure")  # type: ignore[arg-type]


def test_runs_do_not_see_each_others_steps(thread: holdfast.Thread) -> None:
    @holdfast.step(effect="pure")
    def one() -> int:
        return 1

    with thread.run("outer"):
        with thread.run("inner"):
            one()
        one.named("again")()
    assert [step.name for step in thread.run("inner").steps] == ["one"]
    assert [step.name for step in thread.run("outer").steps] == ["again"]


# Runs


def test_a_run_keeps_its_handler_and_input(process: Any, other: Any) -> None:
    run = process.thread().run("r", handler="book", input={"to": "Oslo"})
    assert run.input == {"to": "Oslo"}
    run.release()
    with pytest.raises(errors.Invalid, match="handler"):
        other.thread().run("r", handler="other")
    with pytest.raises(errors.Invalid, match="other input"):
        other.thread().run("r", input={"to": "Rome"})
    again = other.thread().run("r", handler="book", input={"to": "Oslo"})
    assert again.input == {"to": "Oslo"}


def test_an_input_that_cannot_be_stored_begins_nothing(thread: holdfast.Thread) -> None:
    for act in (thread.run, thread.submit):
        with pytest.raises(errors.Invalid):
            act("r", input=object())
    assert not thread.exists()


@pytest.mark.parametrize(
    "act",
    [lambda t: t.timeline("r"), lambda t: replay(t, "r", three), lambda t: t.cancel("r"), lambda t: t.signal("s")],
)
def test_a_run_that_is_not_there_is_not_found(thread: holdfast.Thread, act: Callable[[Any], Any]) -> None:
    with pytest.raises(errors.NotFound):
        act(thread)
    thread.append(holdfast.note("now the thread is there"))
    with pytest.raises(errors.NotFound):
        act(thread)


def test_a_status_that_no_run_has_is_refused(store: holdfast.Store) -> None:
    with pytest.raises(errors.Invalid, match="interrupted"):
        store.runs(status="sleeping")


@pytest.mark.parametrize("seconds", [0, -1, True, "30", float("nan"), float("inf"), 10**9])
def test_a_lease_is_a_sensible_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(errors.Misconfigured):
        holdfast.open("ram:", lease_s=seconds)


def test_a_run_that_ended_here_cannot_be_ended_again(thread: holdfast.Thread) -> None:
    run = thread.run("r")
    run.finish(1)
    assert run.finish(2) == 1
    for act in (run.heartbeat, lambda: run.fail(ValueError()), run.abandon, lambda: run.settle("s", happened=True)):
        with pytest.raises(errors.Invalid):
            act()
    run.release()
    assert thread.timeline("r").result == 1
