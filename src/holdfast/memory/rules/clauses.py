"""A sentence as clauses: whom each is about, its verb, and what follows the verb. The grammar of statements.

A clause begins where a subject, or a verb that shares the last one, follows a comma, a dash or a conjunction; a list
of things stays in one clause. Deliberately absent: meaning. Which predicates are worth keeping is in ``vocabulary``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from holdfast.memory.rules import vocabulary as words
from holdfast.when import Pattern

SELF, PERSON, THING = "self", "person", "thing"

_TOKEN = Pattern(
    r"[\w&.@+-]*?\w(?=n['\u2019]t\b)|n['\u2019]t\b|['\u2019](?:m|re|ve|ll|d|s)\b|\w[\w&.@/+-]*(?:['\u2019](?!s\b|"
    r"m\b|re\b|ve\b|ll\b|d\b)\w+)?|[^\w\s]"
)
_JOINS = words.each(
    "and but so because cause cuz coz since as although though while whereas plus then or which who that's unless "
    "if cos"
)
_ALWAYS = words.each("but so because cause cuz coz although though whereas which who that's unless if cos while")
_CUT = Pattern(
    rf"(?i:(?:\s*(?:[;:()]|,|\.{{2,}})\s*|\s+[\u2013\u2014-]{{1,2}}\s+|\s+|"
    rf"\s*\u2014\s*)(?:(?P<join>{'|'.join(sorted(_JOINS))})\s+(?:(?:also|then|now|just|so)\s+)?)?)"
)
_CLOSER = Pattern(
    "(?i:(?:what|how|which|where|who|when|why|can|could|would|should|do|does|did|will|any|is|are|wish|please|pls|"
    "plz|thanks|thx|help|tell|"
    r"give|suggest|don['\u2019]t|nice\sto|hence|hurry|in\scase|want|wanna|need|hope|think|guess|wonder|ok|right|lol|"
    "haha|"
    r"remind|make\sit|you|there|this|that|it|nothing|everything|hm+|ugh|obviously|sadly|unfortunately|repair)\b)"
)
_FILLERS = (
    "hi hey hello ok okay so well oh ah also and but btw by_the_way fyi just_so_you_know for_the_record for_context "
    "for_reference "
    "note_that note heads_up quick_update quick_note update reminder remember_that remember pls please "
    "keep_in_mind_that "
    "keep_in_mind you_should_know_that you_should_know i_should_mention_that i_should_mention i_should_add "
    "i_forgot_to_say "
    "i_forgot_to_mention yes yeah yep no nope nah actually honestly tbh not_gonna_lie ngl guess_what dude bro man "
    "mate lol haha good_news "
    "bad_news sadly unfortunately luckily finally plus anyway context background about_me turns_out because since "
    "as cause don't_forget "
    "before_i_forget the_thing_is thing_is the_point_is long_story_short ps p.s. then now just sorry hmm yup "
    "big_news small_update "
    "little_update one_more_thing another_thing important for_what_it's_worth as_you_know like_i_said too_bad tho "
    "though "
    "last_thing new_info correction to_be_clear basically that's_because obviously of_course fun_fact thanks sure "
    "right see look"
)
FILLER = Pattern(rf"(?i:(?:{words.either(_FILLERS)})\b[,:!.]{{0,3}}\s+)")
_WHEN = Pattern(
    r"(?i:(?P<when>(?:(?:on|in|at|since(?!\s(?:i|we)\b)|as\sof|last|next|this|every|each|from|until|after|before|"
    r"starting|most(?!\sof)|by|"
    r"as\san?|for|during)\s"
    r"(?:[^,:;!]|(?<=\d):(?=\d)){1,40}?|(?:(?:ever\s|right\s)?(?:since|after)(?!\s(?:i|we)\b)|because\sof|"
    r"thanks\sto|for\swork|"
    r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty)\s(?:years?|months?|weeks?|"
    r"days?)\sago|"
    rf"{words.DAY}s)(?:\s[^,:;!]{{1,40}}?)?|when\s(?:i|we)\s(?:was|were)\s[^,:;!]{{1,20}}?|"
    r"yesterday|tomorrow|today|tonight|these\sdays|nowadays))(?:,\s*|"
    r"\s+)(?=(?:i|we|my|our)(?:\s|['\u2019])))"
)
_I = Pattern(
    r"(?i:(?:i|we|(?:both|all|the\stwo)\sof\sus|(?:me|my\s[\w-]+(?:\s(?-i:[A-Z]\w+))?|(?-i:[A-Z]\w+)(?:\sfrom\s\w+)?)\sand\s(?:i|me))(?=[\s'\u2019])|"
    r"i(?=(?:m|ve)\b))"
)
_ALONE = Pattern(r"(?i:(?:i|we)(?:\s(?!and\b)|['\u2019]|m\b))")
_MY = Pattern(r"(?i:(?:both\sof\s)?(?:my|our)\s)")
_THEY = Pattern(r"(?i:(?:he|she|they)(?=[\s'\u2019])|(?:his|her|its|their)\sname(?=[\s'\u2019]))")
_NOT_MINE = Pattern(
    "(?i:(?:this|that|your|what|the|his|her|their|its|an?|every|any|some|no|each|another|one|whose|which|unless|if|"
    "when|while|after|before|because|although|though|since|with|without|for|about|and|or|is|are|do|use|set|put|add|"
    r"in|on|at|to|from|of|as|by|until)\b)"
)
_OWN_INSIDE = Pattern(r"(?i:\b(?:my|our)\b)")
_THE = Pattern(r"(?i:the\s)")
NAME = (
    r"(?-i:(?:mr|mrs|ms|dr)\.?\s[a-z][\w'\u2019-]+|"
    r"(?:(?:Mr|Mrs|Ms|Dr|Prof)\.?\s(?:(?:van|von|de|der|den|di|du|la|al)\s){0,3})?(?:[A-Z]\.\s){0,3}[A-Z][\w'\u2019-]+"
    r"(?:\s(?:(?:van|von|de|der|den|di|du|la|al)\s){0,3}[A-Z][\w'\u2019-]+){0,2})"
)
WHO = rf"(?:{words.either(words.KIN)}|{words.either(words.ROLES)}|{words.either(words.PETS)})"
_ANTECEDENT = Pattern(
    rf"(?i:\b(?:(?:my|our)\s(?:[\w-]+\s){{0,3}}?(?P<kin>{WHO})\b(?!-|['\u2019](?!s\s(?:name\sis|an?|got|\w+ing)\b))(?:(?:,\s|"
    rf"['\u2019]s\sname\sis\s|\sis\s(?:called\s|named\s)?|\s(?:called|named)\s|\s)(?P<name>{NAME})(?!['\u2019]))?|"
    rf"(?:got|adopted|have|getting|bought|rescued)\san?\s(?:[\w-]+\s){{0,3}}?(?P<pet>{words.either(words.PETS)})\b)|"
    rf"^(?P<bare>{words.either(words.BARE)})(?:\s(?:is\s)?(?:called\s|named\s)?(?P<named>{NAME}))?\b)"
)


class Subject(NamedTuple):
    """Whom or what a clause is about. ``words`` follow the speaker's name: "wife Lena" in "Ana's wife Lena"."""

    kind: str
    words: str
    start: int
    end: int
    plural: bool = False
    shared: bool = False
    """Whether the clause leaves it out: "got a puppy", or the second verb of "I live in Rome and work at Fiat"."""


