"""The second look at the first hits: what a reranker is shown, what its word counts for, and how it fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import holdfast
from holdfast.errors import Misconfigured
from holdfast.providers.choose import choose_reranker
from holdfast.providers.reranker import CrossEncoder, Passage
from holdfast.retrieval import reranking
from holdfast.testing.embedders import HashEmbedder


class Judge:
    """A reranker that likes passages with a word in them."""

    name = "judge"

    def __init__(self, word: str = "quokka") -> None:
        self.word, self.seen = word, list[tuple[str, list[Passage]]]()
        self.answer: Any = None

    def judge(self, question: str, passages: Sequence[Passage]) -> Any:
        self.seen.append((question, list(passages)))
        liked = [4.0 if self.word in passage.text else -4.0 for passage in passages]
        return np.array([[one, one] for one in liked]) if self.answer is None else self.answer


def store_with(judge: Any, *texts: str) -> holdfast.Store:
    store = holdfast.open("ram:", embedder=HashEmbedder(), reranker=judge)
    store.memory(user="ana").remember_all(texts)
    return store


OWNERS = ["Ada", "Bea", "Cem", "Dan", "Eva", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea", "Max", "Nia", "Ole"]
NOTES = [f"the key of {owner} hangs on a hook" for owner in OWNERS]


def test_its_word_moves_a_hit_up_and_says_whether_it_answers() -> None:
    judge = Judge()
    with store_with(judge, *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        plain = [hit.text for hit in memory.recall("Whose key hangs on a hook?", without=["rerank"])]
        judge.word = plain[-1]
        found = memory.recall("Whose key hangs on a hook?", explain=True)
        place = [hit.text for hit in found].index(judge.word)
        assert place < len(plain) - 1
        assert found[place].why["rerank"] > 0
        judge.word = "in none of them"
        assert memory.recall("Whose key hangs on a hook?").confidence < found.confidence


def test_it_reads_the_first_hits_alone_with_who_speaks_and_the_turn_before() -> None:
    judge = Judge()
    with store_with(judge, *NOTES) as store:
        store.memory(user="ana").recall("Which key?")
        assert len(judge.seen[-1][1]) == reranking.FIRST
        store.thread("t", user="bo").append(
            {"role": "assistant", "content": "Where is it?"}, {"role": "user", "name": "Bo", "content": "In the shed."}
        )
        store.memory(user="bo").recall("Is the spade in the shed?")
        question, passages = judge.seen[-1]
        assert question == "Is the spade in the shed?"
        assert Passage("Bo", "In the shed.", "Where is it?") in passages


@pytest.mark.parametrize("answer", [[[1.0, 2.0]], [[np.nan, 1.0]] * 6, "nonsense", [1.0] * 6], ids=str)
def test_what_it_answers_wrongly_is_said_and_left_out(answer: Any) -> None:
    judge = Judge()
    with store_with(judge, *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        expected = [hit.text for hit in memory.recall("Which key?", without=["rerank"])]
        judge.answer = answer
        found = memory.recall("Which key?")
        assert [hit.text for hit in found] == expected
        assert any("not reranked" in note for note in found.report.notes)
        asked = len(judge.seen)
        assert any("failed a moment ago" in note for note in memory.recall("Which key?").report.notes)
        assert len(judge.seen) == asked


def test_another_script_and_no_letters_are_not_its_business() -> None:
    judge = Judge()
    with store_with(judge, *NOTES[:6]) as store:
        for query in ("钥匙挂在哪里", "???", "12 34"):
            store.memory(user="ana").recall(query)
        assert not judge.seen


def test_with_little_time_it_is_left_out_but_not_for_ever() -> None:
    judge = Judge()
    with store_with(judge, *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        memory.recall("Which key?", without=["rerank"])
        found = memory.recall("Which key?", within_ms=40)
        assert "rerank" in found.report.skipped
        assert not judge.seen
        assert any("rerank" not in memory.recall("Which key?", within_ms=40).report.skipped for _ in range(200))


def test_with_no_time_left_only_as_many_hits_are_read_as_are_shown() -> None:
    with store_with("none", *NOTES) as store:
        found = store.memory(user="ana").recall("Which key?", k=2, within_ms=0.001)
        assert len(found) == 2
        assert "disputes" in found.report.skipped


@pytest.mark.parametrize("spec", ["zebra", object(), Judge], ids=["name", "object", "class"])
def test_what_is_no_reranker_is_refused(spec: Any) -> None:
    with pytest.raises(Misconfigured, match="A reranker is"):
        choose_reranker(spec)


def test_a_note_that_lacks_what_other_notes_are_about_answers_less() -> None:
    judge = Judge("in none of them")  # it says the same of every note
    with store_with(judge, "the alarm code of the flat is 4711", "the shop opens at nine", *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        of_the_flat = memory.recall("What is the alarm code of the flat?").confidence
        of_what_nothing_is_about = memory.recall("What is the alarm code of the greenhouse?").confidence
        of_the_shop = memory.recall("What is the alarm code of the shop?").confidence
        assert of_the_shop < of_what_nothing_is_about < of_the_flat


def test_what_a_filter_keeps_out_does_not_make_an_answer_doubtful() -> None:
    judge = Judge("in none of them")
    with store_with(judge, *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        memory.remember("the alarm code of the flat is 4711", tags=["mine"])
        memory.remember("the shop opens at nine", tags=["mine"])
        before = memory.recall("What is the alarm code of the shop?", tag="mine").confidence
        memory.remember_all([f"the shop sells {owner} a lamp" for owner in OWNERS])
        assert memory.recall("What is the alarm code of the shop?", tag="mine").confidence == pytest.approx(
            before, abs=1e-3
        )


def test_who_asks_in_all_the_words_of_a_note_is_answered_more() -> None:
    judge = Judge("in none of them")
    with store_with(judge, "the alarm code of the flat is 4711", *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        plain = memory.recall("What is the alarm code?").confidence
        assert memory.recall("What is the alarm code of the greenhouse?").confidence < plain


def test_the_same_question_asked_before_is_not_read_and_no_evidence() -> None:
    judge = Judge("in none of them")
    question = "Where is the spare key of the shed?"
    with store_with(judge, *NOTES[:6]) as store:
        memory, thread = store.memory(user="ana"), store.thread("t", user="ana")
        before = memory.recall(question).confidence
        for _ in range(3):
            thread.append({"role": "user", "content": question})
        found = memory.recall(question)
        assert found.confidence == pytest.approx(before, abs=0.02)
        assert question in [hit.text for hit in found]
        assert all(question != passage.text for passage in judge.seen[-1][1])
        told = "The spare key of the shed is under the pot."
        thread.append({"role": "user", "content": told})
        memory.recall(told)  # no question: whoever looks for the very words has found them
        assert told in [passage.text for passage in judge.seen[-1][1]]


def test_an_answer_without_the_kind_of_thing_or_the_name_that_is_asked_for_counts_for_less() -> None:
    judge = Judge("in none of them")
    with store_with(judge, "the boiler was mended by Mr Weber in the cellar", *NOTES[:3]) as store:
        memory = store.memory(user="ana")
        judge.word = "boiler"
        plain = memory.recall("Who was it that mended the boiler?").confidence
        assert memory.recall("How much was it that mended the boiler?").confidence < plain  # no amount
        assert memory.recall("Who was it at Lena's that mended the boiler?").confidence < plain
        assert memory.recall("Who was it, Mr Weber, that mended the boiler?").confidence >= plain - 0.02


def test_questions_about_an_order_keep_their_own_plan() -> None:
    """An order is made of the user's turns only, whatever a reranker thinks of the others."""
    judge = Judge("Noted")
    with holdfast.open("ram:", embedder=HashEmbedder(), reranker=judge) as store:
        thread = store.thread("t", user="ana")
        for topic in ("the garden", "the boat", "the shed", "the roof"):
            thread.append({"role": "user", "content": f"Something about {topic}, please."})
            thread.append({"role": "assistant", "content": f"Noted, we talked about {topic}. " * 12})
        found = store.memory(user="ana").recall("In what order did I bring up these topics?", 8, explain=True)
        assert [hit.entry.content["role"] for hit in found if hit.entry] == ["user"] * 4 + ["assistant"] * 4
        assert not any("rerank" in hit.why for hit in found)


def test_a_number_alone_that_nothing_has_is_no_question_with_an_answer() -> None:
    with store_with("none", "the alarm code is 4711", *NOTES[:6]) as store:
        memory = store.memory(user="ana")
        assert not memory.recall("12345").relevant
        assert memory.recall("4711")[0].text == "the alarm code is 4711"


def test_what_is_said_again_and_again_makes_no_answer_foreign() -> None:
    """An assistant that only says "Got it." does not change what unrelated texts are like."""
    told = [
        "I live in a flat on Elm Street", "My sister plays the oboe", "The car is in the garage until Friday",
        "We pay 900 euros for the rent", "I am allergic to walnuts", "My boss is called Weber",
        "The train to work takes half an hour", "I like jazz and old films",
    ]  # fmt: skip
    sure = []
    for replies in (False, True):
        with holdfast.open("ram:", embedder="minilm", reranker=CrossEncoder()) as store:
            thread = store.thread("t", user="ana")
            for text in told:
                thread.append({"role": "user", "content": text})
                if replies:
                    thread.append({"role": "assistant", "content": "Got it."})
            sure.append(store.memory("ana").recall("What do I have to pay for my home?").confidence)
    assert sure[1] == pytest.approx(sure[0], abs=0.1)
