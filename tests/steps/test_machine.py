"""Runs under random use, crashes, takeovers, late holders, signals, cancellations and forks, against a model.

The model is the outside world: how often each effect happened, by key. Whatever happens, an effect that is declared
``once`` and has a truthful probe happens at most once, and exactly once when its step is recorded as done; a result
that was seen stays what it is; logs have no gap; and in the end every run comes to its end.
"""

from __future__ import annotations

import contextvars
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock

THREADS = ("t0", "t1")
ONCE = ("a", "x", "c")


class Planned(BaseException):
    """The end of a process that the machine planned, inside a function."""


class Machine(RuleBasedStateMachine):
    def __init__(self, place: Any) -> None:
        super().__init__()
        self.place = type(place)(place.engine, place.url, ManualClock(), place._shared)
        self.clock = self.place.clock
        self.count = 0
        self.effects: Counter[str] = Counter()  # by key
        self.undone: Counter[str] = Counter()
        self.results: dict[tuple[str, str, str], Any] = {}
        self.runs: list[tuple[str, str]] = []
        self.plan: tuple[str, str] | None = None
        self.process = self.fresh()

    def fresh(self) -> Any:
        self.count += 1
        return self.place.process(f"p{self.count}")

    # What the runs do

    def handler(self, run: Any) -> Any:
        self.step(run, "a", effect="once", probe=self.probe, compensate=self.undo)
        self.step(run, "b", effect="idempotent", compensate=self.undo)
        if run.input:
            self.same(run, "go", self.answer(run))
        self.same(run, "sub", run.subtask("sub", self.inner))
        self.step(run, "c", effect="once", probe=self.probe, retry=3)
        return "end"

    def answer(self, run: Any) -> Any:
        try:
            return run.wait("go", timeout_s=10_000)
        except errors.WaitTimedOut:
            return "nobody answered"

    def inner(self, sub: Any) -> Any:
        self.step(sub, "x", effect="once", probe=self.probe)
        return self.step(sub, "y", effect="pure")["step"]

    def step(self, run: Any, name: str, **options: Any) -> Any:
        return self.same(run, name, run.step(name, partial(self.act, run, name), **options))

    def same(self, run: Any, name: str, result: Any) -> Any:
        """What was returned once is what is returned ever after."""
        known = self.results.setdefault((run.thread.id, run.name, name), result)
        assert known == result
        return result

    def act(self, run: Any, name: str) -> Any:
        step = holdfast.current_step()
        self.happens("before", name)
        self.effects[step.key] += 1
        self.happens("after", name)
        return {"step": name, "key": step.key}

    def probe(self) -> Any:
        step = holdfast.current_step()
        return {"step": step.name, "key": step.key} if self.effects[step.key] else None

    def undo(self, result: Any) -> None:
        if result is not None:
            self.undone[result["key"]] += 1

    def happens(self, when: str, name: str) -> None:
        """Carry out what is planned for this moment: the process dies here, fails here, or sleeps past its lease."""
        if self.plan is None or self.plan[1] != f"{when} {name}":
            return
        what, self.plan = self.plan[0], None
        if what == "die":
            self.process.die()
            raise Planned
        if what == "raise":
            raise OSError("planned")
        self.clock.advance(60)
        other = self.fresh()
        contextvars.Context().run(lambda: other.store.resume({"h": self.handler}))
        if when == "before":  # whoever looks before it acts finds out
            holdfast.current_step().heartbeat()

    # What happens to them

    @rule(thread=st.sampled_from(THREADS), waits=st.booleans())
    def submit(self, thread: str, waits: bool) -> None:
        name = f"r{len(self.runs)}"
        self.process.thread(thread).submit(name, handler="h", input=waits)
        self.runs.append((thread, name))

    @rule()
    def resume(self) -> None:
        self.carry_on()

    @rule(
        what=st.sampled_from(("die", "raise", "sleep")),
        when=st.sampled_from(("before", "after")),
        step=st.sampled_from(("a", "b", "x", "y", "c")),
    )
    def resume_with_trouble_inside(self, what: str, when: str, step: str) -> None:
        self.plan = (what, f"{when} {step}")
        self.carry_on()
        self.plan = None

    @rule(when=st.sampled_from(("before", "after")), number=st.integers(1, 14))
    def resume_and_die_at_a_commit(self, when: str, number: int) -> None:
        process, left = self.process, [number]

        def hook(ops: Sequence[Any]) -> None:
            left[0] -= 1
            if left[0] == 0:
                process.die()
                raise Planned

        getattr(process.wire, when).append(hook)
        try:
            self.carry_on()
        finally:
            getattr(process.wire, when).clear()

    def carry_on(self) -> None:
        try:
            report = self.process.store.resume({"h": self.handler})
        except BaseException:
            if not self.process.wire.dead:
                raise
            self.process = self.fresh()
            return
        assert {one.outcome for one in report} <= {"done", "waiting", "cancelled", "lost", "held", "failed"}
        for one in report:
            assert one.outcome != "failed" or "OSError" in one.error or "without progress" in one.error

    @rule(seconds=st.sampled_from((1, 31, 20_000)))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule()
    def the_clock_jumps_back(self) -> None:
        self.clock.set(self.clock.now() - 100_000_000)

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), value=st.integers(0, 3))
    def signal(self, data: Any, value: int) -> None:
        thread, name = data.draw(st.sampled_from(self.runs))
        try:
            sent = self.process.thread(thread).signal("go", value, run=name)
        except errors.RunEnded:
            return
        assert sent.value == self.results.setdefault((thread, name, "go"), sent.value)

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        thread, name = data.draw(st.sampled_from(self.runs))
        try:
            self.process.thread(thread).cancel(name)
        except errors.RunEnded:
            return

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def open_by_name(self, data: Any) -> None:
        thread, name = data.draw(st.sampled_from(self.runs))
        self.by_name(thread, name)

    def by_name(self, thread: str, name: str) -> None:
        try:
            with self.process.thread(thread).run(name) as run:
                run.work.parks = True
                self.handler(run)
        except (errors.RunHeld, errors.Cancelled, errors.RunEnded, holdfast.Suspended):
            return
        except errors.StepFailed:  # it had failed, and was cancelled since: it is undone, and says what it failed with
            assert {info.status for info in self.infos() if (info.thread, info.name) == (thread, name)} == {"cancelled"}

    @precondition(lambda self: self.runs and self.count < 40)
    @rule(thread=st.sampled_from(THREADS))
    def fork(self, thread: str) -> None:
        mine = [name for of, name in self.runs if of == thread]
        if not mine:
            return
        to = f"{thread}-{len(self.runs)}"
        self.process.thread(thread).fork(to)
        for name in mine:
            self.runs.append((to, name))
            for (of, run, step), result in list(self.results.items()):
                if (of, run) == (thread, name):
                    self.forked(to, run, step, result)

    def forked(self, to: str, run: str, step: str, result: Any) -> None:
        """Of the results of the origin, those that are recorded are the fork's too."""
        timeline = self.process.thread(to).timeline(run)
        if any(known.name == step and known.standing == "completed" for known in timeline.steps) or (
            step == "go" and any(moment.kind == "signal" for moment in timeline.moments)
        ):
            self.results[to, run, step] = result

    # What holds at all times

    @invariant()
    def no_once_effect_happens_twice(self) -> None:
        twice = {key for key, times in self.effects.items() if times > 1}
        once = {step.key for thread, run in self.runs for step in self.steps_of(thread, run) if step.effect == "once"}
        assert not twice & once

    def steps_of(self, thread: str, run: str) -> list[Any]:
        """The steps of a run and of its subtask."""
        steps = list(self.process.thread(thread).timeline(run).steps)
        if any(step.effect == "subtask" for step in steps) and self.process.thread(f"{thread}/{run}/sub").exists():
            steps += self.process.thread(f"{thread}/{run}/sub").timeline("sub").steps
        return steps

    @invariant()
    def what_is_recorded_as_done_happened_and_reads_as_it_was_returned(self) -> None:
        for thread, run in self.runs:
            for step in self.steps_of(thread, run):
                if step.standing != "completed" or step.name.endswith(":undo"):
                    continue
                if step.effect == "once":
                    assert self.effects[step.key] == 1
                seen = self.results.get((thread, run, step.name))
                if step.how == "timeout":
                    assert seen in (None, "nobody answered")
                else:
                    assert seen is None or step.how == "dropped" or step.result == seen

    @invariant()
    def logs_have_no_gap(self) -> None:
        for thread in {thread for thread, _ in self.runs}:
            numbers = [entry.number for entry in self.process.thread(thread).log()]
            assert numbers == list(range(1, len(numbers) + 1))

    def teardown(self) -> None:
        try:
            self.every_run_comes_to_its_end()
        finally:
            self.place.close()

    def every_run_comes_to_its_end(self) -> None:
        for _ in range(8):
            self.clock.advance(20_000)
            self.carry_on()
            left = [info for info in self.infos() if info.status not in ("done", "cancelled")]
            if not left:
                break
            for info in left:  # those of forks, and those that failed, go on when someone asks
                self.by_name(info.thread, info.name)
        assert {info.status for info in self.infos()} <= {"done", "cancelled"}
        for info in self.infos():
            self.ended_as_it_should(info)
        self.what_is_recorded_as_done_happened_and_reads_as_it_was_returned()

    def infos(self) -> list[holdfast.types.RunInfo]:
        wanted = set(self.runs)
        return [info for info in self.process.store.runs(limit=None) if (info.thread, info.name) in wanted]

    def ended_as_it_should(self, info: holdfast.types.RunInfo) -> None:
        steps = {step.name: step for step in self.process.thread(info.thread).timeline(info.name).steps}
        if info.status == "done":
            assert {"a", "b", "sub", "c"} <= set(steps)
            assert {step.standing for step in steps.values()} == {"completed"}
            return
        runs = self.process.store.wiring.runs
        record = runs.record(info.thread, info.name)
        journal = runs.journal(record, record.head)
        for step in journal.to_undo():  # of a fork only its own; what it shares is its origin's
            assert step.how == "dropped" or self.undone[step.result["key"]] >= 1


@pytest.mark.every_engine
def test_runs_under_random_use(place: Any) -> None:
    usual = settings.default.max_examples  # type: ignore[union-attr]
    few = place.engine != "ram"
    run_state_machine_as_test(
        partial(Machine, place),
        settings=settings(
            max_examples=max(1, usual // 4) if few else usual,
            stateful_step_count=15 if few else 25,
            suppress_health_check=list(HealthCheck),
        ),
    )
