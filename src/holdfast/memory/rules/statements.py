"""The rules of statements: what the other rules have no form of their own for, in clauses that ``vocabulary`` knows.

"my gran speaks only Tamil" becomes "Ana's gran speaks only Tamil", "got braces last month" becomes "Ana got braces last
month". A clause counts when its verb is in the tables, what follows fits, and nothing makes it doubtful or passing.
Deliberately absent: grammar (``clauses``), words (``vocabulary``), and what may follow a verb (``complements``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import complements
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.clauses import (
    PERSON,
    SELF,
    THING,
    Clause,
    Subject,
    VerbGroup,
    clauses,
    head_of,
    heads_of,
    is_plural,
    theirs,
    verb_group,
)
from holdfast.memory.rules.complements import SECRET
from holdfast.memory.rules.dates import ahead, stamp
from holdfast.memory.rules.lasting import CONDITION, lasting
from holdfast.memory.rules.phrases import folded, place_at
from holdfast.memory.rules.reading import Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_PASSING = Pattern(
    r"(?i:\b(?:right\snow|rn|at\sthe\smoment|tonight|this\s(?:morning|afternoon|evening|second|minute)|"
    r"(?<!of\s)(?<!from\s)today|"
    r"for\snow|atm|"
    r"in\sa\s(?:minute|sec|second|bit|moment|hurry|meeting|mood)|soon|later|again|for\sa\s(?:bit|sec|while)|"
    r"like\s(?:crazy|hell|a)|lol|lmao|jk|one\sday|someday|in\stheory|any\s?more)\b)"
)
_OPEN = Pattern(
    r"(?i:\b(?:maybe|perhaps|your?|or\ssomething|i\s(?:think|guess|suppose|hope|wish)|if\sonly|not\ssure|hopefully|"
    r"might|nothing(?!\sbut\b)|"
    r"apparently|supposedly|in\s(?:the|this|a|my)\s(?:game|story|novel|movie|film|dream|scenario|campaign))\b)"
)
_HANGING = Pattern(
    r"(?i:(?:^|\s)(?:until|till|from|to|of|for|with|at|in|on|and|or|but|the|an?|my|our|as|than|by|into|about)$)"
)
_TECHNICAL = Pattern(
    r"(?i:\b(?:json|csv|xml|html|css|python|scripts?|files?|quer(?:y|ies)|sql|tables|repo|commits?|deploys?|bugs?|"
    "variables?|regex|endpoints?|spreadsheets?|"
    r"404|500\serror|errors?|exceptions?|branch|pull\srequest|columns?|rows?|div|loops?|arrays?|strings?|updates?|"
    r"tabs?|unit\stests?)\b)"
)
_POINTING = Pattern(r"(?i:(?:it|this|that|them|these|those|him|her)\b(?!\s(?:name|birthday|is)\b))")
_LASTING = frozenset({"health", "plan", "family", "change", "decision", "person"})
_TRAILING = Pattern(
    r"(?i:(?:[\s,:;!.()\u2013\u2014-]|\b(?:please|pls|lol|haha|tho|though|btw|sadly|finally|ugh|too|actually|"
    r"you\sknow|by\sthe\sway|"
    r"instead|here|honestly|thanks|then|yay|and|or|so|now|ok)\b|:[)D(])+$)"
)


class _Predication(NamedTuple):
    family: str
    end: int
    text: str
    key: str | None = None


def _statement(sentence: Sentence) -> Iterator[Extraction]:
    reached = -1
    for clause in clauses(sentence.text, sentence.before):
        if clause.subject.start < reached or not sentence.states(clause.subject.start):
            continue
        group = verb_group(sentence.text, clause)
        found = told(sentence, clause, group) if group is not None else None
        if found is None:
            continue
        reached = found.end
        yield sentence.found(
            "statement", clause.start, found.end, found.text, key=found.key,
            corrects=sentence.corrects and found.key is not None, kind="semantic",
            valid_from=sentence.since(event=group.form == "did") if group else None,
            importance=0.8 if found.family == "health" else 0.6, tags=(found.family,),
        )  # fmt: skip


def told(sentence: Sentence, clause: Clause, group: VerbGroup) -> _Predication | None:
    """What a clause says, if it is of a kind worth keeping."""
    text, start = sentence.text, _after_blank(sentence.text, group.end)
    end = _trimmed(text, start, _run_on(text, start, clause.end))
    if group.verb in ("take", "taking") and (aim := _FOR_IT.search(text, start, end)):
        end = aim.start()  # what for, only the talk tells
    if group.negated and words.NEVER_DOES.get(group.verb, ("", ""))[1] == "only":
        end = min(end, text.find(",", start, end) % (len(text) + 1))  # "can't swim, never learned"
    rest = text[start:end]
    whole = f"{text[:end]} {clause.when}" if clause.when else text  # what fits may stand before the subject
    own = clause.subject.kind != THING or not clause.subject.shared or clause.subject.end == clause.subject.start
    if not own and not _says_when(text, clause, start, end) and not complements.fits("money", text, start, end):
        return None  # "house rules ideas" may be anyone's
    family = _family(whole, clause, group, start, len(whole) if clause.when else end)
    family = family or lasting(text, clause, group, start, end, f"{rest} {clause.when}")
    if group.verb in ("live", "living") and _SEASON.match(clause.when):
        return None  # one home of several
    if rest and (_HANGING.search(rest) or (subject_left_out(clause, group) and _ONLY_TIMED.match(rest))):
        return None
    if (
        family is None
        or "\x00" in text[clause.start : start]
        or _OPEN.search(text, start, clause.end)
        or _TECHNICAL.search(text, start, clause.end)
        or SECRET.search(text, clause.start, end)
    ):
        return None
    passing = _PASSING.search(rest) or _PASSING.search(clause.when)
    lasts = family in _LASTING and group.form != "be" and not group.negated
    if passing and (not lasts or passing[0].lower() not in _SOON):
        return None
    if group.negated and text[end : clause.end].strip(" .,!").lower() == "then":
        return None  # "so I can't work then": when that is stands elsewhere
    if group.adverb == "only" and CONDITION.match(text, clause.end):
        return None
    if group.verb in _OF_SOMETHING and _AGO.match(rest):
        return None
    subject = clause.subject
    who = _named(sentence.who, subject)
    together = group.form == "be" and text[subject.start : subject.end].lower() == "we" and _SEVERAL.match(rest)
    words_ = theirs(sentence.words(start, end)).lstrip(" ,;:") if rest else ""
    timed = theirs(clause.when[:1].lower() + clause.when[1:])
    timed = f"on {timed.capitalize()}" if _DAYS.fullmatch(timed) else timed
    said = " ".join(part for part in (who, "belongs to" if together else _verb(group, subject), words_, timed) if part)
    return _Predication(family, end, f"{said}{_day(sentence, clause, group, end)}", _key(clause, group, family, rest))


def _day(sentence: Sentence, clause: Clause, group: VerbGroup, end: int) -> str:
    """The day of a time that only the day of the message tells: "last month", "on the 12th"."""
    if group.negated or _RECURS.search(sentence.text, clause.start, end) or _RECURS.search(clause.when):
        return ""
    for span in sentence.spans:
        if (
            span.since
            and span.until
            and clause.start - len(clause.when) - 2 <= span.start
            and span.end <= end
            and span.kind not in ("since", "year")
        ):
            span = span if group.form == "did" or group.verb == "was" else ahead(sentence, span)
            return "" if re.search(r"[0-9]{4}", sentence.text[span.start : span.end + 5]) else f" ({stamp(span)})"
    return ""


def subject_left_out(clause: Clause, group: VerbGroup) -> bool:
    return clause.subject.shared and group.form == "doing"


def _named(who: str, subject: Subject) -> str:
    if subject.kind == SELF:
        return f"{who} and {theirs(subject.words)}" if subject.words else who
    first, _, rest = subject.words.partition(" ")
    own = first.lower() if first.lower() in words.BARE.split() else first
    return f"{who}'s {theirs(f'{own} {rest}'.strip())}"


def _verb(group: VerbGroup, subject: Subject) -> str:
    """The verbs of a clause after a name: "don't eat" as "does not eat"."""
    plural = bool(subject.words) if subject.kind == SELF else is_plural(subject.words)
    have, be, was = ("have", "are", "were") if plural else ("has", "is", "was")
    said = re.sub(r"^has\b", have, re.sub(r"^is\b", be, re.sub(r"^was\b", was, group.words)))
    if plural and group.form == "do":
        said = group.verb
    if group.modal in ("will", "'ll"):
        return f"will {group.verb}"
    if group.modal in ("can", "ca", "cannot") and group.adverb == "only":
        return f"can only {group.verb}"
    if group.modal in ("can", "ca", "cannot"):
        return f"can{'not' * group.negated} {group.verb}"
    if group.negated and said.startswith(("has ", "have ")) and group.form != "have":
        return said.replace(" ", " never " if group.adverb == "never" else " not ", 1)
    if group.form == "did" and group.adverb == "never":
        return f"never {said}"
    if group.negated:
        return f"{said} not" if group.form in ("be",) else f"does not {group.verb}"
    if group.adverb:
        return f"{said} {group.adverb}" if group.form == "be" else f"{group.adverb} {said}"
    return said


def _family(text: str, clause: Clause, group: VerbGroup, start: int, end: int) -> str | None:
    """What a clause is about, if its verb and what follows are in the tables."""
    if group.modal:
        return _by_modal(text, group, start, end)
    if clause.subject.kind == THING:
        return _of_thing(text, clause, group, start, end)
    if group.form == "be":
        return _being(text, clause, start, end, negated=group.negated)
    if _POINTING.match(text, start, end):
        return None
    if group.negated:
        return _fitting(words.NEVER_DOES, group.verb, text, start, end) if group.form in ("do", "have") else None
    if group.form == "have":
        return _fitting(words.DOES, "have", text, start, end) and _having(text, start, end)
    if (group.form, group.verb) == ("do", "have"):
        return None
    return _fitting(_TABLES[group.form], group.verb, text, start, end)


_TABLES = {"do": words.DOES, "did": words.DID, "doing": words.DOING}


def _by_modal(text: str, group: VerbGroup, start: int, end: int) -> str | None:
    """What someone will do on a day, cannot do, or can spend or only do at a time. The rest is only possible."""
    if _POINTING.match(text, start, end):
        return None
    if group.modal in ("will", "'ll"):
        dated = complements.fits("date", text, start, end) and complements.fits("any", text, start, end)
        return "plan" if group.form == "do" and dated and not group.negated else None
    if group.modal not in ("can", "ca", "cannot"):
        return None
    if group.negated or group.modal in ("ca", "cannot"):
        return _fitting(words.NEVER_DOES, group.verb, text, start, end) if group.form in ("do", "have") else None
    if group.adverb == "only" and _TIMED.search(text, start, end):
        return "routine"
    return "money" if group.verb in ("spend", "pay") and complements.fits("money", text, start, end) else None


def _of_thing(text: str, clause: Clause, group: VerbGroup, start: int, end: int) -> str | None:
    if group.form == "be":
        return None if group.negated or group.verb == "was" else _being(text, clause, start, end, negated=False)
    if group.verb == "went" and not _UP_TO.match(text, start, end):
        return None
    known = group.verb in _THING_VERBS and group.words[:4] != "was " and _IS_THING.match(text, start, end)
    return "thing" if known and not group.negated and not _POINTING.match(text, start, end) else None


_THING_VERBS = words.each(
    "cost run end start begin expire close open leave land arrive depart get got finish meet move moved weigh "
    "measure turn take need lead shift shifted change changed went"
)
_DESCRIBING = Pattern(
    r"(?i:(?:being|so|too|very|really|not|at\s\d+\s?(?:%|percent)|in\s(?:the|a|my|our)\s|on\s(?:the\s(?!\w+\sfloor)|"
    r"a\s|my\s|"
    r"fire\b)|here|like|as|down|gone|late|stuck|delayed|\d+\s\w+\s(?:late|behind|overdue))(?!\w))"
)


def _being(text: str, clause: Clause, start: int, end: int, *, negated: bool) -> str | None:
    kind = clause.subject.kind
    if negated:
        return (
            "routine"
            if re.match(rf"(?i:(?:available|free|reachable|home|around|in)\b.*?{complements.TIME})", text[start:end])
            else None
        )
    if kind in (SELF, PERSON) and _IS_SELF.match(text, start, end):
        return "person"
    if kind == PERSON and (_IS_OTHER.match(text, start, end) or _is_named(text, start, end)):
        return (
            None
            if re.match(
                r"(?i:an?\s(?:bit|pain|mess|joke|lot|saint|angel|genius|star|hero|nightmare|monster|legend|little|"
                r"total|real|big|great|good|bad|huge|true|treasure|sweetheart|delight|handful|character|disaster))\b",
                text[start:end],
            )
            else "family"
        )
    if kind == THING and not _DESCRIBING.match(text, start, end) and _IS_THING.match(text, start, end):
        name = clause.subject.words
        told = (
            _known(name)
            or _CALLED.match(text, start, end)
            or (_TIMED.search(text, start, end) and head_of(name) not in _VAGUE)
        )
        return "thing" if told else None
    return None


def _says_when(text: str, clause: Clause, start: int, end: int) -> bool:
    """Whether an event without "my" has a day of its own. "The meeting is on Friday" could be anyone's."""
    if text[clause.subject.start : clause.subject.start + 4].lower() == "the ":
        return _ON_A_DATE.search(text, start, end) is not None
    return _LISTED.search(text, start, end) is not None


