"""Rules of mentions: what people say of themselves in a few words that are no clause of theirs.

A number with its name, a budget, when to call, and what someone cannot eat stand in any sentence, often without a verb.
Passwords, PINs and the like are never kept. Deliberately absent: clauses (``statements``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.clauses import theirs
from holdfast.memory.rules.complements import FOOD, SECRET
from holdfast.memory.rules.phrases import folded
from holdfast.memory.rules.reading import Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_PART = r"(?-i:[A-Z0-9-]*\d[A-Z0-9-]*|[A-Z]{1,3})(?![\w'])"
_CODE = rf"(?:(?:(?=[\w/.-]*\d)[A-Za-z0-9][\w/.:-]*|(?-i:[A-Z]{{4,}}|[A-Z]{{1,3}}(?=[ ]\d\d)))(?:[ ]{_PART}){{0,5}})"
_NAMED_BY = r"(?:(?:on|with|for|at|from|of)\s(?!me\b|you\b|this\b|that\b|it\b|here\b)(?:the\s|my\s|our\s)?[\w-]+\s)?"
_CODED = Pattern(
    rf"(?i:(?<![\w'\u2019-])(?:(?P<det>my|our|the|his|her|their|your|an?)\s)?(?P<what>(?:(?!(?:says?|said|{'|'.join(words.NO_VERB)})\s)"
    rf"[a-z][\w-]*\s){{0,3}}(?:number|no|nr|ref|reference|reg|registration|serial|acct|insurance|card|account|plate))\b\.?"
    rf"(?P<of>\s{_NAMED_BY})??(?P<is>\s?(?:is|['\u2019]s|:|\#)(?:\snow)?)?\s{{1,2}}(?P<code>{_CODE})(?![\w%\u20ac]|\s(?:years?|km|miles|euros?|an?)\b))"
    r"(?P<by>\s(?:with|for|at)\s(?-i:[A-Z]\w+))?"
)
"""What has a number or a code of letters and digits, with no table of what it is: "gym membership no. 88213"."""
_IDENTIFIER = Pattern(
    r"(?i:(?<![\w-])(?P<det>my|our|the|his|her|their|your|"
    rf"an?)?\s?(?P<what>(?:[\w-]+\s)?(?:{words.either(words.IDENTIFIED)})(?:\s\w+)?\s?(?:"
    f"{words.either(words.NUMBERING)})s?|"
    r"(?:booking|order|customer|membership|tracking|server|licen[cs]e(?!:)|registration)\s?(?:reference|ref|id|number|"
    r"no|code|plate|ip)?|pnr|iban|license\splate|number\splate|server\sip)\.?"
    rf"(?P<of>\s(?:at|for|of|to|on|with)\s(?:the|my|our)\s\w+(?:\s(?!is\b|are\b)\w+)?(?:\sin\s(?-i:[A-Z]\w+))?)?"
    r"(?:\s(?:is|are|=)(?:\snow)?|\sends\s(?:in|with)|['\u2019]s|:|\s?=|"
    rf"\s\#)?[\s:#]{{1,3}}(?P<code>{_CODE})(?P<by>\s(?:with|for|at)\s(?:the\s|my\s|our\s)?\w+(?:\s\w+)?)?)(?![\w%])"
)
_BUDGET = Pattern(
    r"(?i:\b(?:(?P<whose>my|our|the|total)\s(?P<kind>(?:[\w-]+\s){0,3}))?budget\b(?P<so>[^.!?\n]{0,60}?)"
    rf"(?:{words.MONEY}|(?<=\bis\s)(?:\w+\s){{1,3}}?(?:hundred|thousand|grand)\b)[^.,!?\n]{{0,40}}|"
    r"(?P<most>\b(?:I|we)\s(?:don['\u2019]t|do\snot)\swant\sto\s(?P<spend>(?:spend|pay)\s(?:more\sthan|"
    rf"over)\s{words.MONEY}[^.,!?\n]{{0,40}}))|"
    rf"\b(?:max(?:imum)?|at\smost|up\sto|no\smore\sthan|under|not\sover)\s{words.MONEY}[^.,!?\n]{{0,20}}\bbudget\b)"
)
_BUDGET_FOR = Pattern(r"(?i:\sfor\s(?!(?:me|us|this|that|it)\b)[\w\s-]{2,40}?(?=\s(?:is|are|of|at)\b|\s?[:=]|\W*$))")
_NO_MORE = Pattern(r"(?i:n['\u2019]t\b|\b(?:not|never|no\slonger|was|were|used|had|would|could|should|might)\b)")
_OPENS = Pattern(r"(?i:(?:^|[,:;(\u2013\u2014-]|\b(?:and|but|so|also|ok|hi|hello))\s?\Z)")
_ANYONES = Pattern(r"(?i:\b(?:his|her|their|your|company's|example|typical|average|realistic|enough|too)\b)")
_ANY_KIND = Pattern(r"(?i:\b(?:new|current|total|overall|whole|own|max|maximum)\s)")
_WHOSE = Pattern(r"(?i:\b(?:the|an?|my|our|their)\s)")
_REACH = Pattern(
    r"(?i:(?:^|[,:]\s|\b(?:please|pls|so|and|but|only|just|best|never|don['\u2019]t|do\snot|"
    r"better)\s)(?P<say>(?:(?:please|pls|only|just|never|don['\u2019]t|do\snot|best\sto|best\stime\sto)\s)*"
    r"(?:call|phone|ring|text|message|e-?mail|reach|contact|ping|write(?:\sto)?|deliver|"
    rf"visit)\s?(?:me\b)?(?:\s(?:is|only|at\swork|on\smy\s\w+|by\s\w+))?\s[^.!?\n]{{0,40}}?(?:{words.RECURRING}|"
    rf"\b(?:after|before|between|from|until)\s\d{{1,2}}(?::\d\d)?(?:\s?(?:am|pm))?(?:\s(?:and|"
    rf"to)\s\d{{1,2}})?)[^.,!?\n]{{0,40}}))"
)
_ONCE = Pattern(
    r"(?i:\b(?:today|tomorrow|tonight|back|now|minutes|in\s(?:a|an|\d+)\s|this\s\w+|next\s\w+|when\syou)\b)"
)
_NOT_FOR_ME = Pattern(rf"(?i:\bno\s(?P<what>[^.,!?]{{0,30}}?\b{FOOD}\b[^.,!?:]{{0,30}}?)\s?for\sme\b)")
_BECAUSE_ALLERGIC = Pattern(
    r"(?i:\b(?:no|without|avoid|skip|not)\s(?:\w+\s){0,3}?(?:with\s|"
    r"containing\s)?(?P<what>[a-z]{3,20}(?:\sand\s[a-z]{3,20})?)"
    r"(?:\splease)?\s?[:;,(\u2013\u2014-]{0,2}\s?(?:because\s|since\s|as\s|cause\s)?(?:I['\u2019]m|I\sam|"
    r"im)\s(?:\w+ly\s|very\s)?allergic\b(?!\sto))"
)
_ALLERGY_TO = Pattern(
    r"(?i:\b(?P<whose>my|our|(?:my|our)\s[\w-]+['\u2019]s)\s(?:\w+\s)?allergy\sto\s(?P<what>[\w-]+(?:\s(?!is|"
    r"matters|means|has|was|here|so|makes|gets|and)[\w-]+)?))"
)
_MY_CONDITION = Pattern(
    r"(?i:\bmy\s(?:(?:severe|mild|bad|chronic|stomach)\s)?(?P<what>type\s[12]\sdiabetes|c(?:o)?eliac\sdisease|stammer|"
    rf"stutter|(?:stomach\s)?ulcer|(?!allerg|intol|phobia|dis|syndrome){words.either(words.CONDITIONS)}|"
    rf"prosthetic\s\w+)\b"
    r"(?!\s(?:(?:is|are)\s(?:an?\s|(?-i:[A-Z]))|to|class|clinic|test|app|group|research|medication))(?!['\u2019]))"
)
_HERE = Pattern(
    "(?i:^(?:(?:hi|hey|hello|fellow|lifelong|proud|total|full|"
    rf"part)[,\s-]+)?(?P<what>(?:[\w-]+\s){{0,2}}?(?:(?:{words.either(words.PROFESSIONS)})(?=\shere)|"
    f"{words.IS_DIET}|diabetic|asthmatic|{words.either(words.LIFE)}|night\\sowl|early\\sbird|"
    rf"phobia\sof\s\w+|(?:mom|mum|dad|father|mother)\sof\s\w+))\shere\b)"
)
_SLOT = Pattern(
    rf"(?i:^(?P<when>{words.DAY}s?(?:\s(?:morning|afternoon|evening|night)s?)?\s(?:is|are)\s(?:my\s|our\s)?(?:\w+\s)?"
    rf"(?:{words.either(words.EVENTS)}|football|swimming|pottery|day\soff|church))(?=\W*$|,|\s(?:so|and|but|with)\b))"
)
_NO_PART = words.each("and the is with for my our of on no so its it's here's this")
_NOT_HELD = words.each(
    "use set put enter type insert replace error status http version product example sample line port page chapter "
    "isbn issn regulation law act article doi question problem item step figure table row column level model part "
    "exit section equation prime random atomic test credit debit visa gift phone mobile house bus flight room season"
)
_OF_EACH = words.each("order booking reservation confirmation ticket case claim invoice return repair")
_GOT = Pattern(
    r"(?i:\b(?:ordered|bought|booked|reserved|returned|reported)\s(?P<what>(?:an?|the|my|our|two|three|some)?\s?"
    r"(?!it\b|that\b|this\b|them\b|you\b|too\b)[\w-]+(?:\s(?!too\b|from\b|at\b|on\b|in\b|and\b|for\b|with\b|last\b|"
    r"yesterday\b|today\b|under\b)[\w-]+){0,3}))"
)
"""What a number is of that stands behind it: "I ordered a lamp, order number …"."""
_BUT_NOW = Pattern(rf"(?i:,?\s(?:(?:but|and|now)\s){{0,2}}it(?:\sis|['\u2019]s)\s(?:now\s)?(?P<code>{_CODE})(?![\w%]))")
_EXAMPLE = Pattern(r"(?i:\b(?:examples?|templates?|placeholder|dummy|tutorial|regex)\b)")
_LEAD = Pattern(r"(?:^|[,:;]\s)([^,:;]{3,60}),\s$")


def _identifier(sentence: Sentence) -> Iterator[Extraction]:
    text, reached = sentence.text, -1
    found = [each for pattern in (_IDENTIFIER, _CODED) for each in pattern.finditer(text)]
    for match in sorted(found, key=lambda each: (each.start("code"), "is" in each.groupdict())):
        first, _, others = " ".join(match["what"].lower().split()).partition(" ")
        what = others if first in _NO_PART else f"{first} {others}".strip()
        newer = _BUT_NOW.match(text, match.end("code"))
        code = (newer or match)["code"].rstrip(".-:/")
        if (
            not what
            or match.start("code") < reached
            or (match["det"] or "").lower() in ("his", "her", "their", "your", "a", "an")
            or _NOT_HELD & {first, *what.split()}
            or ("is" in match.groupdict() and not _stands_alone(match, what, code))
            or SECRET.search(text)
            or _EXAMPLE.search(text)
            or not sentence.states(match.start())
        ):
            continue
        reached = match.end("code")
        lead = _LEAD.search(text[: match.start()]) if what in ("ref", "reference") else None
        thing = _GOT.search(text, 0, match.start()) if not lead and _OF_EACH & {first, *what.split()} else None
        of = theirs((match["of"] or match["by"] or (thing and f" for {thing['what']}") or "").rstrip())
        if what in ("ref", "reference") and not (lead or of):
            continue  # of what, only the talk tells
        said = f"{sentence.who}'s {what}{of} {'ends in' if ' ends ' in match[0] else 'is'} {code}"
        said = f"{said} ({lead[1]})" if lead else said
        yield sentence.found(
            "identifier", match.start(), (newer or match).end(), said, key=_of_one(what, of), importance=0.8,
            tags=("identifier",),
        )  # fmt: skip


def _of_one(what: str, of: str) -> str | None:
    """The key of a number: of what there are several at a time, only together with what it is for."""
    return _WHOSE.sub("", folded(what + of)) if of or not _OF_EACH & set(what.split()) else None


def _stands_alone(match: re.Match[str], what: str, code: str) -> bool:
    """Whether what has no kind in a table is plainly named: with "is" or "my", or as a phrase of its own."""
    lead = match.string[: match.start()]
    named = match["is"] or match["det"] or not lead or lead.endswith(", ")
    shortest = 3 if match["is"] else 4  # "no 5" counts something
    plain = what in ("number", "no", "nr", "card", "account", "insurance")
    return bool(named) and not plain and len(code.replace(" ", "")) >= shortest and re.search(r"\d", code) is not None


def _budget(sentence: Sentence) -> Iterator[Extraction]:
    for match in _BUDGET.finditer(sentence.text):
        if not sentence.states(match.start()) or _ANYONES.search(match[0]):
            continue
        if match["most"]:
            text = f"{sentence.who} does not want to {match['spend'].strip()}"
            yield sentence.found("budget", *match.span(), text, importance=0.7, tags=("money",))
            continue
        so, mine = match["so"] or "", (match["whose"] or "the").lower() != "the"
        of = _BUDGET_FOR.match(so)
        opens = match["whose"] or not so or _OPENS.search(sentence.text, 0, match.start())
        if not opens or _NO_MORE.search(so) or (of and not mine):
            continue  # "the budget for the city" may be anyone's
        said = re.sub(r"^(?i:my|our|the|a)\s", "", match[0].strip())
        said = re.sub(r"^((?:\w+\s){0,3}budget):\s*", r"\1 is ", said)
        kind = _ANY_KIND.sub("", match["kind"] or "")
        key = _WHOSE.sub("", folded(f"{kind}budget {of[0] if of else ''}"))
        yield sentence.found(
            "budget", *match.span(), f"{sentence.who}'s {said}", key=key, importance=0.7, tags=("money",)
        )


def _reach(sentence: Sentence) -> Iterator[Extraction]:
    for match in _REACH.finditer(sentence.text):
        said = match["say"].lower()
        if not _ONCE.search(said) and (
            " me" in said or "my " in said or said.startswith(("don", "never", "please don"))
        ):
            yield sentence.found(
                "reach", match.start("say"), match.end("say"), f"{sentence.who} asks: {match['say'].strip()}",
                kind="procedural", corrects=False, importance=0.7, tags=("contact",),
            )  # fmt: skip


def _slot(sentence: Sentence) -> Iterator[Extraction]:
    for match in _SLOT.finditer(sentence.text):
        said = f"{sentence.who}'s {theirs(match[0]).lower()}"
        yield sentence.found("slot", *match.span(), said, importance=0.6, tags=("routine",))


def _ailing(sentence: Sentence) -> Iterator[Extraction]:
    """A condition that is only named as one's own: "because of my epilepsy"."""
    for match in _MY_CONDITION.finditer(sentence.text):
        if sentence.states(match.start()):
            text = f"{sentence.who} has {_article(match['what'])}{match['what'].lower()}"
            yield sentence.found("condition", *match.span(), text, importance=0.8, tags=("health",))


