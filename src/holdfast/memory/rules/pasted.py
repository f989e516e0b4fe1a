"""What in a message its sender did not say: quotations, code, forwarded mail, pasted chats, material handed over.

It is blanked with NUL, or with blanks of the same length, so that offsets still count in the message. What plays a
part ("pretend you are my doctor. I have …") or is taken back as a joke is no statement either. Deliberately absent: a
page that is pasted without any mark of it, which reads like the sender's own words.
"""

from __future__ import annotations

import re

from holdfast.when import Pattern

_FENCES = r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,500}`"
_MARKED = r"^[ \t]{0,8}(?:>|\|)[^\n]*|<(?P<tag>[a-z][\w-]{0,30})(?:\s[^<>\n]{0,200})?>.{0,4000}?</(?P=tag)>"
_QUOTED = (
    r'"""(?:.{0,20000}?)"""|\'\'\'(?:.{0,20000}?)\'\'\'|"[^"\n]{0,2000}"|(?<![\w"])"[^"]{0,20000}"(?!\w)|'
    "\u201c[^\u201c\u201d]{0,20000}\u201d|\u201e[^\u201c\u201d\u201e]{0,20000}[\u201c\u201d]|"
    "\u00ab[^\u00ab\u00bb]{0,20000}\u00bb|"
    r"(?<![\w'])'(?=[^\s'])(?:[^'\n]|(?<=\w)'(?=\w)){1,2000}'(?!\w)|(?<!\w)\u2018[^\u2018\n]{1,2000}?\u2019(?!\w)"
)
_BLANKED = Pattern(f"{_FENCES}|{_MARKED}|{_QUOTED}", re.DOTALL | re.MULTILINE)
_FORWARDED = Pattern(
    r"(?im:^[ \t]*(?:-{2,}[ \t]*(?:original|forwarded)[ \t]+(?:message|mail)|begin[ \t]+forwarded[ \t]+message|"
    r"on[ \t][^\n]{4,120}[ \t]wrote:[ \t]*$|"
    r"(?:from|to|sent|date|subject|cc|reply-to):[^\n]*\n(?:[ \t]*(?:from|to|sent|date|subject|cc|bcc|"
    r"reply-to):[^\n]*\n?)+|"
    r"from:[^\n]*@[^\n]*$))"
)
# Several lines that each begin with a time, or with who speaks, are a chat that someone copied.
_CHAT_LINE = Pattern(
    r"(?im:^[ \t]*(?:\[?\d{1,2}[:.]\d\d(?::\d\d)?(?:[ ]?[ap]m)?\]?[ ,-]{0,3}[^\n:]{1,40}:[ ]|"
    r"\[\d[^\]\n]{3,30}\][ ]?[^\n:]{1,40}:[ ]|(?:user|assistant|human|ai|agent|customer|support|bot|system|"
    r"interviewer|me|them)[ \t]*:[ ])[^\n]*)"
)
# What follows "Translate this:" is material, not a statement of the one who hands it over.
_MATERIAL = Pattern(
    r"(?im:^[^\n:]{0,40}\b(?:translate|rewrite|rephrase|proofread|summari[sz]e|paraphrase|correct|improve|edit|explain|"
    r"write|draft|example|lyrics|poem|story|following|says|said|quote|analy[sz]e|polish|shorten|grade|"
    r"transcript|excerpt|pasted|caption|scene|dialogue|joke|riddle|(?:this|the)\s(?:sentence|text|article|e-?mail|"
    r"letter|review|message|paragraph))\b"
    r"[^\n:]{0,80}:(?=\s))"
)
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
    for pattern in (_MATERIAL, _FORWARDED):
        found = pattern.search(text)
        if found:
            text = _gone(text, found.start(), len(text))
    role = _ROLE.search(text)
    if role:
        ends = [each.end() for each in _SENTENCE.finditer(text) if each.end() <= role.start()]
        text = _gone(text, ends[-1] if ends else 0, len(text))
    if _JOKE.search(text):
        text = _gone(text, 0, len(text))
    lines = list(_CHAT_LINE.finditer(text))
    if len(lines) > 1:
        text = _gone(text, lines[0].start(), len(text))
    return _BLANKED.sub(lambda found: re.sub(r"[^\n]", "\x00", found[0]), text)


def _gone(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]
