"""What in a message its sender did not say: quotations, code, forwarded mail, pasted chats, material handed over.

It is blanked with NUL, or with blanks of the same length, so that offsets still count in the message. What plays a
part ("pretend you are my doctor. I have …") or is taken back as a joke is no statement either. Deliberately absent: a
page that is pasted without any mark of it, which reads like the sender's own words, and lists of names: whether "Bob:"
or "Update:" stands before a line goes by the words that are labels.
"""

from __future__ import annotations

import re
from functools import cache

from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.phrases import name_at
from holdfast.text import STOP_WORDS
from holdfast.when import Pattern
from holdfast.when.words import FULL_MONTHS, FULL_WEEKDAYS

_FENCES = r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,500}`"
_MARKED = (
    r"^[ \t]{0,8}(?:>|\||//)[^\n]*|/\*(?:(?!/\*).){0,4000}?\*/|<!--(?:(?!<!--).){0,4000}?-->|"
    r"<(?P<tag>[A-Za-z][\w-]{0,30})(?:\s[^<>\n]{0,200})?>.{0,4000}?</(?i:(?P=tag))>"
)
_QUOTED = (
    r'"""(?:.{0,20000}?)"""|\'\'\'(?:.{0,20000}?)\'\'\'|"[^"\n]{0,2000}"|(?<![\w"])"[^"]{0,20000}"(?!\w)|'
    "\u201c[^\u201c\u201d]{0,20000}\u201d|\u201e[^\u201c\u201d\u201e]{0,20000}[\u201c\u201d]|"
    r"(?<!\w)\u201d(?=\S)[^\u201c\u201d]{0,20000}\u201d|"
    r"\u201a(?:[^\u201a\u2018\u2019\n]|(?<=\w)\u2019(?=\w)){0,2000}[\u2018\u2019]|"
    "\u00ab[^\u00ab\u00bb]{0,20000}\u00bb|\u00bb[^\u00ab\u00bb]{0,20000}\u00ab|"
    "\u2039[^\u2039\u203a]{0,20000}\u203a|\u203a[^\u2039\u203a]{0,20000}\u2039|"
    "\u300c[^\u300c\u300d]{0,20000}\u300d|\u300e[^\u300e\u300f]{0,20000}\u300f|"
    "\u300a[^\u300a\u300b]{0,20000}\u300b|\u3008[^\u3008\u3009]{0,20000}\u3009|"
    r"(?<![\w'])'(?=[^\s'])(?:[^'\n]|(?<=\w)'(?=\w)){1,2000}'(?!\w)|(?<!\w)\u2018[^\u2018\n]{1,2000}?\u2019(?!\w)"
)
_BLANKED = Pattern(f"{_FENCES}|{_MARKED}|{_QUOTED}", re.DOTALL | re.MULTILINE)
_HEADERS = r"(?:from|to|sent|date|subject|cc|bcc|reply-to)[*_]{0,2}:"
_FORWARDED = Pattern(
    r"(?im:^[ \t]*(?:-{2,}[ \t]*(?:original|forwarded)[ \t]+(?:message|mail)|begin[ \t]+forwarded[ \t]+message|"
    r"on[ \t][^\n]{4,120}[ \t]wrote:[ \t]*$|"
    r"on[ \t](?=[^\n]{0,60}\d)[^\n]{3,119}[^\n.!?](?:\n[^\n]{1,120}){0,2}[ \t\n]wrote:[ \t]*$|"
    rf"[*_]{{0,2}}{_HEADERS}[^\n]*\n(?:[ \t]*[*_]{{0,2}}{_HEADERS}[^\n]*\n?)+|"
    r"[*_]{0,2}from[*_]{0,2}:[^\n]*@[^\n]*$|(?:subject:[ \t]*)?fwd?[ \t]?:))"
)
# Several lines that each begin with a time, or with who speaks, are a chat that someone copied.
_DATE = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[ \u00a0\u202f]"
_CLOCK = r"\d{1,2}[:.]\d\d(?::\d\d)?(?:[ \u00a0\u202f]?[ap]\.?m\.?)?"
_CHAT_LINE = Pattern(
    rf"(?im:^[ \t]*(?:(?P<dated>{_DATE}{_CLOCK}[ ]?[-\u2013][ ][^\n:]{{1,40}}:[ ])|"
    rf"(?:\[?(?:{_DATE})?{_CLOCK}\]?[ ,-]{{0,3}})?<[@+%~&]?[^<>\s/][^<>\n]{{0,30}}>[ ]|"
    rf"\[?(?:{_DATE})?{_CLOCK}\]?[ ,-]{{0,3}}[^\n:]{{1,40}}:[ ]|"
    r"\[\d[^\]\n]{3,30}\][ ]?[^\n:]{1,40}:[ ]|(?:[-*\u2022][ ])?[*_]{0,2}(?:user|assistant|human|ai|agent|customer|"
    r"support|bot|system|interviewer|interviewee|speaker|person|participant|caller|moderator|narrator|me|them)"
    r"(?:[ ](?:\d{1,2}|[a-z]))?[ \t]*[*_]{0,2}:[*_]{0,2}(?:[ ]|$))[^\n]*)"
)
_LABELLED = Pattern(
    r"(?m:^[ \t]*(?:[-*\u2022][ ])?[*_]{0,2}(?P<who>[^\s:*_()\[\]<>][^\n:*()\[\]<>]{0,40}?)[ ]?"
    r"(?:,?[ ]?\d{1,2}:\d\d(?:[ ]?[AaPp][Mm])?|[(\[][^()\[\]\n]{1,30}[)\]])?[*_]{0,2}"
    r"(?::|\uff1a)[*_]{0,2}(?:[ \t]+|$|(?<=\uff1a))[^\n]*)"
)
_HANDLE = Pattern(r"@[\w.]{1,40}$|[^\W\d]\w{0,30}_\w{1,30}$|(?i:mom|mum|dad)$")
_SPEAKS = Pattern(r"(?i:\b(?:i|im|my|mine|me|we|our|us|you|your|u)\b)")
_ABSTRACT = Pattern(r"(?i:(?:tion|ment|ness|ship|ity|ware|ance|ence|logy|ing|day|time|thing|work|life)s?$)")
_LABELS = """
    about addition advice afternoon again age aim allergies also answer anyway area aside attempt background backstory
    bio bonus books breakfast btw cause caution cheers choice clarification comment comments con conclusion confession
    cons constraint constraints context correction cost country culture currency current currently date days debt
    description detail details dinner disclaimer disease dislikes draft dreams drinks drug drugs earlier edit
    education else email end evening everything example exercise expenses experience extra extras fact facts family
    fear fears feedback films final finally first firstly food friends fun future fyi games general goals habit habits
    heads-up health hello hey hi highlights hint history hobbies home honestly however idea ideas important info
    injury interests intolerance intolerances intro issue issues kids languages last lastly later less likes link loan
    location love lunch main married med medicine meds middle misc money month morning motto movies music needs news
    next night nope note notes now opinion option options origin other others outcome overview pain past personal pets
    plan plans plus pm point points politics pps preference preferences present previously price pro problem problems
    profile progress pros ps psa purpose question questions quote random reason reasons recap recently regards region
    relationship remember reminder reply request requirement requirements response restriction restrictions result
    results review routine rule rules savings scenario second secondly section short side situation skill skills snack
    solution solutions source specs spoiler sports start state status step story strengths style subject summary
    supplements symptom symptoms task tasks tax test thanks third thought thoughts timeline tip tips title tldr todo
    tomorrow tonight topic travel treatment trigger truth update updates urgent usually version vitamins warning
    weakness weaknesses weather week weekend wish wishes workout year yesterday
"""
"""Words before a colon that name what is said, beside those that the rules of statements know."""
_NAMES_TOO = frozenset({"will", "mark", "grant", "rose", "chase", "dean", "mr", "mrs", "ms", "dr", "prof"})


@cache
def _labels() -> frozenset[str]:
    known = (
        words.KIN, words.ROLES, words.PETS, words.POSSESSIONS, words.EVENTS, words.ROUTINE, words.IDENTIFIED,
        words.NUMBERING, words.NEVER_KEPT, words.ATTRIBUTES, words.GROUPS, words.CONDITIONS, words.PROFESSIONS,
        words.FOODS, words.LANGUAGES, words.MONEY,
    )  # fmt: skip
    found = {*_LABELS.split(), *STOP_WORDS, *words.NO_VERB, *words.UNITS, *FULL_MONTHS, *FULL_WEEKDAYS}
    return frozenset((found | {part for text in known for part in text.replace("_", " ").split()}) - _NAMES_TOO)


def _names(who: str) -> bool:
    """Whether a label before a line may be the name of who says it."""
    if _HANDLE.match(who):
        return True
    name = name_at(who, 0)
    if name is None or name.end < len(who):
        return False
    first, *more = who.casefold().split()
    surname = bool(more) and more[-1] in words.PROFESSIONS.split()  # "Tom Baker"
    return not (_is_label(first) or (more and not surname and _is_label(more[-1])))


def _is_label(word: str) -> bool:
    return word in _labels() or _ABSTRACT.search(word) is not None


def _chat_from(text: str) -> int | None:
    """Where a chat begins that someone copied."""
    found = {line.start(): line for line in _CHAT_LINE.finditer(text)}
    if len(found) > 1 or any(line["dated"] for line in found.values()):
        return min(found)
    labelled = [line for line in _LABELLED.finditer(text) if line.start() not in found]
    named = [line for line in labelled if _names(line["who"])] or _by_turns(labelled, text)
    if len(named) + len(found) < 2:
        return None
    lines = sorted([*found.values(), *named], key=lambda line: line.start())
    return lines[0].start() if any(_SPEAKS.search(text, line.start(), _end_of(line)) for line in lines) else None


def _end_of(line: re.Match[str]) -> int:
    """Where that ends which is said on a line, or on the next ones where the name stands alone."""
    return line.end() + (300 if line[0].rstrip(" \t*_").endswith((":", "\uff1a")) else 0)


def _by_turns(labelled: list[re.Match[str]], text: str) -> list[re.Match[str]]:
    """Lines of those who speak again, or on each line, and whose names have no capitals."""
    short = [line for line in labelled if " " not in line["who"] and not _is_label(line["who"].casefold())]
    who = [line["who"] for line in short]
    each = len(who) == sum(not line.isspace() for line in text.splitlines() if line)
    return short if len(set(who)) > 1 and (each or len(set(who)) < len(who)) else []


# What follows "Translate this:" is material, not a statement of the one who hands it over.
_MATERIAL = Pattern(
    r"(?im:^[^\n:]{0,40}\b(?:translate|rewrite|rephrase|proofread|summari[sz]e|paraphrase|correct|improve|edit|explain|"
    r"write|draft|example|lyrics|poem|story|following|says|said|quote|analy[sz]e|polish|shorten|grade|"
    r"transcript|excerpt|pasted|caption|scene|dialogue|joke|riddle|(?:this|the)\s(?:sentence|text|article|e-?mail|"
    r"letter|review|message|paragraph))\b"
    r"[^\n:]{0,80}:(?=\s))"
)
_TEXTS = (
    r"(?:texts?|sentences?|articles?|e-?mails?|letters?|messages?|paragraphs?|passages?|essays?|grammar|spelling|"
    r"following|below)"
)
_HANDED_OVER = Pattern(
    r"(?im:^[^\n:.!?]{0,40}\b(?:(?:translate|rewrite|rephrase|reword|proofread|paraphrase|summari[sz]e|shorten|polish|"
    rf"spell-?check)\s(?:this|these|that|it|(?:in)?to\s[^\W\d_]{{2,20}}|(?:[^\W\d_]{{1,12}}\s){{0,3}}{_TEXTS})\b|"
    rf"(?:correct|edit|improve|fix|check|grade|analy[sz]e)\s(?:[^\W\d_]{{1,12}}\s){{0,3}}{_TEXTS}\b)"
    r"[^\n:.!?]{0,80}[.!?]{0,3}[ \t]*\n)"
)
"""The same without a colon, on a line of its own."""
_ROLE = Pattern(
    r"(?i:\brole-?\s?play|\b(?:let['\u2019]?s|lets)\s(?:pretend|play|imagine|say)\b|\bpretend\b|\bimagine\b|"
    r"\bact\sas\b|\bin\scharacter\b|"
    r"\byou\s(?:be|play|are)\s(?:now\s)?(?:an?|the|my)\s|\b(?:your|the)\s(?:role|persona)\sis\b|"
    r"\bplay\sthe\s(?:role|part)\b|"
    r"\bonce\supon\sa\stime\b|\bin\s(?:my|the|this|a|our)\s(?:novel|story|game|campaign|screenplay|script|film|"
    r"movie|play|book|dream)\b|"
    r"\b(?:story|poem|song|scene|joke|novel)\s(?:where|in\swhich|about)\b|\bmy\s(?:character|persona|avatar|"
    r"protagonist|npc|hero|heroine)\b|\bhypothetical(?:ly)?\b|\bfrom\sthe\s(?:perspective|point\sof\sview)\sof\b|"
    r"\bas\sif\s(?:i|you|we)\b|\b(?:user|persona)\s(?:story|profile):|\bsample\s(?:text|cv|bio|letter)\b|"
    r"\bwrite\s(?:a|an|me\s(?:a|an))\s(?:\w+\s){0,3}"
    r"(?:story|poem|song|rap|scene|monologue|sketch|limerick|haiku|dialogue|novel|script)\b)"
)
_JOKE = Pattern(
    r"(?i:\b(?:is|does|are|was)\s(?:this|the\sabove|the\sfollowing)\s(?:sentence|text|paragraph|phrase|grammar)\b|"
    r"\b(?:which|what|who)\b[^.?!\n]{0,30}\b(?:that|this)\s(?:film|movie|song|quote|lyrics?|poem|sketch)\b|"
    r"\b(?:just|only|totally)?\s?(?:kidding|joking)\b|\bjk\b|(?<!\w)/s\b|\bnot\sreally\s(?:lol|haha)|"
    r"\bmade\sthat\sup\b|\bapril\sfool)"
)
_SENTENCE = Pattern(r"[.!?\n]\s*")


def blanked(text: str) -> str:
    """The text with what its sender did not say as NUL or blanks of the same length."""
    for pattern in (_MATERIAL, _HANDED_OVER, _FORWARDED):
        found = pattern.search(text)
        if found:
            text = _gone(text, found.start(), len(text))
    role = _ROLE.search(text)
    if role:
        ends = [each.end() for each in _SENTENCE.finditer(text) if each.end() <= role.start()]
        text = _gone(text, ends[-1] if ends else 0, len(text))
    if _JOKE.search(text):
        text = _gone(text, 0, len(text))
    chat = _chat_from(text)
    if chat is not None:
        text = _gone(text, chat, len(text))
    return _BLANKED.sub(lambda found: re.sub(r"[^\n]", "\x00", found[0]), text)


def _gone(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]
