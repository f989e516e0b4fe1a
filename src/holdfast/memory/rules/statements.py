"""The rule of statements: what the other rules have no form of their own for, told in clauses that ``vocabulary`` knows.

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
from holdfast.memory.rules.clauses import PERSON, SELF, THING, Clause, Subject, VerbGroup, clauses, head_of, heads_of, verb_group
from holdfast.memory.rules.dates import ahead, stamp
from holdfast.memory.rules.phrases import folded
from holdfast.memory.rules.reading import Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_PASSING = Pattern(
    r"(?i:\b(?:right\snow|rn|at\sthe\smoment|tonight|this\s(?:morning|afternoon|evening|second|minute)|today|for\snow|atm|"
    r"in\sa\s(?:minute|sec|second|bit|moment|hurry|meeting|mood)|soon|later|again|for\sa\s(?:bit|sec|while)|"
    r"like\s(?:crazy|hell|a)|lol|lmao|jk|one\sday|someday|in\stheory|any\s?more)\b)"
)
_OPEN = Pattern(r"(?i:\b(?:maybe|perhaps|or\ssomething|i\s(?:think|guess|suppose|hope|wish)|if\sonly|not\ssure|hopefully|might|apparently|supposedly|in\s(?:the|this|a|my)\s(?:game|story|novel|movie|film|dream|scenario|campaign))\b)")
_HANGING = Pattern(r"(?i:(?:^|\s)(?:until|till|from|to|of|for|with|at|in|on|and|or|but|the|an?|my|our|as|than|by|into|about)$)")
_TECHNICAL = Pattern(
    r"(?i:\b(?:json|csv|xml|html|css|python|scripts?|files?|quer(?:y|ies)|sql|tables|repo|commits?|deploys?|bugs?|variables?|regex|endpoints?|spreadsheets?|"
    r"404|500\serror|errors?|exceptions?|branch|pull\srequest|columns?|rows?|div|loops?|arrays?|strings?|updates?|tabs?|unit\stests?)\b)"
)
_POINTING = Pattern(r"(?i:(?:it|this|that|them|these|those|him|her)\b(?!\s(?:name|birthday|is)\b))")
_LASTING = frozenset({"health", "plan", "family", "change", "decision", "person"})
_TRAILING = Pattern(
    r"(?i:(?:[\s,:;!.()\u2013\u2014-]|\b(?:please|pls|lol|haha|tho|though|btw|sadly|finally|ugh|too|actually|you\sknow|by\sthe\sway|"
    r"instead|here|honestly|thanks|then|yay|and|or|so|now|ok)\b|:[)D(])+$)"
)
_OURS = {
    "my": "their", "our": "their", "me": "them", "us": "them", "mine": "theirs", "ours": "theirs", "i": "they", "we": "they",
    "myself": "themselves", "ourselves": "themselves", "i'm": "they are", "we're": "they are", "i've": "they have", "im": "they are",
    "am": "are", "i'll": "they will",
}  # fmt: skip
_OWN_WORD = Pattern(r"(?i:(?<![\w'\u2019])(?:i was|i['\u2019](?:m|ve|ll)|we['\u2019]re|i am|my|our|me|us|mine|ours|i|we|myself|ourselves|im)(?![\w'\u2019]))")
_CODE = r"(?:(?:(?=[\w/.-]*\d)[A-Za-z0-9][\w/.:-]*|(?-i:[A-Z]{4,}))(?:[ ](?=[\w-]*\d)(?-i:[A-Z0-9-]+)){0,4})"
_IDENTIFIER = Pattern(
    rf"(?i:(?<![\w-])(?P<det>my|our|the|his|her|their|your|an?)?\s?(?P<what>(?:[\w-]+\s)?(?:{words.either(words.IDENTIFIED)})(?:\s\w+)?\s?(?:{words.either(words.NUMBERING)})s?|"
    rf"(?:booking|order|customer|membership|tracking|server|licen[cs]e|registration)\s?(?:reference|ref|id|number|no|code|plate|ip)?|pnr|iban|license\splate|number\splate|server\sip)\.?"
    rf"(?P<of>\s(?:at|for|of|to|on|with)\s(?:the|my|our)\s\w+(?:\s\w+)?(?:\sin\s(?-i:[A-Z]\w+))?)?"
    rf"(?:\s(?:is|are|=|was)(?:\snow)?|\sends\s(?:in|with)|['\u2019]s|:|\s?=|\s\#)?[\s:#]{{1,3}}(?P<code>{_CODE})(?P<by>\s(?:with|for|at)\s(?:the\s|my\s|our\s)?\w+(?:\s\w+)?)?)(?![\w%])"
)
_SECRET = Pattern(rf"(?i:\b(?:{words.either(words.NEVER_KEPT)}|credit card|debit card|security code)\b)")
_BUDGET = Pattern(
    rf"(?i:\b(?<!on\sa\s)(?<!\ba\s)(?<!\bwhat\s)(?:(?:my|our|the|total)\s(?:\w+\s){{0,3}})?budget\b(?P<what>[^.!?\n]{{0,60}}?{words.MONEY}[^.,!?\n]{{0,40}})|"
    rf"(?P<most>\b(?:I|we)\s(?:don['\u2019]t|do\snot)\swant\sto\s(?P<spend>(?:spend|pay)\s(?:more\sthan|over)\s{words.MONEY}[^.,!?\n]{{0,40}}))|"
    rf"\b(?:max(?:imum)?|at\smost|up\sto|no\smore\sthan|under|not\sover)\s{words.MONEY}[^.,!?\n]{{0,20}}\bbudget\b)"
)
_REACH = Pattern(
    rf"(?i:(?:^|[,:]\s|\b(?:please|pls|so|and|but|only|just|best|never|don['\u2019]t|do\snot|better)\s)(?P<say>(?:(?:please|pls|only|just|never|don['\u2019]t|do\snot|best\sto|best\stime\sto)\s)*"
    rf"(?:call|phone|ring|text|message|e-?mail|reach|contact|ping|write(?:\sto)?|deliver|visit)\s?(?:me\b)?(?:\s(?:is|only|at\swork|on\smy\s\w+|by\s\w+))?\s[^.!?\n]{{0,40}}?(?:{words.RECURRING}|"
    rf"\b(?:after|before|between|from|until)\s\d{{1,2}}(?::\d\d)?(?:\s?(?:am|pm))?(?:\s(?:and|to)\s\d{{1,2}})?)[^.,!?\n]{{0,40}}))"
)
_ONCE = Pattern(r"(?i:\b(?:today|tomorrow|tonight|back|now|minutes|in\s(?:a|an|\d+)\s|this\s\w+|next\s\w+|when\syou)\b)")
_NOT_FOR_ME = Pattern(rf"(?i:\bno\s(?P<what>[^.,!?]{{0,30}}?\b{complements._FOOD}\b[^.,!?:]{{0,30}}?)\s?for\sme\b)")
_BECAUSE_ALLERGIC = Pattern(
    r"(?i:\b(?:no|without|avoid|skip|not)\s(?:\w+\s){0,3}?(?:with\s|containing\s)?(?P<what>[a-z]{3,20}(?:\sand\s[a-z]{3,20})?)"
    r"(?:\splease)?\s?[:;,(\u2013\u2014-]{0,2}\s?(?:because\s|since\s|as\s|cause\s)?(?:I['\u2019]m|I\sam|im)\s(?:\w+ly\s|very\s)?allergic\b(?!\sto))"
)
_ALLERGY_TO = Pattern(
    r"(?i:\b(?P<whose>my|our|(?:my|our)\s[\w-]+['\u2019]s)\s(?:\w+\s)?allergy\sto\s(?P<what>[\w-]+(?:\s(?!is|matters|means|has|was|here|so|makes|gets|and)[\w-]+)?))"
)
_MY_CONDITION = Pattern(
    r"(?i:\bmy\s(?:(?:severe|mild|bad|chronic|stomach)\s)?(?P<what>asthma|diabetes|type\s[12]\sdiabetes|arthritis|migraines|eczema|psoriasis|epilepsy|an[a]?emia|adhd|"
    r"autism|ocd|ptsd|bipolar\sdisorder|dyslexia|dyscalculia|dyspraxia|tinnitus|vertigo|crohn['\u2019]s|ibs|lupus|ms|parkinson['\u2019]s|scoliosis|fibromyalgia|"
    r"endometriosis|pcos|gout|osteoporosis|insomnia|sleep\sapn[o]?ea|rosacea|hay\sfever|glaucoma|stammer|stutter|stomach\sulcer|ulcer|pacemaker|hearing\said|"
    r"c(?:o)?eliac\sdisease|heart\scondition|high\sblood\spressure|colou?r\sblindness|disability|prosthetic\s\w+)\b(?!\s(?:class|clinic|test|app|group|research|medication))(?!['\u2019]))"
)
_HERE = Pattern(
    rf"(?i:^(?:(?:hi|hey|hello|fellow|lifelong|proud|total|full|part)[,\s-]+)?(?P<what>(?:[\w-]+\s){{0,2}}?(?:(?:{words.either(words.PROFESSIONS)})(?=\shere)|{words.IS_DIET}|diabetic|asthmatic|"
    rf"phobia\sof\s\w+|(?:mom|mum|dad|father|mother)\sof\s\w+))\shere\b)"
)
_SUITS = Pattern(
    rf"(?i:^(?P<when>(?:mornings?|evenings?|afternoons?|weekdays|weekends|mid-?week|(?:after|before)\s\d{{1,2}}(?::\d\d)?(?:\s?[ap]m)?|{words.RECURRING}))\s(?P<how>(?:is|are|works?|suits?)\s(?:(?:always|usually|generally)\s)?"
    r"(?:(?:best|better|good|fine|well)\s)?)(?:for\s)?me\b)"
)
_GIVES_ME = Pattern(
    r"(?i:^(?P<what>(?!it\b|this\b|that\b|they\b|he\b|she\b|you\b|what\b)[\w' -]{3,40}?)\s(?P<verb>gives?|makes?)\sme\s(?P<ill>hives|(?:a\s)?migraines?|a\srash|heartburn|"
    r"asthma|cramps|swell(?:\sup)?|break\sout|sick|nauseous|sneeze|itch\w*|anxiety|panic\sattacks))"
)


class _Found(NamedTuple):
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
        told = _told(sentence, clause, group) if group is not None else None
        if told is None:
            continue
        reached = told.end
        yield sentence.found(
            "statement", clause.start, told.end, told.text, key=told.key, corrects=sentence.corrects and told.key is not None,
            kind="semantic", valid_from=sentence.since(event=group.form == "did") if group else None,
            importance=0.8 if told.family == "health" else 0.6, tags=(told.family,),
        )  # fmt: skip


def _told(sentence: Sentence, clause: Clause, group: VerbGroup) -> _Found | None:
    """What a clause says, if it is of a kind worth keeping."""
    text, start = sentence.text, _after_blank(sentence.text, group.end)
    end = _trimmed(text, start, clause.end)
    if group.negated and words.NEVER_DOES.get(group.verb, ("", ""))[1] == "only":
        end = min(end, text.find(",", start, end) % (len(text) + 1))  # "can't swim, never learned"
    rest = text[start:end]
    whole = f"{text[:end]} {clause.when}" if clause.when else text  # what fits may stand before the subject
    family = _family(whole, clause, group, start, len(whole) if clause.when else end)
    if group.verb in ("live", "living") and _SEASON.match(clause.when):
        return None  # one home of several
    if rest and (_HANGING.search(rest) or (subject_left_out(clause, group) and _ONLY_TIMED.match(rest))):
        return None
    if family is None or "\x00" in text[clause.start : start] or _OPEN.search(text, start, clause.end) or _TECHNICAL.search(text, start, clause.end):
        return None
    passing = _PASSING.search(rest) or _PASSING.search(clause.when)
    if passing and (family not in _LASTING or passing[0].lower() not in ("soon", "today", "again", "tonight")):
        return None
    subject = clause.subject
    who = _named(sentence.who, subject)
    words_ = _theirs(sentence.words(start, end)).lstrip(" ,;") if rest else ""
    said = " ".join(part for part in (who, _verb(group, subject), words_, _theirs(clause.when[:1].lower() + clause.when[1:])) if part)
    return _Found(family, end, f"{said}{_day(sentence, clause, group, end)}", _key(clause, group, family, rest))


def _day(sentence: Sentence, clause: Clause, group: VerbGroup, end: int) -> str:
    """The day of a time that only the day of the message tells: "last month", "on the 12th"."""
    if group.negated or _RECURS.search(sentence.text, clause.start, end) or _RECURS.search(clause.when):
        return ""
    for span in sentence.spans:
        if span.since and span.until and clause.start - len(clause.when) - 2 <= span.start and span.end <= end and span.kind not in ("since", "year"):
            span = span if group.form == "did" or group.verb == "was" else ahead(sentence, span)
            return "" if re.search(r"[0-9]{4}", span.phrase) else f" ({stamp(span)})"
    return ""


def subject_left_out(clause: Clause, group: VerbGroup) -> bool:
    return clause.subject.shared and group.form == "doing"


def _named(who: str, subject: Subject) -> str:
    if subject.kind == SELF:
        return f"{who} and {_theirs(subject.words)}" if subject.words else who
    first, _, rest = subject.words.partition(" ")
    own = first.lower() if first.lower() in words.BARE.split() else first
    return f"{who}'s {_theirs(f'{own} {rest}'.strip())}"


def _verb(group: VerbGroup, subject: Subject) -> str:
    """The verbs of a clause after a name: "don't eat" as "does not eat"."""
    plural = bool(subject.words) if subject.kind == SELF else _plural(subject.words)
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
    if group.negated:
        return f"{said} not" if group.form in ("be",) else f"does not {group.verb}"
    if group.adverb:
        return f"{said} {group.adverb}" if group.form == "be" else f"{group.adverb} {said}"
    return said


def _plural(name: str) -> bool:
    last = name.lower().split()[-1:] or [""]
    return " and " in f" {name} " or (last[0].endswith("s") and not last[0].endswith(("ss", "us", "is", "'s"))) or last[0] in ("children", "bees", "people")


def _family(text: str, clause: Clause, group: VerbGroup, start: int, end: int) -> str | None:
    """What a clause is about, if its verb and what follows are in the tables."""
    if group.modal in ("would", "could", "may", "might", "must", "should", "'d", "wo", "shall", "gonna"):
        return None
    if group.modal in ("will", "'ll"):
        return "plan" if group.form == "do" and complements.fits("date", text, start, end) and complements.fits("any", text, start, end) else None
    if group.modal and not group.negated and group.adverb == "only" and re.search(rf"(?i:{complements._TIME})", text[start:end]):
        return "routine"
    if group.modal and not group.negated:
        return "money" if group.verb in ("spend", "pay", "afford") and complements.fits("money", text, start, end) else None
    if group.form != "be" and _POINTING.match(text, start, end):
        return None
    if clause.subject.kind == THING and clause.subject.shared and not _says_when(text, clause, start, end):
        return None
    if clause.subject.kind == THING and group.form in ("do", "did", "doing"):
        known = group.verb in _THING_VERBS and group.words[:4] != "was " and _IS_THING.match(text, start, end)
        return "thing" if known and not group.negated else None
    if group.form == "be":
        if group.verb == "was" and clause.subject.kind == THING:
            return None
        return None if group.negated and clause.subject.kind != SELF else _being(text, clause, start, end, negated=group.negated)
    if group.negated:
        return _fitting(words.NEVER_DOES, group.verb, text, start, end) if group.form in ("do", "have") else None
    if group.form == "have":
        return _fitting(words.DOES, "have", text, start, end) and _having(text, start, end)
    table = {"do": words.DOES, "did": words.DID, "doing": words.DOING}[group.form]
    if group.form == "do" and group.verb == "have":
        return None
    return _fitting(table, group.verb, text, start, end)


_THING_VERBS = frozenset(
    "cost run end start begin expire close open leave land arrive depart get got finish meet move moved weigh measure turn take need lead".split()
)
_DESCRIBING = Pattern(r"(?i:(?:being|so|too|very|really|not|at\s\d+\s?%|in\s(?:the|a|my|our)\s|on\s(?:the\s(?!\w+\sfloor)|a\s|my\s|fire\b)|here|like|as|down|gone|late|stuck)(?!\w))")


def _being(text: str, clause: Clause, start: int, end: int, *, negated: bool) -> str | None:
    kind = clause.subject.kind
    if negated:
        return "routine" if re.match(rf"(?i:(?:available|free|reachable|home|around|in)\b.*?{complements._TIME})", text[start:end]) else None
    if kind in (SELF, PERSON) and _IS_SELF.match(text, start, end):
        return "person"
    if kind == PERSON and (_IS_OTHER.match(text, start, end) or _is_named(text, start, end)):
        return None if re.match(r"(?i:an?\s(?:bit|pain|mess|joke|lot|saint|angel|genius|star|hero|nightmare|monster|legend|little|total|real|big|great|good|bad|huge|true|treasure|sweetheart|delight|handful|character|disaster))\b", text[start:end]) else "family"
    if kind == THING and not _DESCRIBING.match(text, start, end) and _IS_THING.match(text, start, end):
        name = clause.subject.words
        told = _known(name) or _CALLED.match(text, start, end) or (_TIMED.search(text, start, end) and head_of(name) not in _VAGUE)
        return "thing" if told and not _SECRET.search(name) else None
    return None


def _says_when(text: str, clause: Clause, start: int, end: int) -> bool:
    """Whether an event without "my" has a day that makes it the speaker's: "the meeting is on Friday" could be anyone's."""
    if text[clause.subject.start : clause.subject.start + 4].lower() == "the ":
        return _ON_A_DATE.search(text, start, end) is not None
    return _LISTED.search(text, start, end) is not None


def _known(name: str) -> bool:
    """Whether a thing is of a kind that is worth keeping, or is at least no passing thing of the work at hand."""
    head = head_of(name)
    return head in heads_of("ATTRIBUTES", "POSSESSIONS", "EVENTS", "ROUTINE", "IDENTIFIED", "CONDITIONS") or bool(
        " " in name and set(name.lower().replace("'s", "").split()) & set(f"{words.NUMBERING} favourite favorite".split())
    )


def _is_named(text: str, start: int, end: int) -> bool:
    return re.match(r"(?:(?:Mr|Mrs|Ms|Dr|Prof)\.?\s)?(?:[A-Z]\.\s){0,3}[A-Z][\w'\u2019-]+(?:\s[A-Z][\w'\u2019-]+){0,2}\W*$", text[start:end]) is not None


_SEASON = Pattern(r"(?i:in\s(?:the\s)?(?:spring|summer|autumn|fall|winter)|during\sthe\s(?:week|summer|winter))")
_CURRENT = Pattern(r"(?i:^(?:new|current|own|present)\s)")
_TAKEN = frozenset("phone email home job name age employer birthday called origin diet anniversary studies height weight".split())
_RECURS = Pattern(rf"(?i:{words.RECURRING}|\bborn\b|\bbirthday\b|\banniversary\b)")
_CALLED = Pattern(r"(?i:called\s|named\s)")
_LISTED = Pattern(rf"(?i:{words.RECURRING}|{words.DATED}|\b{words._DAY}\b)")
_ON_A_DATE = Pattern(rf"(?i:\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{words.MONTHLY}\b|\b{words.MONTHLY}\.?\s\d{{1,2}}\b|\bthe\s\d{{1,2}}(?:st|nd|rd|th)\b)")
_TIMED = Pattern(rf"(?i:{complements._TIME}|{words.MONEY})")
_ONLY_TIMED = Pattern(rf"(?i:(?:on\s|in\s)?{complements._TIME}\W*$)")
_VAGUE = frozenset(
    "character code essay result question guess point answer problem issue error output function list array file script program query text "
    "prompt message sentence paragraph word input string variable class version data table score turn bad idea opinion favorite page".split()
)
_IS_SELF = Pattern(rf"(?i:{complements.IS_SELF})")
_IS_OTHER = Pattern(rf"(?i:{complements.IS_OTHER})")
_IS_THING = Pattern(rf"(?i:{complements.IS_THING})")


def _having(text: str, start: int, end: int) -> str:
    return "health" if re.match(rf"(?i:.*\b{complements._ILL}\b)", text[start:end]) else "possession"


def _fitting(table: dict[str, tuple[str, str]], verb: str, text: str, start: int, end: int) -> str | None:
    known = table.get(verb)
    return known[0] or "person" if known is not None and complements.fits(known[1], text, start, end) else None


def _key(clause: Clause, group: VerbGroup, family: str, rest: str) -> str | None:
    """A key where there is one value at a time: a home, and what "my …" has one of."""
    subject = clause.subject
    if subject.kind == SELF and family == "place" and group.verb in ("live", "living"):
        return "home"
    if subject.kind == THING and group.form == "be" and not _plural(subject.words) and "'s" not in subject.words:
        key = folded(_CURRENT.sub("", subject.words))
        return key if len(key) <= 60 and key not in _TAKEN else None
    if subject.kind == SELF and group.form == "do" and group.verb in ("like", "love", "hate", "enjoy", "adore", "dislike"):
        return f"likes:{folded(rest)}"
    return None


def _after_blank(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip())


def _trimmed(text: str, start: int, end: int) -> int:
    tail = _TRAILING.search(text, start, end)
    return max(start, tail.start() if tail else end)


def _theirs(text: str) -> str:
    """The speaker's own words as said of the speaker: "my sister" as "their sister"."""

    def other(found: re.Match[str]) -> str:
        word = found[0].lower().replace("\u2019", "'")
        return {"i was": "they were", "i am": "they are"}.get(word) or _OURS.get(word, found[0])

    return _OWN_WORD.sub(other, text)


