"""Rules of work and study. An employer has a capital; a job is named after "work as", or is one of the known ones."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.phrases import Phrase, name_at, name_before, place_at
from holdfast.memory.rules.reading import ADVERB, AGED, AM, HAVE, NAMED, S, Sentence
from holdfast.memory.rules.rule import ExtractionRule
from holdfast.when import Pattern

_AT = Pattern(
    rf"(?i:\bI{S}{ADVERB}work{S}{ADVERB}(?:full[- ]time{S}|part[- ]time{S}|remotely{S}|"
    rf"in{S}[^\W\d_][\w-]{{1,20}}{S})?(?:at|for){S}|{AM}{S}{ADVERB}(?:working{S}(?:at|for)|employed{S}(?:at|by)){S}|"
    rf"(?:{HAVE}{S}been|\bI['\u2019]ve{S}been){S}working{S}(?:at|for){S}|\bmy{S}(?:new{S}|"
    rf"current{S})?employer{S}is{S}(?:now{S})?)"
)
_BEGAN = Pattern(
    rf"(?i:\bI{S}{ADVERB}(?:started{S}(?:working{S}|a{S}new{S}job{S}|my{S}new{S}job{S}|a{S}job{S})?at|(?:got|landed|"
    rf"accepted|took){S}(?:a|the){S}(?:new{S})?job{S}(?:at|with)|joined|switched{S}(?:jobs{S})?to{S}working{S}(?:at|"
    rf"for)){S}|{HAVE}{S}{ADVERB}joined{S})"
)
_ENDED = Pattern(
    rf"(?i:\bI{S}(?:no{S}longer{S}work{S}(?:at|for)|(?:quit|left|resigned{S}from){S}(?:my{S}job{S}at{S}|"
    rf"my{S}position{S}at{S})|don['\u2019]t{S}work{S}(?:at|for)(?=[^.]{{1,60}}\bany ?more))(?:{S})?)"
)
_AS_STAFF = Pattern(
    r"(?i:[^,.;]{0,30}?\s(?:as\s(?!well\b|soon\b|if\b|an?\s(?:joke|test)\b)|straight\sout\sof\s|right\safter\s)\w)"
)
_NOT_STAFF = Pattern(
    r"(?i:['\u2019]|\sfor\s|[^,.;]{0,30}?\sas\s(?:an?\s)?(?:\w+\s)?(?:member|customer|subscriber|user|volunteer|guest|fan|"
    r"supporter)\b)"
)
_STAFF = Pattern(
    r"(?i:['\u2019]|\s(?:for\s|as\s(?:an?\s)?(?:\w+\s)?(?:member|customer|subscriber|user|volunteer|guest|fan|supporter)\b))"
)
_STAFF = Pattern(
    rf"(?i:\b(?:company|firm|start-?up|agency|department|staff|employer|employees?|colleagues|job|role|position|"
    rf"salary|career|hired|workplace|(?:{words.either(words.PROFESSIONS)})s?|(?:sales|security|design|data|research|"
    rf"product|engineering|marketing|legal|finance|support|platform)\steam)\b)"
)
_PROFESSION = words.either(words.PROFESSIONS)
_AS = Pattern(
    rf"(?i:(?:\bI{S}{ADVERB}work|{AM}{S}{ADVERB}(?:working|employed)|{HAVE}{S}been{S}working){S}as{S}(?:an?|the){S}|"
    rf"\bmy{S}(?:new{S}|current{S})?(?:job|profession|occupation){S}is{S}(?:being{S})?(?:an?{S})?(?!(?:to|not|very|"
    rf"so|too|really|quite|pretty|\w+ing{S}me)\b))"
)
_JOB = Pattern(
    r"(?i:(?:(?!at\b|for\b|in\b|and\b|but\b|who\b|with\b|so\b|since\b|on\b|from\b)[^\W\d_][\w'-]{0,24})(?:[ ](?!at\b|"
    r"for\b|in\b|and\b|but\b|who\b|with\b|so\b|since\b|on\b|from\b|right\b|now\b|by\b|these\b|because\b|which\b|here\b|"
    r"there\b|myself\b|too\b|to\b|that\b|or\b)[^\W\d_][\w'-]{0,24}){0,3})"
)
_IS_A = Pattern(
    rf"(?i:{AM}{S}{ADVERB}an?{S}(?P<job>(?:(?!bit\b|big\b|huge\b|good\b|bad\b|better\b|terrible\b|great\b|slow\b|"
    rf"retired\b|former\b|aspiring\b|failed\b|non-)[^\W\d_][\w-]{{0,20}}{S}){{0,3}}(?:{_PROFESSION}))\b)(?!['\u2019-])"
)
_AGED_JOB = Pattern(
    rf"(?i:{AM}{S}(?:{AGED}[0-9]{{2}}-year-old|"
    rf"{NAMED}an?){S}(?P<job>(?:[^\W\d_][\w/-]{{0,20}}{S}){{0,2}}(?:[^\W\d_]{{2,20}}(?:ist|er|or|ian|eer|ant)|"
    rf"{_PROFESSION})))"
    rf"(?=$|[,.!]|{S}(?:and|from|at|in|with|who|living|based|working)\b)"
)
_NO_JOB = Pattern(
    r"(?i:(?:^|[ \t-])(?:mother|father|brother|sister|daughter|teenager|beginner|lover|believer|member|owner|winner|"
    r"loser|survivor|senior|junior|minor|bachelor|widower|foreigner|newcomer|vegetarian|stranger|giant|infant|"
    r"immigrant|gamer)$)"
)
_THEN_AT = Pattern(rf"(?i:{S}(?:at|for){S})")
_STUDY = Pattern(
    rf"(?i:(?:\bI{S}{ADVERB}study|{AM}{S}{ADVERB}studying){S}(?P<what>[^\W\d_][\w-]{{2,24}}(?:{S}(?!at\b|in\b|for\b|"
    rf"and\b|to\b)[^\W\d_][\w-]{{2,24}}){{0,2}}){S}at{S})"
)
_THEY_WORK = Pattern(
    rf"{S}(?:(?:now|currently|still|also){S})?(?:works|is{S}working|has{S}worked){S}(?P<way>at|for|as{S}an?){S}"
)


def _employment(sentence: Sentence, rule: str, start: int, company: Phrase, *, new: bool = False) -> Extraction:
    return sentence.link(
        rule, start, company.end, "works at", company.text, key="employer", valid_from=sentence.since(event=new),
        corrects=sentence.corrects and not new, importance=0.7, tags=("work",),
    )  # fmt: skip


def _job_found(sentence: Sentence, rule: str, start: int, job: Phrase) -> Extraction:
    return sentence.link(
        rule, start, job.end, "works as", job.text, key="job", valid_from=sentence.since(), importance=0.7,
        tags=("work",),
    )  # fmt: skip


def _employer(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _AT.finditer(sentence.text):
        company = place_at(sentence.text, cue.end())
        if company and sentence.states(cue.start()):
            yield _employment(sentence, "employer", cue.start(), company)


def _new_employer(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _BEGAN.finditer(sentence.text):
        company = name_at(sentence.text, cue.end())
        hired = "joined" not in cue[0].lower() or (company and _as_staff(sentence.text, company.end))
        if company and hired and sentence.states(cue.start()):
            yield _employment(sentence, "new employer", cue.start(), company, new=True)


def _as_staff(text: str, at: int) -> bool:
    """Whether who joined something works there: one also joins a chat, a club, or Anna for lunch."""
    return not _NOT_STAFF.match(text, at) and (_AS_STAFF.match(text, at) or _STAFF.search(text)) is not None


def _left_employer(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _ENDED.finditer(sentence.text):
        company = place_at(sentence.text, cue.end())
        if company and sentence.states(cue.start()):
            yield sentence.link(
                "left employer", cue.start(), company.end, "no longer works at", company.text, key="employer",
                ended=True, corrects=False, valid_from=sentence.since(event=True), importance=0.7, tags=("work",),
            )  # fmt: skip


def _job(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _AS.finditer(sentence.text):
        job = _JOB.match(sentence.text, cue.end())
        if job and sentence.states(cue.start()):
            yield _job_found(sentence, "job", cue.start(), Phrase(job[0], *job.span()))
            yield from _also_at(sentence, "job", cue.start(), job.end())


def _profession(sentence: Sentence) -> Iterator[Extraction]:
    for match in (*_IS_A.finditer(sentence.text), *_AGED_JOB.finditer(sentence.text)):
        if sentence.states(match.start()) and not _NO_JOB.search(match["job"]):
            yield _job_found(sentence, "profession", match.start(), Phrase(match["job"], *match.span("job")))
            yield from _also_at(sentence, "profession", match.start(), match.end())


def _also_at(sentence: Sentence, rule: str, start: int, at: int) -> Iterator[Extraction]:
    more = _THEN_AT.match(sentence.text, at)
    company = place_at(sentence.text, more.end()) if more else None
    if company:
        yield _employment(sentence, rule, start, company)


def _studies(sentence: Sentence) -> Iterator[Extraction]:
    for match in _STUDY.finditer(sentence.text):
        school = place_at(sentence.text, match.end())
        if school and sentence.states(match.start()):
            text = f"{sentence.who} studies {match['what']} at {school.text}"
            yield sentence.found(
                "studies", match.start(), school.end, text, key="studies", relation="studies at", object=school.text,
                importance=0.6, tags=("work",),
            )  # fmt: skip


def _their_work(sentence: Sentence) -> Iterator[Extraction]:
    for cue in _THEY_WORK.finditer(sentence.text):
        name = name_before(sentence.text, cue.start())
        if name is None or not sentence.states(name.start):
            continue
        at = not cue["way"].startswith("as")
        job = None if at else _JOB.match(sentence.text, cue.end())
        what = place_at(sentence.text, cue.end()) if at else Phrase(job[0], *job.span()) if job else None
        if what:
            relation = "works at" if at else "works as"
            yield sentence.link(
                "their work", name.start, what.end, relation, what.text, of=name.text, subject=name.text,
                key="employer" if at else "job", importance=0.6, tags=("work",),
            )  # fmt: skip


RULES = (
    ExtractionRule("employer", "I work at Siemens; I'm employed by Siemens", _employer),
    ExtractionRule("new employer", "I joined Siemens as an intern; I got a job at Siemens: a change", _new_employer),
    ExtractionRule("left employer", "I no longer work at Siemens; I quit my job at Siemens", _left_employer),
    ExtractionRule("job", "I work as a nurse (at Siemens); my job is …", _job),
    ExtractionRule("profession", "I'm a software engineer (at Siemens), of known professions", _profession),
    ExtractionRule("studies", "I study law at Oxford", _studies),
    ExtractionRule("their work", "Lena works at Siemens, of a person with a name", _their_work, own=False),
)
