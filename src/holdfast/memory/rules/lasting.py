"""Whether a clause says something lasting though its words are in no table: judged by its tense and by what marks it.

The present of a verb says what someone does as a rule ("we homeschool our girls"), unless the verb is one of thinking,
wanting or feeling, or of the work at hand. What was holds of a life when the clause says how long or when ("I taught
for nine years"). What someone is needs a kind of its own. Deliberately absent: grammar (``clauses``).
"""

from __future__ import annotations

from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.clauses import PERSON, THING, Clause, VerbGroup, head_of, heads_of
from holdfast.memory.rules.complements import TIME
from holdfast.when import Pattern

_POINTING = Pattern(
    r"(?i:(?:(?:to|at|on|in|of|with|for|about|like)\s)?(?:it|this|that|these|those|them|him|her|you|your|so|too|here|"
    r"there|what|how|why|when|where|if|whether|like|as)\b)"
)
_AT_HAND = Pattern(
    r"(?i:\b(?:this|these|those|you|your|each\sother|together|sometimes|that\sone|the\s(?:same|above|following|other|"
    r"next|last)|just|yet|nothing|another|enough)\b)"
)
_YOURS = Pattern(r"(?i:\b(?:this|you|your)\b|^(?:it|that|these|those|him|her|them)\b)")
_HOW_OFTEN = words.each("always never usually only often rarely")
CONDITION = Pattern(r"(?i:\W{0,3}(?:if|unless)\b)")
_ALWAYS = Pattern(rf"(?i:{words.RECURRING}|\b(?:never|often|rarely|regularly|from\snow\son|all\sthe\stime)\b)")
_WHEN_ONLY = Pattern(rf"(?i:{TIME})")
_LASTED = Pattern(
    r"(?i:\bfor\s(?:(?:about|over|almost|nearly|around|the\s(?:last|past))\s)?(?:\w+\s){0,2}(?:years?|yrs|decades?|"
    r"months)\b|"
    r"\b(?:\d+|two|three|four|five|six|ten|twenty)\s(?:years|yrs)\b|\b(?:my|our|his|her|their)\s(?:whole|entire)\slife|"
    r"\ball\s(?:my|our|his|her|their)\sli(?:fe|ves)\b|\bsince\s(?:(?:19|20|['\u2019])\d\d|birth|childhood|(?:i|we)\s"
    rf"(?:was|were)|school|college|uni\w*|covid|{words.MONTHLY}|christmas|easter|diwali|ramadan)\b)"
)
_BACK_THEN = Pattern(
    r"(?i:\b(?:in|since|until|from)\s(?:19|20)\d\d\b|\b(?:years|decades)\sago\b|\bas\sa\s(?:kid|child|teen\w*|boy|girl|"
    r"student)\b|\bwhen\s(?:i|we)\s(?:was|were)\s(?:little|small|young|\d|a\s|in\s|kids|children)|"
    r"\bin\sthe\s(?:19)?\d0s\b)"
)
_NATION = (
    rf"(?:{words.either(words.LANGUAGES)}|american|canadian|mexican|brazilian|australian|austrian|belgian|swiss|"
    rf"scottish|"
    r"british|indian|pakistani|nigerian|kenyan|ghanaian|south\safrican|egyptian|moroccan|filipin[oa]|indonesian|"
    r"malaysian|colombian|argentinian|chilean|peruvian|cuban|jamaican|croatian|serbian|bulgarian|albanian|lithuanian|"
    r"latvian|estonian|slovak|slovenian|israeli|iranian|iraqi|lebanese|syrian|european|asian|african)"
)
_SKILL = (
    r"(?:at|with|in|on|of|to|about|for)\s(?!(?:it|this|that|you|your|me|here|least|all|last|home|first|heart|hand|"
    r"the\s(?:moment|time|way))\b)\w"
)
_IS = Pattern(
    rf"(?i:(?:half\s|originally\s|born\s)?{_NATION}(?=\W*$|\s(?:and|but|from|by|not|so)\b|,)|"
    r"(?:very\s|really\s|quite\s|pretty\s|so\s|still\s|totally\s|completely\s|a\sbit\s)?(?:(?:new|allergic|intolerant|"
    r"addicted|sensitive|prone|vulnerable|related|loyal)\sto|(?:bad|good|terrible|rubbish|useless|hopeless|great|"
    r"decent|"
    r"brilliant|awful|clumsy|slow|handy)\s(?=at\s|with\s)|(?:scared|afraid|terrified|fond|wary)\s(?=of\s)|(?:obsessed|"
    r"comfortable)\s(?=with\s)|(?:keen|big|hooked)\s(?=on\s)|(?:interested|fluent|qualified)\s(?=in\s)|(?:passionate|"
    r"crazy|mad|nuts|picky|fussy|strict)\s(?=about\s)|(?:responsible)\s(?=for\s))\s?"
    rf"(?:{_SKILL}|(?!(?:it|this|that|you|your)\b)\w)|"
    r"(?:very\s|really\s|quite\s|a\sbit\s|both\s|all\s|naturally\s|rather\s)?(?:shy|introverted|extroverted|religious|"
    r"bald|left-?handed|right-?handed|diabetic|asthmatic|dyslexic|autistic|epileptic|deaf|blind|short-?sighted|"
    r"colou?r-?blind|vegan|vegetarian|retired|disabled|hypermobile|nonverbal|non-verbal|trans|nocturnal|muslim|jewish|"
    r"hindu|sikh|catholic|christian|buddhist|forgetful|nearsighted|homeschooled|freelance|self-?employed|teetotal|"
    r"coeliac|celiac|bilingual|divorced|widowed)\b(?!-|\s(?:enough|today))|"
    r"in\s(?:the\s)?(?:year|grade|sixth\sform|my|his|her|their|our)\s(?:\d+|[2-9]0s|first|second|third|final|late|"
    r"early|"
    r"mid|last)\b|in\s(?:the\s)?\d+(?:st|nd|rd|th)\s(?:grade|year)\b|in\sa\s(?:\w+\s){0,2}(?:band|choir|wheelchair|"
    r"relationship|cast|care\shome)\b|(?:\d{1,2})\s(?:and|years?|yrs?|months?)\b|\d{1,2}\W*$|(?:a\s)?size\s\w|"
    r"from\s(?!here|there|the\s(?:team|start)|home|work|time)\w)"
)
_NAMES_ONE_OF = (
    r"(?:(?:an?|the\s(?:only|youngest|oldest|eldest|one\swho)|one\sof|the\smiddle\schild)\s(?!(?:bit|little|lot|tad|"
    r"few|"
    r"couple|mess|wreck|idiot|fool|moron|failure|genius|loser|king|queen|god|joke|goner|star|legend|angel|saint|"
    r"monster|"
    r"nightmare|pain|disaster|treasure|sweetheart|delight|handful|character|hero|total|real|complete|mix|"
    r"fan\b(?!\sof\s(?!it|this|your))|"
    r"big\s|huge|great|good|bad|true|step|third|half|quarter|minute|min|hour|day|week|month|year|second|while|"
    r"sucker|vampire|wizard|knight|robot|bot|potato|zombie|ghost|dead|happy|broken|changed|hot|problem)\b)[a-z])"
)
_NAMES_ONE = Pattern(rf"(?i:{_NAMES_ONE_OF})")
_BODY = Pattern(
    r"(?i:(?:(?:really|very|so|quite|pretty|still|extremely|super|too|both|not\s(?:very|so|that|too)?|"
    r"a\sbit)\s?)*(?:bad|poor|"
    r"terrible|weak|limited|rusty|shot|arthritic|numb|stiff|nonexistent|at\s\w+\slevel|good|great|awful|basic|fluent|"
    r"sensitive|dry|oily|curly|failing|tight|small|tiny|high|low|"
    r"not\sgreat|shaky|patchy)\b(?!\s(?:today|right|now)))"
)
_IS_OWNED = Pattern(rf"(?i:{_NAMES_ONE_OF}|(?:plot|unit|number|room|size|type|grade)\s\w)")
_AIM = Pattern(
    r"(?i:(?:\w+\s)?(?:degree|major|phd|master'?s|thesis|job|background)\sis\sin\s[a-z]{4}|(?:\w+\s)?(?:dream|goal|"
    r"ambition|resolution|aim)\sis\sto\s(?!it|this|get\sthis)\w)"
)
_BODILY = words.each(
    f"{words.LANGUAGES} eyesight hearing memory back knee knees hip hips hand hands foot feet ankle shoulder skin "
    f"hair handwriting vision spelling balance "
    "budget kitchen garden flat pressure teeth"
)
_HAS = Pattern(
    r"(?i:(?:(?:really|very|super|quite|a|an|two|both|one|no)\s)*(?:(?:big|small|wide|narrow|flat|long|short|bad|weak|"
    r"sensitive|dry|oily|curly|thick|thin|high|low|poor|good|limited|wooden|steep)\s){1,2}(?:hands?|feet|foot|legs?|"
    r"arms?|back|knees?|hips?|skin|hair|eyes?|eyesight|hearing|vision|memory|garden|kitchen|ceilings?|balcony|budget|"
    r"blood\spressure|iron|pain\sthreshold)\b|(?:two|three|four|five|six|\d+)\s(?:\w+\s)?(?:jobs|houses|flats|"
    r"bedrooms|employees|"
    r"students|tenants|clients|acres|passports|nationalities|horses|degrees)\b)"
)
_HAS_NOT = Pattern(
    rf"(?i:(?:an?|any|our\sown|my\sown)\s(?:\w+\s){{0,2}}?(?:{words.either(words.POSSESSIONS)}|"
    rf"{words.either(words.PETS)}|"
    rf"{words.either(words.KIN)}|{words.either(words.IS_KEPT)})\b(?!\s(?:yet|with\sme|here|number|name)))"
)


