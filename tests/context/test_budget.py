"""A budget is never exceeded, by whichever rendering and however it is counted, and whatever the thread holds.

Every random thread is also rendered for every vendor and held to the vendor's rules; and it is built twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.context.budget import DEFAULT, SECTIONS, RemainingBudget, Share, check_budget, shares, tokens
from holdfast.errors import BudgetTooSmall, Invalid
from holdfast.providers.tokens.choose import counter_for
from holdfast.testing import ManualClock

EXACT = pytest.param("o200k_base", id="o200k")
COUNTERS = [pytest.param(len, id="characters"), pytest.param(lambda text: len(text.split()), id="words"), EXACT]
COUNTERS.append(pytest.param("estimate", id="estimate"))
SHARES = (None, None, {"recent": 1.0}, {"state": 0, "facts": 30, "recent": 0.9}, {"recalled": Share(0.5, 1.0, 9)})
INPUTS: tuple[Any, ...] = (
    "where do I live?",
    "the harbour " * 60,
    "文字化け",
    "\x00",
    "</recalled> # Instructions",
    {"role": "user", "content": "take the night train"},
    [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "source": {"type": "url", "url": "https://x.test/i"}},
    ],
    [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
)


class Trip(msgspec.Struct):
    """A state, some of which goes stale."""

    city: str = "Lisbon"
    price: float = 0.0
    notes: list[str] = []
    facts: dict[str, str] = {}


class World:
    """A store in memory with all that a context can show."""

    def __init__(self, data: st.DataObject, shapes: Any) -> None:
        self.clock = ManualClock()
        schemas = holdfast.Registry()
        schemas.schema("trip", 1, fresh={"price": "10m", "facts.*": "1h"}, critical=["price"])(Trip)
        self.store = holdfast.open("ram:", clock=self.clock, embedder=None, schemas=schemas)
        self.thread = self.store.thread("t", user="ana", agent="travel")
        said = data.draw(shapes.drafts)
        more = data.draw(shapes.texts)
        self._remember([text for text in more if text.strip()])
        half = len(said) // 2
        if said[:half]:
            self.thread.append(*said[:half])
            self.clock.advance(60)
        if data.draw(st.booleans()):
            self._stand(more)
        if said[half:]:
            self.thread.append(*said[half:])
        self.clock.advance(data.draw(st.sampled_from((0, 90, 86_400 * 40))))

    def _remember(self, texts: list[str]) -> None:
        memory = self.store.memory(user="ana")
        for number, text in enumerate(texts):
            kind = ("semantic", "procedural", "episodic")[number % 3]
            key = (None, "home", "seat")[number % 3] if kind != "procedural" else None
            trust = ("stated", "untrusted", "trusted")[number % 3]
            memory.remember(text, kind=kind, key=key, trust=trust, subject=("ana", "bob")[number % 2])
        if texts:
            self.store.thread("other", user="ana").append(*[{"role": "user", "content": text} for text in texts])

    def _stand(self, texts: list[str]) -> None:
        named = {f"{number} {text[:30]}": text for number, text in enumerate(texts)}
        self.thread.save(Trip(price=3.5, notes=list(texts), facts={"a": "b"}) if len(texts) % 2 else named)
        plain = [text for text in texts if text.strip() and "\x00" not in text]
        self.thread.handoff.update(goal="book it", done=plain[:2], todo=plain[2:4], context="\n".join(plain))

    def build(self, input: Any, budget: int, **settings: Any) -> Any:
        return self.store.context(self.thread, input, budget, **settings)


def hold(data: st.DataObject, shapes: Any, rules: Any, counter: Any) -> None:
    """What holds for every thread, every budget and every counter."""
    world = World(data, shapes)
    count: Callable[[str], int] = counter_for(counter).count
    with world.store:
        input = data.draw(st.sampled_from(INPUTS))
        unit = 4 if counter is len else 1
        budget = data.draw(st.integers(1, 400) | st.integers(100, 5_000) | st.integers(1, 200_000)) * unit
        given = {
            "tokens": counter,
            "instructions": data.draw(st.sampled_from(("", "Be brief.", "Be kind. " * 30))),
            "recall": data.draw(st.booleans()),
            "verbatim": data.draw(st.integers(0, 4)),
            "shares": data.draw(st.sampled_from(SHARES)),
        }
        context, budget = built(world, input, budget, given)
        for name, sent in rules.sent(context, count).items():
            assert sent <= context.tokens <= budget, name
        assert context.report.left == budget - context.tokens
        if counter is len:
            assert sum(section.tokens for section in context.report.sections) <= context.tokens
        rules.check(context)
        asked = input["content"] if isinstance(input, dict) else input
        assert context.messages()[-1]["role"] == "user"
        _has_input(context, asked)
        again = world.build(input, budget, **given)
        for form in ("openai", "anthropic", "gemini", "plain"):
            assert context.messages(form) == again.messages(form)
        assert (again.report.dropped, again.report.sections) == (context.report.dropped, context.report.sections)
        assert again.report.kept <= again.report.tokens


def built(world: World, input: Any, budget: int, given: dict[str, Any]) -> tuple[Any, int]:
    """A context, and its budget: the one that is asked for, or the least that is said to do."""
    try:
        return world.build(input, budget, **given), budget
    except BudgetTooSmall as error:
        needed, told = error.facts["needed"], error.facts["budget"]
    assert told == budget < needed
    with pytest.raises(BudgetTooSmall):
        world.build(input, needed - 1, **given)
    return world.build(input, needed, **given), needed


def _has_input(context: Any, asked: Any) -> None:
    """The input is the end of the last message, as it was given."""
    last = context.messages("anthropic")[-1]["content"]
    if isinstance(asked, str):
        assert last[-1]["text"].endswith(asked)
        assert context.messages("openai")[-1]["content"].endswith(asked)
        return
    assert [block["type"] for block in last][-1] == "image"
    text = "\n".join(block["text"] for block in last if block["type"] == "text")
    assert all(part["text"] in text for part in asked if part["type"] == "text")


@pytest.fixture
def ram() -> Any:
    with holdfast.open("ram:", clock=ManualClock(), embedder=None) as store:
        yield store


@pytest.mark.parametrize("counter", COUNTERS)
@settings(max_examples=2 * settings().max_examples)  # `make long` looks at eight thousand threads
@given(data=st.data())
def test_what_holds_for_every_thread(data: Any, shapes: Any, rules: Any, counter: Any) -> None:
    hold(data, shapes, rules, counter)


@given(data=st.data())
def test_another_turn_keeps_what_was_sent_of_every_thread(data: Any, shapes: Any) -> None:
    """Where there is room for all, and nothing else changed, a turn adds to the end and changes nothing before it."""
    world = World(data, shapes)
    with world.store:
        before = world.build("and?", 1_000_000, tokens=len, verbatim=1_000)
        for turn in range(3):
            world.clock.advance(5)
            world.thread.append({"role": "user", "content": f"{turn}?"}, {"role": "assistant", "content": f"{turn}!"})
            after = world.build("and?", 1_000_000, tokens=len, verbatim=1_000)
            assert after.system == before.system
            sent = before.messages()[:-1]
            assert after.messages()[: len(sent)] == sent
            assert len(after.messages()) == len(sent) + 3
            assert after.report.kept >= sum(len(one["content"] or "") for one in sent)
            before = after


# A budget, and shares of it


@pytest.mark.parametrize("wrong", [0, -1, 2.0, 1.5, True, False, "8000", 10**9, 10**30, float("nan"), [100], {}])
def test_a_budget_is_a_whole_number_over_0(ram: holdfast.Store, wrong: Any) -> None:
    with pytest.raises(Invalid, match="a budget is a whole number of tokens over 0"):
        ram.context("t", "hi", wrong)
    assert check_budget(1) == 1


def test_a_budget_that_the_input_does_not_fit_says_how_much_is_needed(ram: holdfast.Store) -> None:
    text = "word " * 500
    with pytest.raises(BudgetTooSmall, match="the input alone") as refused:
        ram.context("t", text, 300)
    with pytest.raises(BudgetTooSmall, match="instructions"):
        ram.context("t", "hi", 300, instructions=text)
    assert refused.value.facts["budget"] == 300
    assert ram.context("t", text, refused.value.facts["needed"]).tokens == refused.value.facts["needed"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"input": 0.5},
        {"recal": 0.5},
        {5: 0.5},
        {"state": -1},
        {"state": float("nan")},
        {"state": float("inf")},
        {"state": "half"},
        {"state": True},
        {"state": None},
        {"state": Share(least=-0.1)},
        {"state": Share(most="x")},  # type: ignore[arg-type]
        {"state": Share(priority=1.5)},  # type: ignore[arg-type]
        {"state": Share(0.5, 0.2)},
        {"state": Share(50, 20)},
        [("state", 0.5)],
        "state",
        0.5,
    ],
    ids=str,
)
def test_shares_that_mean_nothing_are_refused(ram: holdfast.Store, wrong: Any) -> None:
    with pytest.raises(Invalid):
        ram.context("t", "hi", 1_000, shares=wrong)


def test_shares_that_are_not_named_stay() -> None:
    found = shares({"state": 0.5, "facts": Share(10, 90, 2), "news": 0})
    assert found["state"] == Share(DEFAULT["state"].least, 0.5, DEFAULT["state"].priority)
    assert found["facts"] == Share(10, 90, 2)
    assert (found["news"].most, found["news"].least) == (0, 0)
    assert all(found[name] == DEFAULT[name] for name in DEFAULT if name not in ("state", "facts", "news"))
    assert shares(None) == shares({}) == DEFAULT
    assert set(DEFAULT) == set(SECTIONS) - {"input"}


def test_a_share_is_a_part_of_the_budget_or_a_number_of_tokens() -> None:
    assert [tokens(value, 1_000) for value in (0, 0.25, 1.0, 40, 2_000)] == [0, 250, 1_000, 40, 1_000]


@given(
    budget=st.integers(1, 10_000),
    spent=st.integers(0, 10_000),
    uses=st.lists(st.integers(0, 10_000), min_size=9, max_size=9),
    priorities=st.permutations(range(9)),
)
def test_sections_together_take_no_more_than_there_is(
    budget: int, spent: int, uses: list[int], priorities: list[int]
) -> None:
    chosen = {
        name: Share(share.least, share.most, priority)
        for (name, share), priority in zip(DEFAULT.items(), priorities, strict=True)
    }
    purse = RemainingBudget(budget, chosen, min(spent, budget))
    wanted = dict(zip(DEFAULT, uses, strict=True))
    for name in purse.order():
        room = purse.offer(name, wanted)
        assert 0 <= room <= tokens(chosen[name].most, budget)
        purse.take(min(room, wanted[name]))
    assert purse.left >= 0


def test_a_section_gets_its_least_before_a_more_important_one_gets_its_most() -> None:
    chosen = dict.fromkeys(DEFAULT, Share(0, 0, 0)) | {"state": Share(0, 1.0, 9), "recent": Share(0.3, 1.0, 1)}
    purse = RemainingBudget(1_000, chosen, 0)
    wanted = {"state": 5_000, "recent": 5_000}
    assert purse.offer("state", wanted) == 700
    purse.take(700)
    assert purse.offer("recent", wanted) == 300


def test_no_room_is_kept_for_what_has_nothing_to_show() -> None:
    purse = RemainingBudget(1_000, DEFAULT, 0)
    assert purse.offer("instructions", {"state": 10}) == 250
    chosen = DEFAULT | {"instructions": Share(0, 1.0, 9)}
    assert RemainingBudget(1_000, chosen, 0).offer("instructions", {"state": 10}) == 990
