"""Names and things inside a sentence: where they end, and which words are none.

A name is recognised by its capital; in scripts without capitals it is a single word. Deliberately absent: lists of
known names or places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from holdfast.memory.rules import vocabulary as words
from holdfast.when import Pattern


class Phrase(NamedTuple):
    text: str
    start: int
    end: int


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PARTICLES = _words("de da do dos del della der den di du la le van von bin ibn al el y of the upon")
_NOT_NAMES = _words(
    "i i'm i've i'll i'd im he she it we they you this that these those there here who what when where why how which "
    "everyone everybody nobody noone someone somebody anyone anybody nothing something everything people most many "
    "some all both each every one two my our your his her their its the a an and but or so if then now just also not "
    "no yes please thanks thank hi hello hey dear ok okay well sorry actually today tomorrow yesterday tonight monday "
    "tuesday wednesday thursday friday saturday sunday january february march april june july august september october "
    "november december mondays tuesdays wednesdays thursdays fridays saturdays sundays weekdays weekends "
    "english spanish french german italian dutch portuguese chinese japanese korean russian arabic "
    "hindi american british irish scottish welsh canadian australian indian mexican brazilian swedish norwegian danish "
    "finnish polish greek turkish swiss austrian belgian czech hungarian romanian ukrainian israeli iranian iraqi "
    "egyptian african asian european christian catholic muslim jewish hindu buddhist protestant atheist democrat "
    "republican nigerian kenyan vietnamese thai filipino indonesian pakistani argentinian chilean colombian peruvian "
    "cuban jamaican latina latino hispanic black white gay lesbian trans bi autistic deaf blind vegan vegetarian mr "
    "mrs ms dr sir madam mom dad god christmas easter sure fine good great happy sad tired back home glad excited "
    "maybe later asap ceo cto cfo"
)
_ABSTRACT = Pattern(r"\w(?:tion|ment|ness|ship|ity|ware|ance|ence)$")
_WORD = Pattern("[^\\W\\d_](?:[^\\W_]|['\u2019.-](?=[^\\W\\d_])|&){0,30}")
_ENDING = Pattern("(?:['\u2019]s|-.*)$")
_TITLE = Pattern(r"(?:Mr|Mrs|Ms|Dr|Prof|mr|mrs|ms|dr)\.?[ \t\u00a0]")
_ARTICLE = Pattern(r"(?i:the)[ \t]{1,2}")
_AGED = (
    r"(?:,[ ](?:who(?:['\u2019]s|[ ]is)[ ]|(?:now|aged)[ ])?|[ ]\()"
    r"(?P<age>\d{1,2}(?:[ ](?:year|month|week)s?)?)(?:[ ]old)?\b\)?"
)
AGED = Pattern(_AGED)
_LIST = Pattern(
    rf"(?i:(?:{_AGED})?(?:,?[ \t]{{1,2}}(?:and|&)|,)[ \t]{{1,2}}"
    r"(?:(?:(?:our|my|the)[ ])?(?:little|young|baby|big|older|younger)[ ])?)"
)
_JOINED = Pattern(r"(?i:[ \t]{1,3}(?:and|or)[ \t]{1,3})")
_SAINTS = frozenset({"st", "mt", "ft", "dr"})
_INITIALS = Pattern(
    r"(?<!\w)(?:(?:[A-Z]\.[ ]){1,3}|(?:[A-Z][\w'\u2019-]{1,20}[ ])?(?:(?:van|von|de|der|den|di|du|la|del|al)[ ]){1,3})$"
)
_INITIAL = Pattern(r"\.[ ][^\W\d_a-z]")
_GAP = Pattern("[ \\t\u00a0]{1,2}")
_REGION = Pattern(",[ \\t\u00a0]{1,2}")
_AFTER_REGION = Pattern(r"[ \t]{0,3}(?:$|[.,;!)\x00]|(?:and|but|with|since|now|for|near|where|in|so|because)\b)")
_MOST_WORDS = 4


def name_at(text: str, start: int, *, most: int = _MOST_WORDS, numbers: bool = False) -> Phrase | None:
    """The name that begins at ``start``, without a possessive ending; None when what stands there is no name."""
    title = _TITLE.match(text, start)
    end, count, at = start, 0, title.end() if title else start
    while count < most:
        word = _WORD.match(text, at)
        if word is None:
            break
        lower = word[0].lower()
        following = _after_particles(text, at) if (count or title) and lower in _PARTICLES else None
        if following is not None:
            at = following
            continue
        if not (_capital(word[0]) or (title and not count)) or _ENDING.sub("", lower) in _NOT_NAMES:
            break
        end, count = word.end(), count + 1
        saint = text[start : start + 3].lower() == "st."
        if word[0].endswith(("'s", "\u2019s")) and not saint and not _named_on(text, word.end()):
            end -= 2
            break
        if (lower in _SAINTS or (len(lower) == 1 and word[0] != "I")) and _INITIAL.match(text, end):
            at = end + 2
            continue
        following = _gap(text, end)
        if following is None or not word[0][0].isupper():
            break
        at = following
    return Phrase(text[start:end], start, end) if count else None


def _named_on(text: str, at: int) -> bool:
    """Whether a name goes on after a possessive: "Mary's Hospital", where "Ben's place" ends with Ben."""
    following = _gap(text, at)
    word = _WORD.match(text, following) if following is not None else None
    return word is not None and word[0][0].isupper() and word[0].lower() not in _NOT_NAMES


def _gap(text: str, at: int) -> int | None:
    gap = _GAP.match(text, at)
    return gap.end() if gap else None


def _capital(word: str) -> bool:
    # A letter of a script without case is neither upper nor lower.
    return not word[0].islower()


def _after_particles(text: str, at: int) -> int | None:
    """Where the name goes on after "de la" and its like, or None when none follows."""
    for _ in range(3):
        word = _WORD.match(text, at)
        if word is None:
            return None
        if word[0].lower() not in _PARTICLES:
            return at if word[0][0].isupper() and word[0].lower() not in _NOT_NAMES else None
        following = _gap(text, word.end())
        if following is None:
            return None
        at = following
    return None


def place_at(text: str, start: int) -> Phrase | None:
    """A name of a place, perhaps with "the" before it and its region after a comma."""
    article = _ARTICLE.match(text, start)
    place = name_at(text, article.end() if article else start)
    if place is None:
        return None
    end = place.end
    comma = _REGION.match(text, end)
    region = name_at(text, comma.end()) if comma else None
    if region and _AFTER_REGION.match(text, region.end):
        end = region.end
    return Phrase(text[start:end], start, end)


def name_before(text: str, end: int) -> Phrase | None:
    """The name of one or two words that ends right before ``end``."""
    lead = text[max(0, end - 64) : end].rstrip()
    first = end - len(text[max(0, end - 64) : end])
    words = list(_WORD.finditer(lead))[-2:]
    good: list[re.Match[str]] = []
    for word in reversed(words):
        close = word.end() == (good[-1].start() - 1 if good else len(lead))
        if (
            not close
            or not word[0][0].isupper()
            or word[0].lower() in _NOT_NAMES
            or word[0].endswith(("'s", "\u2019s"))
        ):
            break
        good.append(word)
    if not good:
        return None
    start, stop = first + good[-1].start(), first + good[0].end()
    initials = _INITIALS.search(text, max(0, start - 36), start)
    start = initials.start() if initials else start
    return Phrase(text[start:stop], start, stop)


def someone_before(text: str, end: int) -> Phrase | None:
    """A name that ends right before ``end`` and may be a person's: no "Choir" or "Production" that opens a sentence."""
    name = name_before(text, end)
    return None if name is None or name.text.lower() in _things() or _ABSTRACT.search(name.text) else name