def lasting(text: str, clause: Clause, group: VerbGroup, start: int, end: int, whole: str) -> str | None:
    """What a clause is about, if it lasts. ``whole`` is what it says with a time that stood before its subject."""
    rest = text[start:end]
    if CONDITION.match(text, clause.end):
        return None
    if group.form == "did" and _YOURS.search(rest) is None and (over := _of_a_life(group, whole)) is not None:
        return over
    if _AT_HAND.search(text, clause.start, end) or _POINTING.match(text, start, end):
        return None
    if group.words == "has been":
        return "person" if group.adverb == "never" or _LASTED.search(whole) else None
    if group.form == "be":
        return _of_a_kind(text, clause, group, rest)
    if group.form == "doing":
        return "person" if "been" in group.words and _LASTED.search(whole) else None
    if group.form == "have" and group.negated:
        return "possession" if _HAS_NOT.match(rest) else None
    if group.form == "have":
        return "person" if _HAS.match(rest) or _LASTED.search(whole) else None
    return _by_habit(clause, group, rest, whole) if group.form == "do" else None


def _of_a_life(group: VerbGroup, whole: str) -> str | None:
    perfect = group.words.startswith("has ")
    if group.verb in words.THINKING_DONE:
        return None
    unlearned = group.adverb == "never" and group.verb in ("learned", "learnt", "owned")
    if unlearned or (perfect and (group.adverb == "never" or _LASTED.search(whole))):
        return "person"
    return (
        "person" if not perfect and not group.negated and (_LASTED.search(whole) or _BACK_THEN.search(whole)) else None
    )