class Clause(NamedTuple):
    """One clause, by offsets in its sentence. ``when`` is a time that stands before the subject."""

    subject: Subject
    start: int
    end: int
    when: str = ""


class VerbGroup(NamedTuple):
    """The verb of a clause. ``form`` says how it stands: "do" (present), "did", "doing", "be" or "have"."""

    form: str
    verb: str
    negated: bool
    modal: str
    words: str
    end: int
    adverb: str = ""


_BE = {
    "am": "is",
    "is": "is",
    "are": "is",
    "was": "was",
    "were": "was",
    "'m": "is",
    "'re": "is",
    "m": "is",
    "be": "be",
    "been": "been",
}
_HAVE = {"have", "has", "had", "'ve", "ve"}
_DO = {"do", "does", "did"}
_BARE_NOT = {"dont": "do", "doesnt": "do", "didnt": "did", "cant": "can", "isnt": "is", "arent": "are", "wasnt": "was"}
_MODALS = words.each("will would can could may might must should 'll 'd ca wo cannot shall gonna")
_ADVERBS = words.each(
    "actually really currently now still also just recently mostly absolutely definitely personally generally "
    "usually truly always finally already both literally officially normally often basically kinda only even "
    "newly all probably certainly totally apparently sometimes too soon obviously honestly originally both"
)
_DOUBTFUL = frozenset(["probably", "kinda", "apparently", "sometimes"])