def _article(what: str) -> str:
    if re.search(r"(?i)ulcer$", what):
        return "a " if " " in what else "an "
    return (
        "a "
        if re.match(
            r"(?i:stammer|stutter|.*(?:disorder|disability|phobia|syndrome|implant|condition|ulcer|aid|pacemaker)$)",
            what,
        )
        else ""
    )


def _allergy_told(sentence: Sentence) -> Iterator[Extraction]:
    for pattern in (_BECAUSE_ALLERGIC, _ALLERGY_TO):
        for match in pattern.finditer(sentence.text):
            whose = match.groupdict().get("whose") or "my"
            kin = whose.split()[1] if " " in whose else ""
            who = f"{sentence.who}'s {kin[:-2]}" if kin else sentence.who
            if sentence.states(match.start()):
                key = f"allergy:{folded(match['what'])}" if not kin else None
                yield sentence.found(
                    "sensitivity", *match.span(), f"{who} is allergic to {match['what']}", key=key, importance=0.9,
                    tags=("health",),
                )  # fmt: skip
    for match in _NOT_FOR_ME.finditer(sentence.text):
        if not _ONCE.search(sentence.text):
            yield sentence.found(
                "sensitivity",
                *match.span(),
                f"{sentence.who} takes no {match['what'].strip()}",
                importance=0.7,
                tags=("diet",),
            )
    for match in _HERE.finditer(sentence.text):
        what = match["what"].lower()
        verb = (
            "has a"
            if what.startswith("phobia")
            else "is a"
            if re.search(f"(?:{words.either(words.PROFESSIONS)}|{words.either(words.LIFE)}|owl|bird)$", what)
            else "is"
        )
        yield sentence.found(
            "sensitivity", *match.span(), f"{sentence.who} {verb} {what}", importance=0.8, tags=("health",)
        )


RULES = (
    ExtractionRule("identifier", "my tracking number: 1Z77K20934; gate code 5309", _identifier, own=False),
    ExtractionRule("condition", "because of my epilepsy; my stammer gets worse", _ailing),
    ExtractionRule("budget", "our budget for the trip is 1,200 euros", _budget, own=False),
    ExtractionRule("slot", "Thursday nights are choir", _slot, own=False),
    ExtractionRule("reach", "call me after 5; never ring before 9", _reach, own=False),
    ExtractionRule("sensitivity", "no food with nuts, I am allergic", _allergy_told, own=False),
)
