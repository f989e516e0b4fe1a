"""How much of a window a context takes, and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.context.allowance import Allowance, Cap, by_window, capped, check_cap
from holdfast.context.allowance import given as as_given
from holdfast.context.budget import shares
from holdfast.errors import Invalid, Misconfigured
from holdfast.testing.models import Scripted

windows = st.integers(64, 20_000_000)


@given(windows, st.none() | st.integers(1, 20_000_000))
def test_there_is_always_room_to_answer_and_never_less_for_a_larger_window(window: int, output: int | None) -> None:
    found = by_window("m", window, output)
    assert window // 2 <= found.tokens <= window - min(window // 4, output or window)
    assert by_window("m", window + window // 10, output).tokens >= found.tokens
    assert f"{found.tokens:,}" in found.why
    assert f"{window:,}" in found.why
    assert sum(share.least for share in shares(found.shares).values()) < 1


def test_small_middle_and_large_windows() -> None:
    small, middle, large = by_window("a", 8_192, 4_096), by_window("b", 200_000, 64_000), by_window("c", 1_000_000)
    assert (small.tokens, middle.tokens, large.tokens) == (6_144, 100_000, 500_000)
    recent = [shares(found.shares)["recent"].most for found in (small, middle, large)]
    assert recent == [0.35, 0.60, 0.90]
    assert shares(small.shares)["facts"].least > shares(middle.shares)["facts"].least
    assert "state, facts and hits" in small.why


def test_a_model_that_nobody_knows_gets_little_and_says_so() -> None:
    assert by_window("acme:new", None) == Allowance(
        8_000, "8,000 tokens, because the window of acme:new is not known; give budget=… to choose"
    )
    assert "no model is named" in by_window(None, None).why


@given(windows, st.integers(1, 10**6))
def test_a_cap_is_never_exceeded_and_changes_nothing_below_it(window: int, tokens: int) -> None:
    free = by_window("m", window)
    found = capped(free, Cap(tokens=tokens), lambda _: 0)
    assert found.tokens == min(free.tokens, tokens)
    assert found == free if free.tokens <= tokens else "cap" in found.why


def test_a_cap_in_money_is_what_it_buys() -> None:
    found = capped(as_given(50_000), Cap(dollars=0.05), lambda dollars: int(dollars * 400_000))
    assert found.tokens == 20_000
    assert "$0.05, which buys 20,000 tokens" in found.why


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "", "5", "$", "$0", "$1e3", "€5", "$-1", [], "$" + "9" * 30])
def test_what_is_no_cap_is_refused(wrong: Any) -> None:
    with pytest.raises(Invalid):
        check_cap(wrong)
    with pytest.raises(Invalid):
        holdfast.open("ram:", max_context=wrong)


# In a store


def talked(store: holdfast.Store, turns: int) -> holdfast.Thread:
    thread = store.thread("t", user="ana")
    thread.save({"goal": "find the old lamp", "step": 7})
    store.memory("ana").remember("lives in Lisbon", key="home")
    for number in range(turns):
        told = {"role": "user", "content": f"Line {number}: " + "the lamp stands in the hall " * 6}
        thread.append(told, {"role": "assistant", "content": f"Noted as {number}."})
    return thread


def shown(context: Any) -> int:
    first, last = context.window or (1, 0)
    return int(last - first + 1)


def test_the_window_decides_how_much_is_shown() -> None:
    with holdfast.open("ram:", embedder="none") as store:
        thread = talked(store, 1_500)
        small, middle, large = (
            store.context(thread, "Where does she live?", model=model)
            for model in ("gpt-4", "claude-sonnet-4-5", "claude-sonnet-5")
        )
    assert shown(large) == 3_000  # all of it
    assert 20 < shown(small) < 200 < shown(middle) < 3_000
    for context in (small, middle, large):
        assert context.tokens <= context.report.budget
        assert "find the old lamp" in context.section("state")
        assert "Lisbon" in context.system
    sections = {one.name: one.tokens for one in small.report.sections}
    assert sections["recent"] <= 0.35 * small.report.budget
    assert middle.report.notes == (f"the budget was {small.report.why}; now it is {middle.report.why}",)


def test_a_cap_of_a_store_holds_for_contexts_sessions_and_other_tenants() -> None:
    with holdfast.open("ram:", max_context=2_000, embedder="none") as store:
        for each in (store, store.for_tenant("acme"), store.acting_as("bob")):
            assert each.context("t", "hi", model="claude-sonnet-5").report.budget == 2_000
            assert "cap is 2,000 tokens" in each.context("t", "hi", 5_000).report.why
            assert each.session("t", model=Scripted("hello")).budget == 2_000
        assert store.context("t", "hi", 500).report.budget == 500


def test_a_cap_in_money_goes_by_the_price_of_the_model() -> None:
    pytest.importorskip("genai_prices", reason="prices come with holdfast[llm]")
    with holdfast.open("ram:", max_context="$0.03", embedder="none") as store:
        report = store.context("t", "hi", model="anthropic:claude-sonnet-4-5").report
        assert 1_000 < report.budget < 100_000
        assert "$0.03, which buys" in report.why
        with pytest.raises(Misconfigured, match="price of acme:new is not known"):
            store.context("t", "hi", model="acme:new")
