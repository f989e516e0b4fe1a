"""Text as terms: what two texts have in common, in any script.

A term is a folded, stemmed word. Folding drops case, accents and the vowel marks of Arabic, so that ``Café`` is found
by ``cafe``. Scripts written without spaces (Chinese, Japanese, Thai and their neighbours) become single characters and
overlapping pairs, so that any part of a sentence is found without a dictionary. Marks that carry meaning, as in Hindi,
stay in their words, and an emoji is a word. Long texts are cut into passages at the ends of sentences.

Deliberately absent: languages. What is stemmed, and how, goes by the script: Latin as English, Arabic, Devanagari as
Hindi, Cyrillic as Russian; only the most common English words are left out. A change of what a text's terms are raises
``VERSION``, and indexes are rebuilt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

VERSION = 1
PASSAGE_CHARS = 220

_COMMON = """
    a about after again all also am an and any are arent as at be because been before being between both but
    by can could couldnt did didnt do does doesnt doing done dont down during each few for from further get
    got had hadnt has hasnt have havent having he her here heres hers herself hes him himself his how i if im
    in into is isnt it its itself ive just let lets me might more most must my myself no nor not now of off on
    once only or other our ours ourselves out over own really same shall she shes should shouldnt so some such
    than that thats the their theirs them themselves then there theres these they theyre theyve this those
    through to too under until up very was wasnt we were werent weve what whats when where which while who
    whom why will with would wouldnt you youd youll your youre yours yourself yourselves youve
"""
STOP_WORDS = frozenset(_COMMON.split())

_KNOWN_LIMIT = 200_000
_LONG_WORD = 40
_stems: dict[str, str] = {}

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul: words have spaces between them, but particles hang on to them
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_PICTURES = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_DROPPED = re.compile("[\u0300-\u036f\u0610-\u061a\u0640\u064b-\u0655\u0670\u06d6-\u06ed\u200b-\u200f\ufe00-\ufe0f]")
_ASCII_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+|(?<=[\u3002\uff01\uff1f\u0964])")


@lru_cache(1)
def _word() -> re.Pattern[str]:
    """Letters and digits with the marks that belong to them; Python's ``\\w`` leaves those marks out."""
    marks = "".join(chr(code) for code in range(0x300, 0xFFFF) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    joined = f"[{_UNSPACED}]+"
    spaced = f"[^\\W_](?:(?![{_UNSPACED}])[^\\W_]|[{marks}])*(?:'[a-z]+)?"
    return re.compile(f"(?P<joined>{joined})|(?P<picture>[{_PICTURES}])|(?P<spaced>{spaced})")


_LATIN = re.compile("[A-Za-z\u00aa-\u02af\u1e00-\u1eff\uff21-\uff5a]+")
_LOOKED_AT = 2_000
_SCRIPTS = (
    (re.compile(r"[a-z]+"), "english"),
    (re.compile("[\u0620-\u064a]+"), "arabic"),
    (re.compile("[\u0900-\u097f]+"), "hindi"),
    (re.compile("[\u0430-\u045f]+"), "russian"),
)


@lru_cache(8)
def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer  # noqa: PLC0415 - loaded by the first text

    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem


def fold(text: str) -> str:
    """The text without case, accents and other differences that people do not mean."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", text.casefold()).casefold()  # fancy letters are capitals only by then
    return unicodedata.normalize("NFC", _DROPPED.sub("", text)).replace("\u2019", "'")


def words(text: str) -> Iterator[str]:
    """Yield the folded words of a text in order."""
    folded = fold(text)
    if folded.isascii():
        yield from (word if "'" not in word else _joined(word) for word in _ASCII_WORD.findall(folded))
        return
    for match in _word().finditer(folded):
        run = match[0]
        if match.lastgroup == "joined":
            yield from run
            yield from (run[at : at + 2] for at in range(len(run) - 1))
        else:
            yield run if "'" not in run else _joined(run)


def _joined(word: str) -> str:
    """A word without what is hung on to it: Ana's and she'll are ana and she; don't is a word of its own."""
    first, _, rest = word.partition("'")
    return f"{first}{rest}" if rest == "t" or len(first) == 1 else first


def terms(text: str) -> list[str]:
    """The terms of a text in order: its words without the most common ones, stemmed."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """The stem of a folded word, by the script it is written in; of other scripts a word is its own stem."""
    known = _stems.get(word)
    if known is None:
        known = _stemmed(word)
        if len(_stems) >= _KNOWN_LIMIT:
            _stems.clear()
        _stems[word] = known
    return known


def _stemmed(word: str) -> str:
    if len(word) < _LONG_WORD:
        for letters, language in _SCRIPTS:
            if letters.fullmatch(word):
                return _stemmer(language)(word)
    return word


def in_another_script(text: str) -> bool:
    """Whether most letters at the beginning of a text are of another script than Latin."""
    if text.isascii():
        return False
    letters = "".join(filter(str.isalpha, text[:_LOOKED_AT]))
    return 2 * len(_LATIN.sub("", letters)) > len(letters)


def passages(text: str, size: int = PASSAGE_CHARS) -> list[str]:
    """Cut a text into pieces of about ``size`` characters at the ends of sentences; a short text is one piece."""
    if len(text) <= size * 3 // 2:
        return [text]
    found: list[str] = []
    piece = ""
    for sentence in _SENTENCE_END.split(text):
        if piece and len(piece) + len(sentence) > size:
            found.append(piece)
            piece = ""
        piece = f"{piece} {sentence}" if piece else sentence
        if len(piece) > size * 2:
            *whole, piece = _cut(piece, size)
            found += whole
    if piece.strip():
        found.append(piece)
    return found or [text[:size]]


def _cut(text: str, size: int) -> Iterator[str]:
    """Cut what has no ends of sentences between words, and what has no words anywhere."""
    start = 0
    while len(text) - start > size * 2:
        end = text.rfind(" ", start + size, start + size * 2)
        end = end if end > 0 else start + size * 2
        yield text[start:end]
        start = end + (text[end] == " ")
    yield text[start:]