def _known(name: str) -> bool:
    """Whether a thing is of a kind that is worth keeping, or is at least no passing thing of the work at hand."""
    head = head_of(name)
    return head in heads_of("ATTRIBUTES", "POSSESSIONS", "EVENTS", "ROUTINE", "IDENTIFIED", "CONDITIONS") or bool(
        " " in name
        and set(name.lower().replace("'s", "").split()) & set(words.each(f"{words.NUMBERING} favourite favorite"))
    )


def _is_named(text: str, start: int, end: int) -> bool:
    return (
        re.match(
            r"(?:(?:Mr|Mrs|Ms|Dr|"
            r"Prof)\.?\s)?(?:[A-Z]\.\s){0,3}[A-Z][\w'\u2019-]+(?:\s[A-Z][\w'\u2019-]+){0,2}(?:\s(?:at|from|in|"
            r"on)\s.{2,50})?\W*$",
            text[start:end],
        )
        is not None
    )


_SEASON = Pattern(r"(?i:in\s(?:the\s)?(?:spring|summer|autumn|fall|winter)|during\sthe\s(?:week|summer|winter))")
_CURRENT = Pattern(r"(?i:^(?:new|current|own|present)\s)")
_FOR_IT = Pattern(r"(?i:\sfor\s(?:it|them|this|that)\Z)")
_NEAR = Pattern(r"(?i:(?:in|near|outside)\s)")
_UP_TO = Pattern(r"(?i:(?:up|down)\sto\s\D{0,8}\d)")
_NOW = r"(?:(?:now|currently|still|only|just|about|around|roughly|over|under|max|called|named|spelled|spelt)\s){0,2}"
_VALUE = Pattern(rf"(?i:{_NOW}(?:an?\s|size\s|(?:the\s|\d+\s)?(?:[\"\u201c\x00$\u20ac\u00a3]|(?-i:[A-Z]))))")
_NUMBER = Pattern(
    rf"(?i:{_NOW}\d[\d.,:]*(?![\d.,:])(?!\s(?-i:[A-Z]))(?P<passing>\s?(?:\w+\s){{0,2}}?(?:late|early|old|away|off|behind|"
    r"ahead|left|overdue|long|too)\b)?)"
)
_MONEY = Pattern(rf"(?i:{_NOW}{words.MONEY})")
_TAKEN = words.each(
    "phone email home job name age employer birthday called origin diet anniversary studies height weight"
)
_OF_SOMETHING = words.each("quit stopped started left bought sold finished got")
_SEVERAL = Pattern(r"(?i:an?\s(?:[\w-]+\s){0,2}(?:house|home|family|couple|household|team|group|band|club)\b)")
_AGO = Pattern(r"(?i:(?:\w+\s){1,4}ago\W*$|(?:last|this|in)\s\w+\W*$|yesterday\W*$)")
_SOON = ("soon", "today", "again", "tonight")
_DAYS = re.compile(rf"(?i:{words.DAY}s)")
_RECURS = Pattern(rf"(?i:{words.RECURRING}|\bborn\b|\bbirthday\b|\banniversary\b)")
_CALLED = Pattern(r"(?i:called\s|named\s)")
_LISTED = Pattern(rf"(?i:{words.RECURRING}|{words.DATED}|\b{words.DAY}\b)")
_ON_A_DATE = Pattern(
    rf"(?i:\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{words.MONTHLY}\b|\b{words.MONTHLY}\.?\s\d{{1,2}}\b|"
    rf"\bthe\s\d{{1,2}}(?:st|nd|rd|th)\b)"
)
_TIMED = Pattern(rf"(?i:{complements.TIME}|{words.MONEY})")
_ONLY_TIMED = Pattern(rf"(?i:(?:on\s|in\s)?{complements.TIME}\W*$)")
_VAGUE = words.each(
    "character code essay result question guess point answer problem issue error output function list array file "
    "script program query text prompt message sentence paragraph word input string variable class version data "
    "table score turn bad idea opinion favorite page"
)
_IS_SELF = Pattern(rf"(?i:{complements.IS_SELF})")
_IS_OTHER = Pattern(rf"(?i:{complements.IS_OTHER})")
_IS_THING = Pattern(rf"(?i:{complements.IS_THING})")