_NO_PHRASE = re.compile(
    r"(?i:[,;!]|\sto$|\s(?:is|are|was|were|has|had|should|would|will|can|could|must|may|might|says?|said|thinks?|"
    r"reckons?|told|i|we|he|she)\b)"
)
_ADVERB_END = re.compile(rf"(?i:(?:\s(?:{'|'.join(_ADVERBS)}))+$)")
_KEPT = frozenset(["only", "always", "usually", "often", "mostly", "never", "seldom"])
_MANNER = re.compile(r"\w{3,}(?<!rep)(?<!app)(?<!supp)(?<!comp)(?<!ltip)ly")


def third(verb: str) -> str:
    """A verb as it follows a name: "live" as "lives"."""
    if verb in ("have", "do", "go"):
        return {"have": "has", "do": "does", "go": "goes"}[verb]
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeou" else f"{verb}s"


@cache
def _verbs() -> dict[str, str]:
    """Every form of the verbs that are known, with how it stands."""
    found = dict.fromkeys(words.DID, "did") | dict.fromkeys(words.PARTICIPLES, "done")
    found |= {third(verb): "does" for verb in words.DOES} | dict.fromkeys(words.DOING, "doing")
    return found | {verb: "do" for verb in words.DOES if verb not in found}


def _is_finite(word: str) -> bool:
    return (
        word in _BE
        or word in _BARE_NOT
        or word in _HAVE
        or word in _MODALS
        or word in _DO
        or _verbs().get(word, "doing") not in ("doing", "done")
    )


def clauses(text: str, before: str = "") -> Iterator[Clause]:
    """The clauses whose subject is the speaker or belongs to the speaker. ``before`` is the previous sentence."""
    last: Subject | None = None
    for clause in _apposed(text):
        yield clause
        last = clause.subject
    for start, end, join in segments(text):
        if join in ("which", "who", "if", "unless", "that's"):
            continue
        at, when = _lead(text, start, end)
        found = list(
            _subjects(text, at, end, last if (join or start) and join != "so" else None, before, first=start == 0)
        )
        for subject in found:
            yield Clause(subject, at, end, when)
        if found:
            last = found[0]


_ITS_PART = Pattern(r"\s[a-z]{3,}(?<!ing)(?<!ed)(?:\s[a-z]{3,})?\s(?:is|are|was|has)\b")
_THE_OTHER = Pattern(r"(?i:the\s(?:\w+\s)?\w+\s(?:is|are|was|has)\b|(?:it|this|that|there|mine)\b)")
_NAMED_DOES = Pattern(rf"[A-Z][\w'\u2019-]+\s(?:(?:{'|'.join(sorted(_ADVERBS))})\s)?(\w+)\b")
_APPOSED = Pattern(
    rf"(?i:(?:^|[,.]\s|\b(?:and|but|so|because)\s)(?P<start>)(?:(?P<name>{NAME}),\s(?:my|"
    rf"our)\s(?P<kin>(?:[\w-]+\s)?{WHO})|"
    rf"(?:my|our)\s(?P<who>(?:[\w-]+\s)?{WHO}),\s(?:(?P<called>{NAME})|an?\s[^,]{{2,40}})),\s)"
)


