# ruff: noqa: RUF001 - letters that look like others are what this is about
"""Text as terms: every script is found by what people would type, and nothing that people write breaks it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import text

ANY_TEXT = st.text(st.characters(codec=None), max_size=400)  # lone surrogates as well


def held(query: str, told: str) -> bool:
    """Whether every term of a query is a term of a text."""
    wanted = text.terms(query)
    return bool(wanted) and set(wanted) <= set(text.terms(told))


# Words


@pytest.mark.parametrize(
    ("query", "told"),
    [
        pytest.param("cafe", "We met at the Café", id="accent"),
        pytest.param("CAFÉ", "cafe au lait", id="case"),
        pytest.param("cafe\u0301", "café", id="decomposed"),
        pytest.param("Strasse", "die Straße nach Süden", id="sharp s"),
        pytest.param("istanbul", "İSTANBUL", id="dotted capital"),
        pytest.param("ﬁnance", "finance", id="ligature"),
        pytest.param("ｈｏｌｄｆａｓｔ", "holdfast", id="wide"),
        pytest.param("booking", "She books a flight", id="stem"),
        pytest.param("flight 42", "flight 42 is late", id="number"),
        pytest.param("σοφος", "ΣΟΦΌΣ", id="greek sigma"),
        pytest.param("елка", "Ёлка в доме", id="russian"),
        pytest.param("МОСКВА", "Она живёт в Москва", id="russian case"),
        pytest.param("上海", "我住在上海的郊区", id="chinese"),
        pytest.param("東京", "来週東京に行きます", id="japanese"),
        pytest.param("コーヒー", "私はコーヒーが好き", id="katakana"),
        pytest.param("ｺｰﾋｰ", "私はコーヒーが好き", id="half width katakana"),
        pytest.param("がっこう", "か\u3099っこうへ行く", id="decomposed kana"),
        pytest.param("กาแฟ", "ฉันชอบดื่มกาแฟตอนเช้า", id="thai"),
        pytest.param("កាហ្វេ", "ខ្ញុំចូលចិត្តកាហ្វេណាស់", id="khmer"),
        pytest.param("ကော်ဖီ", "ကျွန်တော်ကော်ဖီကြိုက်တယ်", id="burmese"),
        pytest.param("서울", "저는 서울 근처에 살아요", id="korean"),
        pytest.param(unicodedata.normalize("NFD", "서울"), "서울 사람", id="korean decomposed"),
        pytest.param("قهوة", "هي تحب قَهْوَة الصباح", id="arabic marks"),
        pytest.param("قهوه", "تحب قهوة", id="arabic last letter"),
        pytest.param("احمد", "أحمد يعيش هنا", id="arabic hamza"),
        pytest.param("سلام", "ســـلام عليكم", id="arabic stretched"),
        pytest.param("हिन्दी", "मैं हिन्दी बोलती हूँ", id="hindi"),
        pytest.param("कॉफ़ी", "मुझे कॉफ़ी पसंद है", id="hindi nukta"),
        pytest.param("தமிழ்", "எனக்கு தமிழ் தெரியும்", id="tamil"),
        pytest.param("🍕", "friday is 🍕 night", id="emoji"),
        pytest.param("👩‍💻", "she is a 👩‍💻", id="emoji of several"),
        pytest.param("❤", "i ❤️ you", id="emoji with a selector"),
        pytest.param("手机", "iPhone手机壳", id="two scripts"),
        pytest.param("iphone", "iPhone手机壳", id="two scripts, the other"),
        pytest.param("𠮷野家", "昼は𠮷野家で", id="beyond the first plane"),
    ],
)
def test_people_find_what_they_would_type(query: str, told: str) -> None:
    assert held(query, told)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        pytest.param("上海", "我住在北京", id="chinese"),
        pytest.param("海上", "上海", id="order"),
        pytest.param("🍕", "🍔", id="emoji"),
        pytest.param("कल", "किल", id="hindi marks count"),
        pytest.param("paris", "comparison", id="part of a word"),
    ],
)
def test_other_things_stay_apart(query: str, told: str) -> None:
    assert not held(query, told)


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("她喜欢靠过道的座位", True), ("Она любит сидеть", True), ("يحب المقعد", True), ("她的 iPad 坏了没有", True),
        ("Ich wohne in München, größtenteils", False), ("Zażółć gęślą jaźń", False), ("plain words", False),
        ("see 動物 in the glossary of this page", False), ("", False), ("🙂 12,50 €", False), ("…", False),
    ],
)  # fmt: skip
def test_the_script_is_that_of_most_letters(said: str, other: bool) -> None:
    assert text.in_another_script(said) is other


def test_a_possessive_is_the_name() -> None:
    for told in ("Ana's dog", "Ana’s dog", "ANA'S DOG"):
        assert text.terms(told) == ["ana", "dog"]
    assert held("James", "James' house")


def test_a_contraction_is_not_two_words() -> None:
    for told in ("don't", "don’t", "they're", "it's", "I'm", "we've", "isn't", "couldn't"):
        assert text.terms(told) == []


@pytest.mark.parametrize("word", ["ill", "wont", "id", "cant"])
def test_a_word_that_looks_like_a_contraction_is_a_word(word: str) -> None:
    assert held(word, f"the word {word} is here")


@pytest.mark.parametrize(
    ("told", "other"), [("she'll come", "shell"), ("we'll see", "well"), ("we'd go", "wed"), ("he'll", "hell")]
)
def test_a_contraction_is_not_another_word(told: str, other: str) -> None:
    assert not held(other, told)


def test_the_most_common_words_say_nothing() -> None:
    assert text.terms("What is it that you would have been doing with them?") == []
    assert text.terms("") == text.terms("  \n\t ") == text.terms("?!… — «»") == []


def test_plain_and_other_text_are_read_alike() -> None:
    """A text is not read differently because an accent is somewhere in it."""
    plain = "Don't forget Ana's 3 flights, O'Brien said; user_name=x-ray v2.0 (beta)"
    assert text.terms(f"{plain} é") == [*text.terms(plain), "e"]


def test_an_apostrophe_is_the_same_however_it_is_typed() -> None:
    assert text.terms("O’Brien’s café") == text.terms("O'Brien's cafe")


@given(ANY_TEXT)
def test_any_text_has_terms_and_always_the_same(told: str) -> None:
    found = text.terms(told)
    assert found == text.terms(told)
    assert all(found)


@given(ANY_TEXT)
@example("𝑨")
def test_folding_twice_is_folding_once(told: str) -> None:
    assert text.fold(text.fold(told)) == text.fold(told)


@given(ANY_TEXT, ANY_TEXT)
def test_a_text_holds_what_stands_in_it(one: str, other: str) -> None:
    assert set(text.terms(one)) <= set(text.terms(f"{one}\n{other}"))


# Passages

SENTENCES = st.lists(st.text(st.sampled_from("abc é文.!?。\n 'x"), max_size=300), max_size=12).map(" ".join)


def letters(told: str) -> str:
    return re.sub(r"\s", "", told)


@given(SENTENCES, st.integers(20, 300))
def test_passages_are_the_whole_text_in_order(told: str, size: int) -> None:
    assert letters("".join(text.passages(told, size))) == letters(told)


@given(SENTENCES, st.integers(20, 300))
def test_a_passage_is_neither_empty_nor_long(told: str, size: int) -> None:
    found = text.passages(told, size)
    assert found
    assert all(len(piece) <= size * 2 for piece in found)
    if letters(told):
        assert all(letters(piece) for piece in found)


@given(ANY_TEXT)
def test_any_text_has_passages(told: str) -> None:
    found = text.passages(told, 30)
    assert found == text.passages(told, 30)
    assert letters("".join(found)) == letters(told)


def test_a_short_text_is_one_passage() -> None:
    assert text.passages("One. Two. Three.") == ["One. Two. Three."]
    assert text.passages("") == [""]


def test_a_passage_ends_with_a_sentence() -> None:
    told = " ".join(f"This is sentence number {number} of a long story." for number in range(40))
    found = text.passages(told)
    assert len(found) > 5
    assert all(piece.endswith(".") and piece.startswith("This") for piece in found)


@pytest.mark.parametrize(
    "told", ["word " * 200_000, "文" * 300_000, "a" * 1_000_000, "x.\n" * 300_000, " " * 1_000_000]
)
def test_a_megabyte_is_cut_and_read(told: str) -> None:
    found = text.passages(told)
    assert letters("".join(found)) == letters(told)
    assert max(map(len, found)) <= 2 * text.PASSAGE_CHARS
    text.terms(told)