def _having(text: str, start: int, end: int) -> str:
    return "health" if re.match(rf"(?i:.*\b{complements.ILLNESS}\b)", text[start:end]) else "possession"


def _fitting(table: dict[str, tuple[str, str]], verb: str, text: str, start: int, end: int) -> str | None:
    known = table.get(verb)
    return known[0] or "person" if known is not None and complements.fits(known[1], text, start, end) else None


def _key(clause: Clause, group: VerbGroup, family: str, rest: str) -> str | None:
    """A key where there is one value at a time: a home that has a name, and what "my …" has one of."""
    subject = clause.subject
    if subject.kind == SELF and family == "place" and group.verb in ("live", "living"):
        near = _NEAR.match(rest)
        return "home" if near and place_at(rest, near.end()) else None
    if (
        subject.kind == THING
        and _gives_a_value(subject.words, group, rest)
        and not is_plural(subject.words)
        and "'s" not in subject.words
    ):
        key = folded(_CURRENT.sub("", subject.words))
        return key if len(key) <= 60 and key not in _TAKEN else None
    if (
        subject.kind == SELF
        and group.form == "do"
        and group.verb in ("like", "love", "hate", "enjoy", "adore", "dislike")
    ):
        return f"likes:{folded(rest)}"
    return None


def _gives_a_value(name: str, group: VerbGroup, rest: str) -> bool:
    """Whether a thing is said to be something, and not to be somewhere or in some state: "a 2012 Golf", "900 euros"."""
    if group.form != "be":
        return group.verb == "went" and _UP_TO.match(rest) is not None
    number = _NUMBER.match(rest)
    if number is None:
        return _VALUE.match(rest) is not None
    alone = number.end() == len(rest) or _MONEY.match(rest) is not None
    sized = head_of(name) in heads_of("POSSESSIONS") and not alone  # "my car is 4 m long"
    return not sized and not number["passing"]


def _after_blank(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip())


def _run_on(text: str, start: int, end: int) -> int:
    """Where another sentence begins that no mark divides from this one: "i have adhd i need short steps"."""
    again = _AGAIN.search(text, start, end)
    return again.end() if again and again[1].lower() not in _LEADS_ON else end


_AGAIN = Pattern(
    r"(?i:\b([\w'\u2019]+)(?=\s(?:i|we)\s(?:need|want|have|can|cant|live|work|am|would|prefer|like|dont|"
    r"don['\u2019]t)\b))"
)
_LEADS_ON = words.each(
    "that what where when how than as thing things one everything anything way because and so if who since while "
    "but or place places until before after unless whenever time times day days reason all whatever which year "
    "years"
)


def _trimmed(text: str, start: int, end: int) -> int:
    tail = _TRAILING.search(text, start, end)
    return max(start, tail.start() if tail else end)


RULES = (
    ExtractionRule(
        "statement",
        "my gran speaks only Tamil; got braces last month; I get up at 5:15",
        _statement,
        own=False,
    ),
)