def _apposed(text: str) -> Iterator[Clause]:
    """Clauses whose subject has a name or kind of its own between commas: "my aunt, Gerda, turns 80"."""
    for found in _APPOSED.finditer(text):
        who = " ".join(part for part in (found["kin"] or found["who"], found["name"] or found["called"]) if part)
        subject = Subject(PERSON, who, found.start("start"), found.end())
        end = next(segments(text[found.end() :]))[1] + found.end()
        yield Clause(subject, subject.start, end)


def segments(text: str) -> Iterator[tuple[int, int, str]]:
    begin, joined = 0, ""
    for cut in _CUT.finditer(text):
        join = (cut["join"] or "").lower()
        mark = cut[0].strip()
        if cut.start() <= begin and not join:
            continue
        if not mark:
            continue  # a blank is no boundary
        if join == "and" and mark == "and" and not (_has_verb(text[begin : cut.start()]) or _ALONE.match(text, begin)):
            continue  # "Freddie and I"
        hard = join in _ALWAYS or mark[0] in ";(.)"
        if hard or _opens(text, cut.end(), join, mark[:1]):
            yield begin, cut.start(), joined
            begin, joined = cut.end(), join
    yield begin, len(text), joined


def _has_verb(piece: str) -> bool:
    return any(_is_finite(token[0].lower().replace("\u2019", "'")) for token in _TOKEN.finditer(piece)) or "'s" in piece


def _opens(text: str, at: int, join: str, mark: str) -> bool:
    """Whether a clause of its own begins here, and not the next thing of a list."""
    if _I.match(text, at) or _MY.match(text, at) or _THEY.match(text, at):
        return join != "since" or not text[at:].lower().startswith(("i was ", "we were "))
    token = _TOKEN.match(text, at)
    word = token[0].lower() if token else ""
    if join == "and" and (_THE_OTHER.match(text, at) or (mark == "," and _goes_on_apart(text, at))):
        return True
    named = _NAMED_DOES.match(text, at) if join == "and" else None
    if named is not None and _is_finite(named[1].lower()):
        return True  # "… is 39 and Lena wears 40"
    if join in ("and", "or", "plus", "then"):
        return _is_finite(word) or word in ("want", "need", "would", "am", "never") or _verbs().get(word) == "doing"
    if join in ("since", "as", "while") or mark not in (",", ":", "\u2013", "\u2014", "-"):
        return False
    return (
        bool(_CLOSER.match(text, at))
        or word in ("mine", "ours")
        or word in words.BARE.split()
        or (mark == "," and _verbs().get(word) in ("did", "do"))
    )


def _goes_on_apart(text: str, at: int) -> bool:
    """Whether another subject follows within three words: ", and sound doesn't work"."""
    seen = [token[0].lower() for token, _ in zip(_TOKEN.finditer(text[at : at + 60]), range(4), strict=False)]
    if seen[:1] and seen[0] in ("the", "his", "her", "their", "it", "she", "he", "they"):
        return True
    return any(word in _DO or word in _BARE_NOT or word in ("is", "are", "'s", "n't") for word in seen[1:])


def _lead(text: str, at: int, end: int) -> tuple[int, str]:
    """Where the clause itself begins after "btw," or "every Monday", and that time."""
    when = ""
    for _ in range(6):
        timed = None if when else _WHEN.match(text, at, end)
        filler = None if timed else FILLER.match(text, at, end)
        if filler is None and timed is None:
            break
        at = (filler or timed).end()  # type: ignore[union-attr]
        when = timed["when"] if timed else when
    return at, when