@cache
def _things() -> frozenset[str]:
    tables = (words.POSSESSIONS, words.EVENTS, words.ROUTINE, words.ATTRIBUTES, words.GROUPS, words.ROLES, words.PETS)
    return words.each(f"{' '.join(tables)} {words.KIN}") | words.UNITS


def names_at(text: str, start: int) -> Iterator[Phrase]:
    """The names of a list: "Tom, Max and Lena"."""
    at: int | None = start
    for _ in range(8):
        name = name_at(text, at) if at is not None else None
        if name is None:
            return
        yield name
        more = _LIST.match(text, name.end)
        at = more.end() if more else None


_THING_STOP = Pattern(
    r"(?i:(?:[,;:!?()\x00\n\u2013\u2014]|(?<!\b\w)(?<!\bst)(?<!\bdr)(?<!\bmr)(?<!\bms)(?<!\bmrs)\.)|[ \t]-[ \t]|"
    r"\b(?:but|because|since|when|whenever|while|although|though|which|"
    r"who|where|if|as|so|than|over|rather|instead|more|better|most|best|and[ \t]+(?:i|my|we|it|he|she|they|you|the|"
    r"that|this|also|would|will|am|have|hate|love|like|prefer|can)|too|very|anymore|any[ \t]more|either|sorry|"
    r"pls|please|thanks|"
    r"these[ \t]+days|lately|at[ \t]+the[ \t]+moment|right[ \t]+now|now|though|especially|for|every|during|after|"
    r"before|not|don['\u2019]t)\b)"
)
_NO_THING = _words(
    "it that this you your him her them these those how what where when who why me us myself yourself everything "
    "anything nothing something everyone everybody one ones some any none my our his their to being having seeing "
    "hearing knowing working living talking chatting i we they he she there here all both too so up on in at by for "
    "out down around with about off again and or is are was were"
)
_NO_THING_PAIR = Pattern(
    r"(?i:the[ \t]+(?:idea|ideas|way|fact|look|sound|thought|feeling|result|results|new|one|first|second|last|other|"
    r"same|suggestion|suggestions|plan|concept|vibe|part|design|part|details?|photo|picture|pic)\b)"
)
_TRIM = Pattern(r"(?i:^(?:(?:a|an|the|some|eating|drinking|all[ \t]+kinds[ \t]+of|any[ \t]+kind[ \t]+of)[ \t]+))")
_POINTING = _words("this that these those your you it them")
_HALF = Pattern(r"(?i:\w[ \t]+(?:a|an|the)[ \t]+[\w-]+$)")
_THE_NAME = Pattern(r"[Tt]he[ \t]+[^\Wa-z]")
THING_CHARS = 60
THING_WORDS = 6