def _of_a_kind(text: str, clause: Clause, group: VerbGroup, rest: str) -> str | None:
    kind = clause.subject.kind
    if group.verb == "was":
        return "person" if rest and not group.negated and _LASTED.search(rest) else None
    if kind == THING:
        bodily = head_of(clause.subject.words) in _BODILY
        mine = text[clause.subject.start : clause.subject.start + 3].lower() in ("my ", "our")
        of_a_kind = mine or not rest.startswith(("a ", "an ", "the ", "one "))  # "the boiler is a device" tells of all
        owned = head_of(clause.subject.words) in heads_of("ATTRIBUTES", "POSSESSIONS") and not group.negated
        told = (
            (bodily and _BODY.match(rest))
            or (owned and of_a_kind and _IS_OWNED.match(rest))
            or _AIM.match(f"{clause.subject.words} is {rest}")
        )
        return "person" if told else None
    if group.negated and rest.startswith("allowed to "):
        return "person"
    if group.negated:
        named = _IS.match(rest) is not None and rest[:1].isupper()
        return "person" if named or rest.startswith(("religious", "good at", "good with")) else None
    return "person" if _IS.match(rest) or (_NAMES_ONE.match(rest) and not group.modal) else None


def _by_habit(clause: Clause, group: VerbGroup, rest: str, whole: str) -> str | None:
    verb, kind, first = group.verb, clause.subject.kind, rest.partition(" ")[0].lower()
    # Before another verb this one is a misspelt adverb.
    if verb in words.THINKING or first in words.DOES or f"{verb} {first}" == "manage to":
        return None
    if group.modal:
        return "person" if rest and verb in words.ABLE and _cannot(group) else None
    if verb in ("have", "own"):
        return "possession" if group.negated and _HAS_NOT.match(rest) else None
    # What follows one of these did not fit where it has a form of its own.
    told_elsewhere = words.TASTES if kind == PERSON else words.TASTES | words.STRICT
    if verb in words.LIGHT | told_elsewhere or (kind == THING and verb in words.FAILING):
        marked = group.adverb in _HOW_OFTEN or _ALWAYS.search(whole) is not None
        return "routine" if marked and (rest or group.adverb) else None
    says_enough = rest or group.negated or group.adverb or kind == PERSON
    return "routine" if says_enough and not (verb == "visit" and _WHEN_ONLY.match(rest)) else None


def _cannot(group: VerbGroup) -> bool:
    return group.negated and group.modal in ("can", "ca", "cannot")