def _subjects(text: str, at: int, end: int, last: Subject | None, before: str, *, first: bool) -> Iterator[Subject]:
    if (own := _I.match(text, at, end)) is not None:
        others = re.sub(r"(?i)\s+and\s+(?:i|me)$|^(?:me|i)\s+and\s+", "", own[0]) if " and " in own[0] else ""
        yield Subject(SELF, others, at, own.end())
    elif (mine := _MY.match(text, at, end)) is not None:
        yield from _owned(text, at, mine.end(), end)
    elif (they := _THEY.match(text, at, end)) is not None:
        antecedent = _antecedent(text[:at]) or _antecedent(before)
        if antecedent:
            named = they[0].lower().endswith(" name")
            yield Subject(THING if named else PERSON, antecedent + "'s name" * named, at, they.end())
    elif (the := _THE.match(text, at, end)) is not None:
        yield from (
            _by_date(each)
            for each in _owned(text, at, the.end(), end)
            if head_of(each.words) in heads_of("ROLES", "PETS", "POSSESSIONS", "EVENTS")
            or each.words in ("kids", "wife", "husband", "missus", "twins", "baby")
        )
    else:
        yield from _bare(text, at, end, last, first=first)


def _by_date(subject: Subject) -> Subject:
    """ "The exam" is the speaker's where a date follows: then it is shared with those who know of it."""
    return subject._replace(shared=True) if head_of(subject.words) in heads_of("EVENTS") else subject


_AN_ORDER = words.each(
    "getting going using seeing building named called playing driving buying planning selling visiting writing running"
)
"""Verbs that ask for help with something where they open a sentence: "building a shed"."""


def _bare(text: str, at: int, end: int, last: Subject | None, *, first: bool) -> Iterator[Subject]:
    """A subject without "my", or one left out."""
    token = _TOKEN.match(text, at, end)
    word = token[0].lower() if token else ""
    if word in words.BARE.split():
        yield from _owned(text, at, at, end)
    elif last is not None and (_is_finite(word) or word in ("never",)) and word not in _MODALS:
        aim = _IN_ORDER_TO.search(text[max(0, at - 80) : at])
        if aim and aim[1] in words.LIGHT | words.DOES.keys() and _verbs().get(word) == "do":
            return  # "to save my back and avoid falls"
        if _NOUN_AFTER_ALL.match(text, at, end) or (last.kind == SELF and _third_person(word)):
            return
        if last.kind != SELF and _verbs().get(word) == "do" and not is_plural(last.words):
            return  # "my wife is from Pune, teach me a greeting": an order
        yield last._replace(start=at, end=at, shared=True)
    elif first and (
        _verbs().get(word) == "doing"
        and not _has_verb(text[at + len(word) : end])  # "sharing a flat is hard"
        and word not in _AN_ORDER
    ):
        yield Subject(SELF, "", at, at, shared=True)
    elif first:
        yield from (
            each._replace(shared=True)
            for each in _owned(text, at, at, end)
            if (head_of(each.words) in heads_of("EVENTS") or _belonging(each, text))
            and not _NOT_MINE.match(each.words)
            and not _OWN_INSIDE.search(each.words)
        )


def _belonging(subject: Subject, text: str) -> bool:
    """Whether what stands without "my" is a thing that has one owner, and not a field: "client = Client()"."""
    owned = head_of(subject.words) in heads_of("POSSESSIONS", "IDENTIFIED", "ROUTINE") and subject.kind == THING
    return owned and "'s " not in subject.words and text[subject.end :].lstrip()[:1] not in (":", "=")


def _third_person(word: str) -> bool:
    return word in ("is", "does", "has", "doesnt", "isnt") or _verbs().get(word) == "does"


_IN_ORDER_TO = Pattern(r"\bto\s([a-z]{3,})\s[^,;:]*\band\s$")
_NOUN_AFTER_ALL = Pattern(r"(?i:\w+\s(?:\w+\s)?(?:is|are|was|has|goes|comes|does)\b)")


@cache
def heads_of(*tables: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for table in tables for word in getattr(words, table).split())