# Forms that are no clauses


def _identifier(sentence: Sentence) -> Iterator[Extraction]:
    for match in _IDENTIFIER.finditer(sentence.text):
        det = (match["det"] or "").lower()
        what = " ".join(match["what"].lower().split())
        first, _, others = what.partition(" ")
        if first in ("and", "the", "is", "with", "for", "my", "our", "of", "on", "no", "so", "its", "it's", "here's", "this"):
            what = others
        if first in ("use", "set", "put", "enter", "type", "insert", "replace", "error", "status", "http", "version", "product", "example", "sample"):
            continue
        if det in ("his", "her", "their", "your", "a", "an") or _SECRET.search(sentence.text) or not sentence.states(match.start()):
            continue
        of = _theirs(match["of"] or match["by"] or "")
        text = f"{sentence.who}'s {what}{of} {'ends in' if ' ends ' in match[0] else 'is'} {match['code'].rstrip('.-:/')}"
        yield sentence.found(
            "identifier", *match.span(), text, key=folded(what + of), importance=0.8, tags=("identifier",)
        )  # fmt: skip


def _budget(sentence: Sentence) -> Iterator[Extraction]:
    for match in _BUDGET.finditer(sentence.text):
        if sentence.states(match.start()) and not re.search(r"(?i)\b(?:his|her|their|your|company's|example|typical|average|realistic|enough|too)\b", match[0]):
            if match["most"]:
                text = f"{sentence.who} does not want to {match['spend'].strip()}"
                yield sentence.found("budget", *match.span(), text, importance=0.7, tags=("money",))
                continue
            said = re.sub(r"^(?i:my|our|the|a)\s", "", match[0].strip())
            said = re.sub(r"^((?:\w+\s){0,3}budget):\s*", r"\1 is ", said)
            yield sentence.found("budget", *match.span(), f"{sentence.who}'s {said}", key="budget", importance=0.7, tags=("money",))