def thing_at(text: str, start: int) -> Phrase | None:
    """The thing that someone likes, is allergic to or has chosen: up to the next stop, and never a bare pronoun."""
    stop = _THING_STOP.search(text, start)
    piece = text[start : stop.start() if stop else len(text)].rstrip()
    words = piece.lower().split()
    if not words or len(piece) > THING_CHARS or len(words) > THING_WORDS or _NO_THING_PAIR.match(piece):
        return None
    if words[0].split("'")[0].split("\u2019")[0] in _NO_THING or _POINTING.intersection(words):
        return None
    if text[start + len(piece) : start + len(piece) + 1] == "," and _HALF.search(piece):
        return None  # "shoes with a sleek, modern look"
    if words[0] == "the" and not _THE_NAME.match(piece):
        return None  # "I love the colour" is said of something at hand, "I love the Beatles" is a taste
    return Phrase(piece, start, start + len(piece))


def things_at(text: str, start: int) -> Iterator[Phrase]:
    """The things of a list: "apples, pears and plums" are three; a long second half is no list."""
    first = thing_at(text, start)
    if first is None:
        return
    pieces, at = [first], first.end
    while text[at : at + 2] == ", " and len(pieces) < 8:
        skip = 2 + (4 if text[at + 2 : at + 6].lower() in {"and ", "or, "} else 0)
        more = thing_at(text, at + skip)
        if more is None or len(more.text.split()) > 4:
            break
        pieces.append(more)
        at = more.end
    if len(pieces) > 1 and not (
        _JOINED.search(pieces[-1].text) or text[pieces[-1].start - 4 : pieces[-1].start].lower() in {"and ", " or "}
    ):
        pieces = pieces[:1]  # a comma that does not lead to an "and" ends the clause
    for piece in pieces:
        begin = 0
        for cut in _JOINED.finditer(piece.text):
            yield Phrase(piece.text[begin : cut.start()], piece.start + begin, piece.start + cut.start())
            begin = cut.end()
        yield Phrase(piece.text[begin:], piece.start + begin, piece.end)


def folded(text: str) -> str:
    """A thing as part of a key: without its article, case and spare blanks."""
    return " ".join(_TRIM.sub("", text.strip()).casefold().split())