@cache
def _nouns() -> frozenset[str]:
    tables = heads_of("KIN", "ROLES", "PETS", "POSSESSIONS", "EVENTS", "ATTRIBUTES")
    return tables | {f"{noun}s" for noun in tables} | {"name", "names", "place"}


def _owned(text: str, start: int, at: int, end: int) -> Iterator[Subject]:
    """The subjects that "my …" can be, the shortest first: each ends before a verb."""
    for count, token in enumerate(_TOKEN.finditer(text[:end][at:])):
        if count > 9:
            return
        word, place = token[0].lower(), at + token.start()
        following = _token(text, at + token.end(), end)
        if word in ("'s", "\u2019s") and _owns(text, at + token.end(), end):
            continue  # "my sister's flat", not "my sister is …"
        if (
            word in ("'s", "\u2019s", ":", "=", "'re", "'ve")
            or (count and _follows(text[at:place], word))
            or _acts(text[at:place].strip(), token[0], following[0].lower() if following else "")
        ):
            name = _ADVERB_END.sub("", text[at:place].strip())
            if name and not _NO_PHRASE.search(name):
                kind = PERSON if is_person(name) else THING
                yield Subject(kind, name, start, at + text[at:place].index(name) + len(name))


def _owns(text: str, at: int, end: int) -> bool:
    """Whether what follows "my sister's" is hers: "flat" or "old flat", but not "a nurse"."""
    first = _token(text, at, end)
    second = _token(text, first.end(), end) if first else None
    if first is None or first[0].lower() in words.NO_VERB:
        return False
    if first[0].lower() in _nouns() or (second is not None and second[0].lower() in _nouns()):
        return True
    return bool(_ITS_PART.match(text, at, end)) and first[0].lower() not in _ADVERBS


def _follows(name: str, word: str) -> bool:
    """Whether a word is a verb that a phrase can have: "my hours work" but not "my work hours"."""
    return _is_finite(word) and (_verbs().get(word) != "do" or is_plural(name.strip()) or word in (*_HAVE, *_DO))


def _acts(name: str, word: str, after: str) -> bool:
    """Whether a word in no table is what someone, or those one belongs to, does: "my nan Rose crochets"."""
    if not name or word.lower() in _nouns() or (_is_finite(after) and after not in words.DOES):
        return False
    kind = PERSON if is_person(name) else THING if head_of(name) in words.GROUPS.split() else ""
    form = unlisted(word, Subject(kind, name, 0, 0)) if kind else None
    return form == "does" or (form == "do" and after in words.NO_VERB)


def is_person(name: str) -> bool:
    """Whether a phrase that follows "my" names a person or an animal: "older brother", "cousin Priya in Rome"."""
    name = re.split(r"\s(?:in|from|at|for|of)\s", name)[0]
    return (
        re.fullmatch(rf"(?i:(?:[\w'\u2019-]+\s){{0,4}}?(?:{WHO}))(?:\s{NAME})?(?:\sand\s.{{1,30}})?", name) is not None
        and not re.search(r"['\u2019]s\s\w+$", name)
    ) or bool(re.fullmatch(rf"(?i:.*['\u2019]s\s(?:{WHO}))", name))


def head_of(name: str) -> str:
    """The noun of a phrase: "exam" in "exam in organic chemistry"."""
    phrase = re.split(r"\s(?:in|with|for|of|at|on|from|to)\s", name.lower())[0]
    two = " ".join(phrase.split()[-2:])
    return (
        two
        if two in heads_of("EVENTS", "ROLES", "POSSESSIONS", "ATTRIBUTES", "ROUTINE", "IDENTIFIED", "CONDITIONS")
        else (phrase.split() or [""])[-1]
    )