def _reach(sentence: Sentence) -> Iterator[Extraction]:
    for match in _REACH.finditer(sentence.text):
        said = match["say"].lower()
        if not _ONCE.search(said) and (" me" in said or "my " in said or said.startswith(("don", "never", "please don"))):
            yield sentence.found(
                "reach", match.start("say"), match.end("say"), f"{sentence.who} asks: {match['say'].strip()}", kind="procedural",
                corrects=False, importance=0.7, tags=("contact",),
            )  # fmt: skip
    yield from _suits(sentence)


def _ailing(sentence: Sentence) -> Iterator[Extraction]:
    """A condition that is only named as one's own: "because of my epilepsy"."""
    for match in _MY_CONDITION.finditer(sentence.text):
        if sentence.states(match.start()):
            text = f"{sentence.who} has {_article(match['what'])}{match['what'].lower()}"
            yield sentence.found("condition", *match.span(), text, importance=0.8, tags=("health",))


def _article(what: str) -> str:
    if re.search(r"(?i)ulcer$", what):
        return "a " if " " in what else "an "
    return "a " if re.match(r"(?i:stammer|stutter|.*(?:disorder|disability|phobia|syndrome|implant|condition|ulcer|aid|pacemaker)$)", what) else ""


def _suits(sentence: Sentence) -> Iterator[Extraction]:
    for match in _SUITS.finditer(sentence.text):
        text = f"{match['when']} {match['how']}for {sentence.who}".replace("  ", " ")
        yield sentence.found("reach", *match.span(), text[:1].upper() + text[1:], importance=0.6, tags=("routine",))


