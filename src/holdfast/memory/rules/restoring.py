"""What a hasty writer leaves out, put back before a sentence is read: a subject, an apostrophe, an idle opening.

"cant stand jazz" is read as "I can't stand jazz", "hes got asthma" as "he's got asthma". So one grammar reads both, and
no rule needs a form for each. Every insertion is remembered, and what is found is quoted as it was written. A verb that
could be an order ("quit the app") gets no subject. Deliberately absent: spelling.
"""

from __future__ import annotations

from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.clauses import FILLER
from holdfast.when import Pattern

IDLE = Pattern(
    r"(?i:(?:not\sthat\s(?:anyone|anybody|you)\s(?:asks?|asked|cares?),?\sbut|(?:kindly|please)\snote(?:\sthat)?|"
    r"reminder\s(?:for|to)\s(?:yourself|self|you)|odd\sone|(?:(?:i|we)(?:['\u2019]ve|\shave|\swas|\swere)\s)?"
    r"(?:just\s|recently\s)?(?:been\s)?told(?:\sthat)?(?=\s(?:i['\u2019]?m|i\sam|i\shave|i['\u2019]ve)\b)),?:?\s)"
)
"""What opens a sentence and says nothing. What someone was told to be or to have, a doctor said."""
_DID = (
    rf"(?:booked(?=:)|(?:{words.either(words.DROPPING)}|studied(?=\s(?:\w+\s)?(?:at|in)\s)|ended(?=\sup\s)|used(?=\sto\s(?:be\san?|live|smoke|own)\s)|made(?=\sup\smy\smind)|"
    r"(?:quit|stopped)(?=\s(?:smoking|vaping|drinking|eating|taking|my\sjob|sugar|alcohol|coffee)\b)|"
    r"(?:retired|married|divorced|graduated|enrolled)(?=\s(?:in|at|from|since|last|on|to|after|my|a|two|three|\d+)\b)|"
    r"went(?=\s(?:vegan|vegetarian|freelance|part)))(?!\s(?:by|it|that|what|and|or|is|are|was)\b)(?=\s)|"
    r"(?:can['\u2019]?t|cannot)\s(?=(?:stand|bear|eat|drink|drive|swim|tolerate|digest)\b)|"
    r"don['\u2019]?t\s(?=(?:like|have|own|speak)\b)|(?:hate|love|own|weigh|suffer(?=\sfrom)|"
    r"live(?=\s(?:in|with|near)\s)|work(?=\s(?:as\san?|nights)\b))\s(?!(?:is|are|was|in|to|it|that|this|you|your|me|"
    r"how|the|and|at|speech|crimes?|mail|letters?|songs?|stor(?:y|ies)|by|my\slife)\b)(?=\w))"
)
_PERFECT = (
    r"(?:always\s|never\s|only\s)?been\s(?=\w+ing\b|diagnosed|[^.,]{2,40}\s(?:since|for)\s)|"
    r"never\s(?=been\s(?:to|on)|owned)"
)
_HAVING = (
    r"(?:size\s\d+\s(?:\w+\s)?feet(?=\W*$|,|\s(?:and|so))|(?:[\w-]+\s){1,3}(?:allergy|intolerance)(?=\shere)|"
    r"(?:anaphylaxis|allergy|intolerance)\sto\s(?=[\w\s,]{3,50}$)(?!.*\s(?:is|are|can|means|haha|lol)\b))"
)
_NAMED = r"(?:blood\s(?:type|group)|shoe\ssize|ring\ssize|pronouns|maiden\sname)(?=(?:['\u2019]s|\s(?:is|are)|:)\s)"
_BEING = (
    rf"(?:(?:{words.IS_DIET}|(?:pre-?|type\s[12]\s)?diabetic|asthmatic|autistic|dyslexic|epileptic|pregnant|"
    r"colou?r[- ]?blind|retired|self-employed|unemployed|going(?=\swith\s(?!the\sflow))|divorced|widowed|"
    r"not\san?\s(?:big\s|huge\s)?fan|(?:on|off)\s(?:the\s)?\w+(?=\ssince\s)|(?:deaf|blind)(?=\sin\s(?:my|one))|(?:severely\s|very\s)?(?:allergic|intolerant)\sto\s\w+)(?=\W*$|,|\s(?:and|of|in\s(?:my|one)|since|with|for\s\w+\syears|so|but)\b)"
    r"(?!\sand\s(?:\w+\s){0,2}(?:people|patients|women|men|users)))"
)
_OPENING = Pattern(
    rf"(?i:(?P<being>{_BEING})|(?P<did>{_DID})|(?P<perfect>{_PERFECT})|(?P<have>{_HAVING})|(?P<named>{_NAMED}))"
)
_SUBJECTS = {"did": "I ", "perfect": "I've ", "being": "I'm ", "have": "I have ", "named": "my "}
_ONE = "|".join(sorted({*words.each(words.BARE), *words.each(words.PETS)} - words.each("kids twins parents"), key=len))
_APOSTROPHE = Pattern(
    r"(?i:(?<![\w'\u2019])(?:i(?=(?:m|ve)\s)|(?:he|she)(?=s\s)|(?:do|does|did|is|was|were|has|have|had|ca|wo)n(?=t\b)|"
    r"(?:(?:my|our)\s(?:\w+\s)?|(?:^|(?<=,\s)|(?<=so\s)))(?:car|eldest|youngest|"
    rf"{_ONE.replace('_', ' ')})(?=s\s(?:an?|called|named|got|due|moving|turning|coming|getting|having|starting|"
    r"visiting|staying|expecting|allergic|vegan|vegetarian|pregnant|diabetic|been)\s)|"
    r"^we(?=re\s(?:\w+ing|both|all|in|from|not|an?|team|on)\b)))"
)


def restored(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text with what was left out, and where in it how much was put."""
    added = {each.end(): "'" for each in _APOSTROPHE.finditer(text)}
    at = 0
    while (filler := FILLER.match(text, at)) is not None and at < 60:
        at = filler.end()
    opening = _OPENING.match(text, at)
    if opening is not None:
        added[at] = _SUBJECTS.get(opening.lastgroup or "", "I'm ")
    pieces, inserts, done, shift = [], [], 0, 0
    for place, what in sorted(added.items()):
        pieces += [text[done:place], what]
        inserts.append((place + shift, len(what)))
        done, shift = place, shift + len(what)
    read = "".join([*pieces, text[done:]])
    if opening is not None and not text[at + 1].isupper():
        first = at + len(added[at])
        read = f"{read[:first]}{read[first].lower()}{read[first + 1 :]}"  # "Diabetic" is no name after "I'm"
    return read, tuple(inserts)