def _antecedent(before: str) -> str:
    """Whom "she" means: the one person or animal that was named before, if there is only one."""
    found = list(_ANTECEDENT.finditer(before))
    who = {(each["kin"] or each["pet"] or each["bare"]).lower() for each in found}
    if len(who) != 1:
        return ""
    name = next((each["name"] or each["named"] for each in found if each["name"] or each["named"]), "")
    return f"{who.pop()} {name}".strip()


def verb_group(text: str, clause: Clause) -> VerbGroup | None:
    """The verb that follows the subject, with what stands around it."""
    seen, at = _Auxiliaries(text, clause.end), clause.subject.end
    for _ in range(9):
        token = _token(text, at, clause.end)
        if token is None:
            break
        word = token[0].lower().replace("\u2019", "'")
        if word in (":", "=") and not seen.words:
            return VerbGroup("be", "is", seen.negated, seen.modal, "is", token.end())
        if not seen.take(word, token.end()):
            known = _verbs().get(word) or unlisted(token[0], clause.subject, seen.last, helped=seen.helped)
            if known is None or (seen.last in _BE and known in ("do", "does", "did", "done")):
                break
            found = None if seen.doubtful else _main(known, word, seen.words, seen.negated, seen.modal, token.end())
            return found if found is None else found._replace(adverb=seen.adverb)
        at = token.end()
    return None if seen.doubtful else seen.alone(at)


class _Auxiliaries:
    """What stands before the main verb of a clause, taken word by word."""

    def __init__(self, text: str, end: int) -> None:
        self._text, self._end = text, end
        self.words: list[str] = []
        self.negated = self.doubtful = False
        self.modal = self.adverb = ""

    @property
    def last(self) -> str:
        return self.words[-1] if self.words else ""

    @property
    def helped(self) -> bool:
        return bool(self.modal) or self.last == "do"

    def take(self, word: str, end: int) -> bool:
        """Take a word unless it is the main verb, or none."""
        if word in _BARE_NOT:
            self.negated = True
            return self.take(_BARE_NOT[word], end)
        if word in _ADVERBS or word == "seldom" or _MANNER.fullmatch(word):
            self.doubtful = self.doubtful or word in _DOUBTFUL
            self.adverb = word if word in _KEPT or word not in _ADVERBS else self.adverb
        elif word in ("not", "n't", "never") or (word == "no" and self._text[end : end + 7] == " longer"):
            self.negated = True
            self.adverb = word if word == "never" else self.adverb
        elif word in _MODALS:
            self.modal = self.modal or word
        elif word in ("got", "gotten") and self.last in (*_HAVE, "'s"):
            self.words[-1] = "have"
        elif word == "'s" or word in _BE:
            self.words.append(word)
        elif word in _HAVE and self.last not in _HAVE:
            self.words.append(word if word == "had" else "have")
        elif word in _DO and _next_is_verb(self._text, end, self._end):
            self.words.append("do")
        else:
            return False
        return True

    def alone(self, end: int) -> VerbGroup | None:
        """The verb of a clause that has no other: "is", "have", "had" or "do"."""
        form, verb, said = {"had": ("did", "had", "had"), "have": ("have", "have", "has")}.get(self.last, ("", "", ""))
        if self.last in _BE or self.last == "'s":
            form, verb = "be", "was" if self.last in ("was", "were") else "is"
            said = "has been" if self.last == "been" and self.words[0] in _HAVE | {"'s"} else verb
        elif self.last == "do" and not self.negated:
            form, verb, said = "do", "do", "does"
        return VerbGroup(form, verb, self.negated, self.modal, said, end, self.adverb) if form else None


def _token(text: str, at: int, end: int) -> re.Match[str] | None:
    while at < end and text[at].isspace():
        at += 1
    return _TOKEN.match(text, at, end)


def _next_is_verb(text: str, at: int, end: int) -> bool:
    """Whether "do" helps another verb: "don't eat", "do love", but not "do yoga"."""
    negated = at > 0 and text[:at].lower().endswith(("dont", "doesnt", "didnt"))
    for _ in range(3):
        token = _token(text, at, end)
        word = token[0].lower().replace("\u2019", "'") if token else ""
        if word in ("n't", "not", "never") or word in _ADVERBS:
            at, negated = token.end() if token else at, negated or word not in _ADVERBS
            continue
        return word in _verbs() or word in words.NEVER_DOES or word in ("have", "do") or (negated and word.isalpha())
    return False