def _allergy_told(sentence: Sentence) -> Iterator[Extraction]:
    for pattern in (_BECAUSE_ALLERGIC, _ALLERGY_TO):
        for match in pattern.finditer(sentence.text):
            whose = match.groupdict().get("whose") or "my"
            kin = whose.split()[1] if " " in whose else ""
            who = f"{sentence.who}'s {kin[:-2]}" if kin else sentence.who
            if sentence.states(match.start()):
                key = f"allergy:{folded(match['what'])}" if not kin else None
                yield sentence.found("sensitivity", *match.span(), f"{who} is allergic to {match['what']}", key=key, importance=0.9, tags=("health",))
    for match in _NOT_FOR_ME.finditer(sentence.text):
        if not _ONCE.search(sentence.text):
            yield sentence.found("sensitivity", *match.span(), f"{sentence.who} takes no {match['what'].strip()}", importance=0.7, tags=("diet",))
    for match in _HERE.finditer(sentence.text):
        what = match["what"].lower()
        verb = "has a" if what.startswith("phobia") else "is a" if re.search(words.either(words.PROFESSIONS), what) else "is"
        yield sentence.found("sensitivity", *match.span(), f"{sentence.who} {verb} {what}", importance=0.8, tags=("health",))
    for match in _GIVES_ME.finditer(sentence.text):
        if sentence.states(match.start()):
            verb = match["verb"].lower()
            yield sentence.found("sensitivity", *match.span(), f"{match['what']} {verb} {sentence.who} {match['ill']}", importance=0.8, tags=("health",))


RULES = (
    ExtractionRule("statement", "my gran speaks only Tamil; got braces last month; I get up at 5:15", _statement, own=False),
    ExtractionRule("identifier", "my tracking number: 1Z77K20934; gate code 5309", _identifier, own=False),
    ExtractionRule("condition", "because of my epilepsy; my stammer gets worse", _ailing),
    ExtractionRule("budget", "our budget for the trip is 1,200 euros", _budget, own=False),
    ExtractionRule("reach", "call me after 5; never ring before 9", _reach, own=False),
    ExtractionRule("sensitivity", "no food with nuts, I am allergic; wine gives me migraines", _allergy_told, own=False),
)
