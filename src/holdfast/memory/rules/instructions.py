"""Rules of how someone wants to be treated from now on. They become procedural memories.

A single errand is not an instruction: "please write a poem" asks once, "please always answer in French" asks forever.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import preferences, statements
from holdfast.memory.rules.reading import S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_VERBS = (
    "answer|reply|respond|use|give|include|write|keep|put|show|explain|say|call|mention|ask|add|start|begin|end|format|"
    "send|check|provide|cite|avoid|assume|speak|address|remind|tell|translate|quote|list|round|convert|summari[sz]e|"
    "confirm|suggest|recommend|return|prefix|sign|refer|talk|offer|apologi[sz]e|repeat|share|schedule|book|prefer|make|"
    "run|test|commit|leave|skip|drop"
)
_PLEASE = (
    rf"(?:(?:and|so|also|but|ok|okay|oh){S}|,{S})?(?:please,?{S}|can{S}you{S}|could{S}you{S}|you{S}(?:should|must){S}|"
    rf"(?:I{S}want|I{S}need|I['\u2019]d{S}like|I{S}would{S}like){S}you{S}to{S})?"
)
_ALWAYS = Pattern(
    rf"(?i:(?:^|[,\u2014\u2013]{S}|\b(?:and|but|so|please){S}){_PLEASE}(?:always|never|don['\u2019]t{S}ever|"
    rf"do{S}not{S}ever){S}(?:{_VERBS})\b[^\n]{{2,300}})"
)
_FROM_NOW = Pattern(
    rf"(?i:\b(?:from{S}(?:now|today|here){S}on(?:wards)?|going{S}forward|"
    rf"in{S}(?:the{S})?future),?{S}(?:(?:if|when|whenever){S}I{S}[^\n,]{{2,80}},{S})?(?:please{S})?(?:always{S}|never{S}|only{S}|do{S}not{S}|don['\u2019]t{S})?(?:{_VERBS}|"
    rf"stop)\b[^\n]{{2,300}})"
)
_WHENEVER = Pattern(
    rf"(?i:(?:^|\bplease{S})(?:when|whenever|every{S}time|if){S}(?:I{S}(?:ask|say|write|mention|send|request|type|"
    rf"talk)|you{S}(?:do|write|draft|answer|reply|send|plan|book|edit|explain)[^\n,]{{0,40}}{S}(?:me|my|our))\b[^\n]{{2,160}},{S}(?:please{S}|then{S}|you{S}should{S}|I{S}want{S}you{S}to{S})?(?:always{S}|never{S}|"
    rf"do{S}not{S}|don['\u2019]t{S})?(?:{_VERBS})\b[^\n]{{2,200}})"
)
_LANGUAGE = Pattern(
    rf"(?i:(?:^|,{S}|\bplease{S})(?:please{S})?(?:answer|reply|respond|speak|talk|write)(?:{S}(?:to|"
    rf"with){S}me)?{S}(?:only{S})?in{S})(?P<in>[A-Z][a-z]{{2,20}})\b(?![ ](?:and|style|manner))"
)
_HABIT = Pattern(
    rf"(?i:(?:^|[,\u2014\u2013]{S})(?:please{S})?(?:(?:{_VERBS})\b[^\n,]{{2,120}}{S}(?:from{S}now{S}on|"
    rf"in{S}(?:the{S})?future|going{S}forward|every{S}time|whenever{S}I{S}ask|when{S}I{S}ask)\b[^\n]{{0,120}}))"
)
_LASTS = Pattern(
    rf"(?i:^(?:(?:and|so|also|ok|hi|btw),?\s)?{_PLEASE}(?:would\syou\s|can\su\s|could\su\s)?(?:please\s)?(?:(?:don['\u2019]?t|do\snot)\s)?(?:{_VERBS})\b"
    r"(?=[^\n]{2,200}\b(?:from\s(?:now|here|today)\son(?:wards)?|going\sforward|in\s(?:the\s)?future(?=\W*$|,)|always\W*$|every\stime|"
    r"by\sdefault|when(?:ever)?\syou\s(?:answer|reply|write|talk|speak|explain)|unless\si\s(?:ask|say|tell|type|write))\b)[^\n?]{2,300})"
)
"""A request that says itself that it lasts: "speak Portuguese to me from here on"."""
_STOP = Pattern(
    rf"(?i:^{_PLEASE}(?:(?:just|quit|pls)\s)?(?:stop|quit|no\smore)\s(?:using|calling|saying|adding|giving|writing|"
    r"putting|starting|ending|opening|apologi[sz]ing|suggesting|recommending|repeating|asking|explaining|translating|"
    r"summari[sz]ing)\s(?!it\b|that\b|this\b|the\b|my\b|so\b)[^\n]{2,120}|"
    rf"^{_PLEASE}(?:do\snot|don['\u2019]t)\s(?:ever\s)?(?:call|address)\sme\s(?-i:[A-Z][a-z])[^\n,]{{1,30}}|"
    r"(?:^|[,;]\s)(?:(?:only|just)\s)?(?:(?:short|brief|literal|plain|simple|straight|metric|formal|informal|concise|"
    r"detailed|honest|blunt|direct|long|step-by-step)\s){1,2}(?:answers|replies|responses|explanations|units|"
    r"language)\s(?:pls|plz|please|only)\b[^\n,]{0,40})"
)
"""A request about the form of every answer: "stop using tables", "short answers please"."""
_MINE = Pattern(r"(?i:\b(?:me|my|i|us|our)\b)")
_NOT_ONE = Pattern(
    r"(?i:\bnever (?:mind|say never|give up)\b|\balways (?:end|start|run|book|make|share|talk|begin)s?\b(?= up| to|"
    r" into| for)|,\s(?:said|says)\b|\b(?:that|this)\s(?:bit|part|one|thing|line|section|word)\b|^\w+\s(?:it|"
    r"that|this)\b)"
)
_LEADING = Pattern(r"(?i:(?:[\s,\u2014\u2013]|(?:and|but|so|also)\b){0,6})")
_DENIED = Pattern(r"(?i:\b(?:said|says|told|they|he|she|wish)\b)")


_REASONED = Pattern(
    rf"(?i:(?:^|[,;\u2014\u2013]{S}|\bso{S}|\bhence{S})(?:(?:so|please|pls|and|(?:can|could){S}(?:you|u)){S}){{0,2}}(?P<say>(?:no(?!t\b|"
    rf"{S}(?:idea|"
    rf"problem|worries|one|way|longer|need|luck)\b)|only(?!{S}(?:i|we|my|because)\b)|avoid|skip|stick{S}to|keep|use|"
    rf"speak|"
    rf"nothing{S}(?:with|too)|(?:don['\u2019]?t|do{S}not|never){S}(?:suggest|recommend|call|text|ring|phone|schedule|"
    rf"book|"
    rf"plan|use|give|send|include|serve|offer|put|assume)){S}[^,;:!?\n\u2014\u2013]{{2,80}}))"
)
_ONLY = Pattern(rf"(?i:\bso{S}(?P<say>(?:please{S})?(?:[\w-]+{S}){{1,3}}only)\b)")
_AT_HAND = Pattern(
    r"(?i:\b(?:this|that|these|those|them|him|her|the|there|here|today|tonight|tomorrow|now|next|yet|instead|word|"
    r"words|sentence|more|"
    r"lunch|dinner|breakfast)\b|\bit\b(?<!keep\sit)|\bkeep\sit\b(?!\s(?:simple|short|kosher|halal|vegan|vegetarian|"
    r"cheap|"
    r"\w+[- ]free|formal|informal|polite)))"
)
_EVER = Pattern(rf"(?i:^(?:please{S})?(?P<say>no{S}(?![^,]*\bfor{S}me\b)[^,.!?]{{2,40}},?{S}ever\b))")


def _reasoned(sentence: Sentence) -> Iterator[Extraction]:
    """A wish beside its reason lasts as long as that: "I'm coeliac, so no wheat". Alone it may be for once."""
    for pattern in (_REASONED, _ONLY, _EVER):
        for found in pattern.finditer(sentence.text):
            said = found["say"].rstrip(" .")
            if not _AT_HAND.search(said) and not _DENIED.search(sentence.text[: found.start()]):
                start = found.start("say")
                if pattern is not _EVER and not _has_reason(sentence, start, start + len(said)):
                    continue
                yield _asks(sentence, "reasoned instruction", start, start + len(said))


def _has_reason(sentence: Sentence, start: int, end: int) -> bool:
    beside = [each for rule in (*preferences.RULES, *statements.RULES) for each in rule.find(sentence)]
    start, end = sentence.place(start), sentence.place(end)
    return bool(beside) and all(each.end <= start or end <= each.start for each in beside)


_QUOTED_AFTER = Pattern(r"\s?(?:['\"\u2018\u201c][^'\"\n\u2019\u201d]{1,80}['\"\u2019\u201d])")


def _asks(sentence: Sentence, rule: str, start: int, end: int) -> Extraction:
    quoted = _QUOTED_AFTER.match(sentence.whole, sentence.place(end))
    end = end + len(quoted[0]) if quoted else end
    return sentence.found(
        rule, start, end, f"{sentence.who} asks: {sentence.words(start, end)}", kind="procedural", corrects=False,
        importance=0.8, tags=("instruction",),
    )  # fmt: skip


def _instruction(sentence: Sentence) -> Iterator[Extraction]:
    reached = -1
    matches = [match for pattern in _PATTERNS for match in pattern.finditer(sentence.text)]
    for match in sorted(matches, key=lambda each: (each.start(), -each.end())):
        start = match.start() + _LEADING.match(match[0]).end()  # type: ignore[union-attr]
        if sentence.question and not _MINE.search(match[0].partition(" ")[2]):
            continue  # "could you use yeast every time?" asks of anyone
        if start < reached or _NOT_ONE.search(match[0]) or _DENIED.search(sentence.text[:start]):
            continue
        reached = match.end()
        quote = sentence.text[start : match.end()].rstrip()
        yield _asks(sentence, "instruction", start, start + len(quote))


_PATTERNS = (_ALWAYS, _FROM_NOW, _WHENEVER, _LANGUAGE, _HABIT, _LASTS, _STOP)

RULES = (
    ExtractionRule("instruction", "always answer in French; from now on …", _instruction, own=False, asked=True),
    ExtractionRule("reasoned instruction", "I'm coeliac, so no wheat please", _reasoned, own=False),
)