def unlisted(word: str, subject: Subject, last: str = "", *, helped: bool = False) -> str | None:
    """How a word stands that is in no table, if it can be the verb of this subject: by its ending alone."""
    if len(word) < 2 or not word.isalpha() or not word.islower() or word in words.NO_VERB or last in _BE:
        return None
    if last == "'s":
        return None
    if last in (*_HAVE, "had"):
        return "did" if word in words.PAST or word.endswith(("ed", "en")) else None
    if helped:
        return "do"
    if word in words.PAST or (word.endswith("ed") and word not in ("need", "feed", "breed", "embed", "bleed", "speed")):
        return "did"
    if subject.kind == SELF or is_plural(subject.words):
        return "do" if not word.endswith(("ing", "ly")) else None
    return "does" if word.endswith("s") and not word.endswith(("ss", "us", "is")) else None


def is_plural(name: str) -> bool:
    """Whether a phrase after "my" stands for several: "twins", but not "daughter Ines"."""
    head = re.split(r"\s(?:in|with|for|of|at|on|from|to)\s", name)[0]
    head = re.sub(r"(?<=[a-z])(?:\s(?:[A-Z][\w'\u2019-]*|St\.))+$", "", head).lower()
    last = (head.split() or [""])[-1]
    several = last.endswith("s") and not last.endswith(("ss", "us", "is", "'s"))
    return " and " in f" {name} " or several or last in ("children", "bees", "people", "parents", "kids")


def _base(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "shes", "ches", "xes", "zes", "oes")) else word[:-1]


def _main(known: str, word: str, aux: list[str], negated: bool, modal: str, end: int) -> VerbGroup | None:
    last = aux[-1] if aux else ""
    if known == "doing":
        be = "was" if last in ("was", "were") else "has been" if last == "been" and aux[0] in _HAVE | {"'s"} else "is"
        return VerbGroup("doing", word, negated, modal, f"{be} {word}", end)
    if last in (*_HAVE, "'s") or last == "had":
        past = words.PARTICIPLES.get(word, word)
        return (
            VerbGroup("did", past, negated, modal, f"{'had' if last == 'had' else 'has'} {word}", end)
            if past in words.DID or known == "did"
            else None
        )
    if last in _BE:
        return None
    if known == "does":
        base = next((verb for verb in words.DOES if third(verb) == word), _base(word))
        return VerbGroup("do", base, negated, modal, word, end)
    if known == "do":
        return VerbGroup("do", word, negated, modal, third(word), end)
    return VerbGroup("did", word, negated, modal, word, end) if known == "did" else None


_OURS = {
    "my": "their",
    "our": "their",
    "me": "them",
    "us": "them",
    "mine": "theirs",
    "ours": "theirs",
    "i": "they",
    "we": "they",
    "myself": "themselves",
    "ourselves": "themselves",
    "i'm": "they are",
    "we're": "they are",
    "i've": "they have",
    "im": "they are",
    "am": "are",
    "i'll": "they will",
}
_OWN_WORD = Pattern(
    r"(?i:(?<![\w'\u2019])(?:i was|i['\u2019](?:m|ve|ll)|we['\u2019]re|i am|my|our|me|us|mine|ours|i|we|myself|"
    r"ourselves|im)(?![\w'\u2019]))"
)


def theirs(text: str) -> str:
    """The speaker's own words as said of the speaker: "my sister" as "their sister"."""

    def other(found: re.Match[str]) -> str:
        word = found[0].lower().replace("\u2019", "'")
        return {"i was": "they were", "i am": "they are"}.get(word) or _OURS.get(word, found[0])

    return _OWN_WORD.sub(other, text)
