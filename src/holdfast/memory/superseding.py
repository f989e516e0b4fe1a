"""Whether a later note outdates an earlier one that has no key: by rules, from what the two texts say.

``I sold the Vespa and bought a bicycle`` outdates ``I ride a Vespa``. The later text has to say that something changed,
or the same with another number, and the earlier one has to state, as something that holds, the very thing that changed.
Each rule has a name:

- ``left``: what was sold, cancelled, quit, replaced or moved away from is what the earlier one is about: its subject,
  or what somebody has or does there, and not a place in passing
- ``new value``: the same thing has moved, was raised, is now … or is a new one: another date, place, time or name
- ``same doing``: the same person does the same with something else now
- ``home``, ``workplace``: moved or started somewhere else
- ``taken over``: somebody else leads or runs the same now
- ``another number``: of the same there are more or fewer now, or one more, or it costs or weighs another sum

Questions, plans and denials change nothing, and what is said to come in addition replaces nothing. The rules read
English and prefer silence to a false alarm. Deliberately absent: which one was recorded later and who may outdate whom,
which callers know, a model, and hiding anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from holdfast.memory import conflicts
from holdfast.memory.conflicts import content_words, figures_of
from holdfast.text import STOP_WORDS, fold, stem

LONGEST_EARLIER, LONGEST_LATER = 200, 400
"""Characters of texts that are compared: what is longer says more than one thing."""
_KEPT = 2_048  # readings that are kept

_SENTENCE = re.compile(r"(?:\b(?:dr|mr|mrs|ms|prof|st|no)\.|[ap]\.m\.|\d[.:]\d|[^.;!?\n])+[.;!?\n]?", re.IGNORECASE)
_UNREAL = re.compile(
    r"\b(?:if|should|could|might|(?<!\d )(?<!\bin )may(?! \d)|would|wanna|haven't|hasn't|hadn't|didn't|don't|won't|not|"
    r"never|almost|nearly|wants? to|need(?:s|ed)?|plan(?:s|ning|ned)? (?:to|on)|going to|about to|hop(?:e|ing) to|"
    r"consider\w*|thinking|thought|looking for|searching|tried|trying|will)\b"
)
_ADDED = re.compile(r"\b(?:also|too|as well|another|other|second|third|additional\w*|extra|both|besides|spare|plus)\b")
_NOW = re.compile(
    r"\b(?:now|nowadays|these days|currently|instead|from now on|from (?:next|this) \w+ on|as of|since (?!always)|"
    r"anymore|lately|meanwhile|(?:down|up) to|effective)\b"
)
_LASTING = re.compile(r"\b(?:from now on|from (?:next|this) \w+ on|as of|instead|now|effective)\b")
_ASIDE = re.compile(r"\b(?:at|in|on|of|from|for|with|to|near|by|under|behind|beside|outside|after|before)\b")
_NEXT_TO = re.compile(r"\b(?:at|of|from|near|by|under|behind|beside|outside|after|before)\b")
_OF = re.compile(r"\b(?:of|about)\b")
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|we|we're|we've|my|our|me|us|mine|ours)\b")
_STOPS = (
    r"(?=\s*(?:$|[,;:.!?()]|\b(?:and|but|to|for|with|in|on|at|by|because|since|so|as|last|this|yesterday|today|"
    r"now|after|when|instead|any ?more|any longer|completely|altogether|entirely|before|until|over|is|was|are)\b))"
)
_ENDED = (
    r"accounts?|subscription|membership|plan|contract|policy|class|course|lessons?|business|shop|store|office|branch|"
    r"restaurant|company|service|project|delivery"
)
"""What ends when it is stopped or closed: a car and a door do not."""
_FOR_NOW = re.compile(
    r"\bfor (?:now|today|tonight|lunch|(?:the|a|an|this) (?:\w+ )?(?:day|night|evening|weekend|week|month|holidays?|"
    r"while|bit|hour|moment|minute|break))\b"
)
_AT_NAME = re.compile(r"\b(to|from|in|at|with|of|for) (?:the |my |our |Dr\.? |Mrs?\.? |Ms\.? )?([A-Z]\w+)")
_NAME = re.compile(r"\b[A-Z]\w+")
_X = rf"(?P<x>[^,;:.!?()]+?){_STOPS}"
_LEFT = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?:sold|cancell?ed|quit|ditched|dumped|scrapped|retired|got rid of|gave (?:up|away)|given up|returned|"
        rf"(?:gone|went) off|unsubscribed from|resigned from|(?:dropp|pull)(?:ed|ing) out of|broke up with|"
        rf"decommissioned|phased out|traded in|abandoned|(?:stopped|dropped|closed)(?= [^,;:.!?]*\b(?:{_ENDED})\b)|"
        rf"(?:stopped|dropped)(?! (?:the|a|an|my|our)\b|[^,;:.!?]*\boff\b))"
        rf" (?!(?:at|by|in|to|from|off|on|for|with|over|into|out|through)\b){_X}",
        rf"\b(?:moved?|switch(?:ed)?|migrat(?:ed|ion)|chang(?:ed|e)|convert(?:ed)?|transition(?:ed)?|went)"
        rf"(?: (?:over|away|everything|all|\w+ing))* from {_X}",
        rf"\b(?:finished|completed|done with|replac(?:ed|ing)|swapp(?:ed|ing)(?: out)?|trad(?:ed|ing)|exchanged) {_X}",
        rf"\b(?:no longer|instead of|used to) (?!be\b){_X}",
        rf"\b(?:don't|doesn't|do not|does not|isn't|aren't) {_X}\s*(?:any ?more|any longer)",
        rf"\btook over .{{1,60}}? from {_X}",
        r"(?:^|[,;]|\band|\bbut)\s*(?:the |our |my )?(?P<x>\w[\w' -]{0,40}?) (?:is|are|was|were|has been|have been|got)"
        r" (?:gone|history|sold|cancelled|canceled|replaced|shut down|discontinued|retired|switched off)\b",
    )
]
_GONE = re.compile(
    r"^([A-Z]\w+(?: [A-Z]\w+)?) (?:(?:has |have |just )?(?:left|resigned|quit|retired|moved on)|"
    r"is (?P<soon>leaving|resigning|retiring|moving on))\b"
    r"(?! (?:for|at|on|the|a|her|his)\b)"
)
_FINISHED = ("finished", "completed", "done with")
_IN_THE_MIDDLE = re.compile(
    r"\b(?:reading|watching|working on|writing|studying|learning|taking|doing|playing|building)\b"
)
_USED = re.compile(r"(?:\b(?:am|is|are|was|were|be|get|got|getting)|'m|'re|'s) used to\b")
_NOTHING_LEFT = """
    old account subscription membership plan job service contract use using user everything thing previous
    former current work way habit doing one
"""
_STATES = """
    live work ride drive use run host deploy meet start begin open close leave cost take go play drink eat read
    study speak wear own have has sleep weigh earn pay teach lead manage build store keep track attend smoke
    train swim depart arrive end serve watch hold belong park subscribe ship test write develop head coach chair
    happen coordinate handle
"""
_LASTING_PAST = "subscribed parked used"
_BE = {"is", "are", "am", "i'm", "we're", "it's", "be", "will"}
_CHANGES = """
    moved changed switched pushed postponed rescheduled shifted bumped raised lowered increased reduced dropped
    went got extended delayed became rose fell
"""
_VERBS = _STATES + _CHANGES
_GONE_BY = re.compile(
    r"\b(?:was|were|did|had|went|saw|met|paid|spent|visited|came|ate|watched|read|called|asked|told|said|wrote|yesterday|ago|"
    r"last (?:week|month|year|night|summer|winter|spring|autumn)|used to|in (?:19|20)\d\d)\b"
)
_HAVING = "be have own cost hold"
_EXTRA = "deadline time date meeting call start new daily weekly appointment day"
_HAPPENING = "be meet happen start begin"
"""Of these, one may stand for another: book club meets at Hannah's, and will be at the library."""
_MANY = """
    cat dog pet kitten puppy child kid baby son daughter friend colleague neighbour neighbor plant book game
    song recipe sister brother cousin nephew niece customer client member student idea rule task note item
"""
_TO_VALUE = re.compile(
    r"\b(?:changed|updated|reset|raised|lowered|cut|increased|reduced|moved|rescheduled|pushed|postponed|brought|"
    r"shifted|bumped|renamed|set|extended|delayed|had to (?:move|push|change|reschedule|postpone|shift|raise|lower)) "
    r"(?P<what>(?:the|our|my|their|\w+'s) [\w' -]{1,50}?)"
    r"(?: from [^,;]{1,30}?)?(?: (?:back|forward|up|down))? (?:to|until|till) (?P<value>[^,;.!?]+)"
)
_NEW = re.compile(r"(?<!'s )(?<!\bhis )(?<!\bher )(?<!\btheir )\b(?:brand[- ])?new (?P<what>(?:[\w'-]+ ?){1,4})")
_HOME = re.compile(r"\b(?:live|lives|living|based|reside|home is|staying) (?:in|at|on|near) (?P<value>[^,;.!?]+)")
_MOVED = re.compile(
    r"\b(?:moved|relocated|emigrated|settled) (?:back |over |house |flat )?(?:to|into|in) (?P<value>[^,;.!?]+)"
)
_HOUSE = re.compile(
    r"\b(?:just|last|house|home|flat|apartment|back|finally|family|city|country|relocated|emigrated|settled)\b"
)
"""What makes "I moved to" likelier to be about a home than about what one works with."""
_WORK = re.compile(
    r"\b(?:(?:work|works|working|employed|job) (?:\w+ ){0,4}?(?:at|for|by)|job is with|employer is) (?P<value>.+)"
)
_HIRED = re.compile(
    r"\b(?:(?:started|starting|began|hired|work|working)(?: working)?(?: (?:on|in|last|this) \w+)? (?:at|for|by)|"
    r"(?:job|position|role) (?:\w+ ){0,3}?(?:at|for|with)|(?:left|quit) [^,;.!?]+ and joined|"
    r"joined(?= .*\b(?:as an?|job|company)\b))"
    r" (?P<value>[^,;.!?]+)"
)
_SCHOOL = re.compile(r"\b(?:school|kindergarten|nursery|college|university|gym|class|course|club|band|team|choir)\b")
_LEADING = "lead manage run head own coach chair coordinate handle teach"
_TAKEN_OVER = re.compile(r"\b(?:took|takes|taking|taken) over (?P<what>.+?)(?: from .+)?$")
_COUNTED = "be own have weigh cost pay earn"
_ORDINALS = ("third", "fourth", "fifth", "sixth")
_ONE_MORE = re.compile(
    rf"\b(?:got|have|adopted|bought|had) (?:a|our|my) (?P<nth>{'|'.join(_ORDINALS)}) (?P<what>[\w' -]+)"
)
_ELSEWHERE = "ride drive live work host deploy play study drink run"
_FOR = re.compile(r"\b(?:for|as) (?!now\b)(?P<what>[^,;.!?]+)")


@lru_cache(16)
def _stems(words: str) -> frozenset[str]:
    """The stems of a list of words; made by the first text, not on import."""
    return frozenset(map(stem, words.split()))


class _ReadSentence(msgspec.Struct, frozen=True):
    """A sentence that states something: who or what does what, and what comes after that."""

    text: str
    raw: str
    words: frozenset[str]
    own: bool
    subject: frozenset[str]
    verb: str
    past: bool
    rest: str
    head: str
    named: frozenset[str]
    object: frozenset[str]

    @property
    def mine(self) -> bool:
        """Whether the one who speaks is the subject, said or left out."""
        return self.own and not self.subject

    def about(self, words: frozenset[str], by_name: bool) -> bool:
        """Whether something is what it is about: the subject, or what is had or done, and no mere place of that."""
        said = content_words(_OF.split(self.rest)[0]) if by_name else self.object
        return words <= self.named | said and (by_name or self.head in words or not words.isdisjoint(said))


class _Left(msgspec.Struct, frozen=True):
    """What somebody no longer has or does, whether its name stands there, what is said before and after that."""

    words: frozenset[str]
    by_name: bool
    sentence: _ReadSentence
    who: str
    more: str


class _Statement(msgspec.Struct, frozen=True):
    """What the rules see of a text."""

    words: frozenset[str]
    sentences: tuple[_ReadSentence, ...]
    left: tuple[_Left, ...]
    lasts: bool


def tells_change(text: str) -> bool:
    """Whether a text may say that something changed. Most do not, and need not be compared with others."""
    return len(text) <= LONGEST_LATER and _changes(text)


@lru_cache(_KEPT)
def _changes(text: str) -> bool:
    return _CHANGED.search(text) is not None


def outdates(later: str, earlier: str) -> str | None:
    """The rule by which a later text of the same person outdates an earlier one, None if none does."""
    if len(earlier) > LONGEST_EARLIER or not tells_change(later):
        return None
    new = _read(later)
    if not (_words(earlier) & new.words or (_placed(later) and _placed(earlier))):
        return None
    old = _read(earlier)
    if not old.lasts:
        return None
    if not new.sentences or (old.words == new.words and not new.left):
        return None
    for rule, judge in _RULES:
        if judge(new, old):
            return rule
    return None


def forget() -> None:
    """Keep no reading of any text: something was erased."""
    for kept in (_changes, _words, _placed, _read):
        kept.cache_clear()
    conflicts.forget()


@lru_cache(_KEPT)
def _words(text: str) -> frozenset[str]:
    return content_words(fold(text))


@lru_cache(_KEPT)
def _placed(text: str) -> bool:
    return _PLACED.search(text) is not None


@lru_cache(_KEPT)
def _read(text: str) -> _Statement:
    sentences = tuple(_sentence(found[0]) for found in _SENTENCE.finditer(text) if not found[0].rstrip().endswith("?"))
    sentences = tuple(one for one in sentences if one.words)
    left = tuple(_left(one) for one in sentences)
    words = frozenset[str]().union(*(one.words for one in sentences))
    lasts = len(sentences) in (1, 2) and _lasting(sentences[0])
    return _Statement(words, sentences, tuple(one for several in left for one in several), lasts)


def _sentence(raw: str) -> _ReadSentence:
    raw = raw.strip(" .;!\n").replace("\u2019", "'")
    text = fold(raw)
    tokens = [token.strip(",:()\"'") for token in text.split()]
    own = _FIRST_PERSON.search(text) is not None
    for place, token in enumerate(tokens):
        if _is_verb(tokens, place):
            before, rest = tokens[:place], tokens[place + 1 :]
            subject = frozenset(word for word in content_words(" ".join(before)) if word not in _stems(_LIGHT))
            verb = "be" if token in _BE else stem(token)
            past = token.endswith("ed") and verb not in _stems(_LASTING_PAST)
            phrase = _ASIDE.split(" ".join(before))[0].split()
            named = [word for token in phrase for word in content_words(token) if word in subject]
            head = [word for word in named if word not in _stems(_NOTHING_LEFT)] or named or [""]
            return _ReadSentence(
                text, raw, content_words(text), own or place == 0, subject, verb, past, " ".join(rest),
                head[-1], frozenset(named), _object(verb, rest),
            )  # fmt: skip
    return _ReadSentence(
        text, raw, content_words(text), own, frozenset(), "", False, text, "", frozenset(), _object("", tokens)
    )


def _object(verb: str, tokens: list[str]) -> frozenset[str]:
    """What somebody does or has, without where: a code at the gym is no gym."""
    doing = verb not in _stems(_HAVING) or (tokens and tokens[0].endswith("ing"))
    rest = " ".join(tokens)
    ends = (found.start() for found in (_NEXT_TO if doing else _ASIDE).finditer(rest))
    words = content_words(rest[: next((end for end in ends if content_words(rest[:end]) or not doing), None)])
    return words | {verb} if doing else words


def _is_verb(tokens: list[str], place: int) -> bool:
    """Whether a word is what is done: after an article, or before another verb, it is a name for something."""
    if tokens[place] in _BE:
        return True
    if stem(tokens[place]) not in _stems(_VERBS) or (place and tokens[place - 1] in ("a", "the", "to")):
        return False
    coming = {stem(word) for word in tokens[place + 1 : place + 3]}
    if tokens[place] in ("has", "have", "got") and coming & _stems(_CHANGES):
        return False
    after = tokens[place + 1] if place == 0 and len(tokens) > 1 else ""
    return after not in _BE and stem(after) not in _stems(_VERBS)


_LIGHT = """
    new day now week month next just finally recently these since usually yes yeah um uh well okay currently today
    ill hell shell theyll youll thats its were youre theyre
"""


def _lasting(sentence: _ReadSentence) -> bool:
    """Whether it states something that holds until it changes, and not an event, a plan or a wish."""
    if sentence.past and sentence.verb in _stems(_STATES):
        return False
    return not (_GONE_BY.search(sentence.text) or _UNREAL.search(sentence.text.split(" not ")[0]))


def _left(sentence: _ReadSentence) -> Iterator[_Left]:
    for pattern in _LEFT:
        for found in pattern.finditer(sentence.text):
            clause = re.split(r"[,;]|\b(?:and|but)\b", sentence.text[: found.start()])[-1]
            if _UNREAL.search(clause) or (found[0].startswith("used to") and _USED.search(sentence.text)):
                continue
            words = content_words(found["x"]) - _stems(_NOTHING_LEFT)
            begin, end = found.span("x")
            more = re.split(r"[,;:!?()]|\b(?:and|but)\b", sentence.raw[end:])[0]
            if words and not _FOR_NOW.match(more.strip()):
                named = any(word[:1].isupper() for word in sentence.raw[begin:end].split())
                who = sentence.raw[found.start() - len(clause) : found.start()]
                yield _Left(words, named, sentence, who, "" if " from " in found[0] else found[0] + more)


def _other_owner(left: _Left, old: _Statement) -> bool:
    """Whether they speak of different people: what I sold was not Anna's."""
    said, new = old.sentences[0], left.sentence
    others = content_words(fold(" ".join(_NAME.findall(left.who)))) - _stems(_LIGHT) - old.words
    if said.mine and others and not _FIRST_PERSON.search(fold(left.who)):
        return True
    if said.subject and not said.own:
        return not said.subject & new.words and not said.text.startswith(("the ", "all ", "everyone "))
    kin = said.words & _stems(_KIN), new.words & _stems(_KIN)
    return kin[0] != kin[1]


_KIN = """
    brother sister mother mum mom father dad wife husband partner son daughter friend colleague neighbour
    neighbor roommate flatmate uncle aunt cousin grandma grandpa parents girlfriend boyfriend niece nephew kids
"""


def _by_leaving(new: _Statement, old: _Statement) -> bool:
    said, gone = old.sentences[0], {word for left in old.left for word in left.words}
    for left in new.left:
        words = left.words
        if not words <= old.words or words & gone or _other_owner(left, old):
            continue
        if left.more.startswith(_FINISHED) and not _IN_THE_MIDDLE.search(said.text):
            continue
        own = said.own and (said.mine or said.verb not in words)  # that I eat no meat says nothing of my dog
        theirs = not said.subject.isdisjoint(words | content_words(fold(left.who)))
        about = any(one.about(words, left.by_name) and not _another(left, one) for one in old.sentences)
        if about and (left.by_name or own or theirs):
            return True
    return _gone(new, old)


def _another(left: _Left, said: _ReadSentence) -> bool:
    """Whether what was left is for another day or place: the flight to Oslo is not the one to Rome."""
    places = dict(_AT_NAME.findall(said.raw))
    for at, name in _AT_NAME.findall(left.more):
        if not content_words(fold(places.get(at, ""))) <= left.words | content_words(fold(name)):
            return True
    # of what is not cancelled it is the day of leaving
    return left.more.startswith("cancel") and _clash(_figures(said.text)[0], _figures(fold(left.more))[0])


def _gone(new: _Statement, old: _Statement) -> bool:
    """Whether somebody left who was somebody's: my boss is Angela, and Angela left."""
    slot, _ = _slot(old.sentences[0])
    if old.sentences[0].verb != "be" or not slot:
        return False
    followed = any(_NEW.search(one.text) or _NOW.search(one.text) for one in new.sentences)
    going = [found for one in new.sentences if (found := _GONE.search(one.raw)) and (followed or not found["soon"])]
    whom = {word for found in going for word in content_words(fold(found[1]))}
    return bool(whom) and whom <= content_words(old.sentences[0].rest) | slot and not whom & slot


def _by_new_value(new: _Statement, old: _Statement) -> bool:
    said = old.sentences[0]
    slot, value = _slot(said)
    if not slot or slot & _stems(_KIN) != new.words & _stems(_KIN):
        return False
    return any(_renewed(one, slot) or _moved_on(one, said, slot, value) for one in new.sentences)


def _slot(said: _ReadSentence) -> tuple[frozenset[str], str]:
    """What has a value, and the value: my dentist, Dr. Ruiz."""
    if said.verb == "be" and (found := re.search(r"^(?:my|our) ([\w' -]+)$", said.rest)):
        return content_words(found[1]), said.text
    if said.mine and said.verb == "pay" and (found := _FOR.search(said.rest)):
        return content_words(found["what"]), said.rest[: found.start()]
    return said.subject, said.rest


def _renewed(one: _ReadSentence, slot: frozenset[str]) -> bool:
    """A new one: of that there is only one, and it is named."""
    if _UNREAL.search(one.text) or _ADDED.search(one.text) or slot & _stems(_MANY):
        return False
    found = _NEW.search(one.text)
    if found is None:
        return False
    said = found["what"].split()
    named = {stem(word) for word in said[: len(slot)]}
    if any(word not in STOP_WORDS and word not in ("called", "named") for word in said[len(slot) : len(slot) + 1]):
        return False  # a new phone case is no new phone
    return named == slot and bool(one.words - slot - _stems(_LIGHT) - _stems(_NOTHING_LEFT))


def _moved_on(one: _ReadSentence, said: _ReadSentence, slot: frozenset[str], value: str) -> bool:
    """The same thing has another value of the same sort."""
    if _ADDED.search(one.text) or (_UNREAL.search(one.text) and not _LASTING.search(one.text)):
        return False
    if found := _TO_VALUE.search(one.text):
        return _same_slot(content_words(found["what"]), slot) and _other_value(value, f"to {found['value']}", said)
    if not _same_slot(one.subject, slot):
        return False
    if one.verb in _stems(_CHANGES) and (to := re.search(r"\b(?:to|until|till) .+", one.rest)):
        return _other_value(value, to[0], said)
    if _NOW.search(one.text):
        same = one.verb == said.verb or {one.verb, said.verb} <= _stems(_HAPPENING)
        return same and _other_value(value, one.rest, said)
    return False


def _same_slot(some: frozenset[str], others: frozenset[str]) -> bool:
    main, other = some - _stems(_EXTRA), others - _stems(_EXTRA)
    return bool(some) and (some == others or (bool(main) and main == other))


def _other_value(old: str, new: str, said: _ReadSentence) -> bool:
    """Whether two values are of one sort, and differ."""
    (figures, rest), (others, other_rest) = _figures(old), _figures(_NOW.sub(" ", new))
    if figures or others:
        return _clash(figures, others)
    one, two = content_words(rest), content_words(other_rest) - _stems(_LIGHT)
    place = _PLACE.match(old.strip()) is not None, _PLACE.match(new.strip()) is not None
    same = new.startswith("to ") or place[0] == place[1]
    return bool(two) and not two <= one and same and said.verb != "have"


def _figures(text: str) -> tuple[dict[str, frozenset[str]], str]:
    """As ``figures_of``, and on Tuesdays is on Tuesday."""
    return figures_of(re.sub(r"(day)s\b", r"\1", text))


_PLACE = re.compile(r"(?:\w+ )?(?:in|at|on|to|from|near|with)\b")


def _clash(figures: dict[str, frozenset[str]], others: dict[str, frozenset[str]]) -> bool:
    """Whether figures of one sort differ. A date and a weekday are of one sort."""
    one, other = _sorts(figures), _sorts(others)
    return any(not (one[sort] <= other[sort] or other[sort] <= one[sort]) for sort in one.keys() & other.keys())


def _sorts(figures: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    day = figures.get("date", frozenset()) | figures.get("weekday", frozenset())
    rest = {sort: values for sort, values in figures.items() if sort not in ("date", "weekday")}
    return {**rest, "day": day} if day else rest


def _by_same_doing(new: _Statement, old: _Statement) -> bool:
    said = old.sentences[0]
    if not said.mine or not said.verb or said.verb == "be":
        return False
    for one in new.sentences:
        if not one.mine or one.verb != said.verb or not _NOW.search(one.text):
            continue
        if _ADDED.search(one.text) or _UNREAL.search(one.text):
            continue
        (figures, some), (others, rest) = figures_of(said.rest), figures_of(one.rest)
        before, after = content_words(some), content_words(_NOW.sub(" ", rest)) - _stems(_LIGHT)
        purposes = {frozenset(content_words(found["what"])) for text in (some, rest) if (found := _FOR.search(text))}
        if len(purposes) > 1:
            continue
        if before & after and figures != others and figures and others and (before <= after or after <= before):
            return True
        if one.verb in _stems(_ELSEWHERE) and after and not after <= before and not (figures or others):
            return True
    return False


def _by_home(new: _Statement, old: _Statement) -> bool:
    return any(
        not _FOR.search(place) and (not old.sentences[0].mine or _HOUSE.search(one.text))
        for one, place in _elsewhere(new, old.sentences[0], _HOME, _MOVED)
    )


def _by_workplace(new: _Statement, old: _Statement) -> bool:
    return any(
        not _ADDED.search(one.text) and not _SCHOOL.search(place)
        for one, place in _elsewhere(new, old.sentences[0], _WORK, _HIRED)
    )


def _elsewhere(
    new: _Statement, said: _ReadSentence, held: re.Pattern[str], gained: re.Pattern[str]
) -> Iterator[tuple[_ReadSentence, str]]:
    """Where the same person is now, if that is another place with a name."""
    known = held.search(said.text)
    for one in new.sentences if known is not None else ():
        found = gained.search(one.text)
        if found is None or known is None or _UNREAL.search(one.text) or not _same_person(one, said):
            continue
        named = one.raw[found.start("value")].isupper()
        if named and content_words(known["value"]).isdisjoint(content_words(found["value"])):
            yield one, found["value"]


def _same_person(one: _ReadSentence, said: _ReadSentence) -> bool:
    """Whether both are of the one who speaks, or of somebody by the same name."""
    if said.own and said.subject <= _stems("job employer work"):
        return (one.own or not one.subject) and not one.words & _stems(_KIN)
    return bool(one.subject) and one.subject <= said.subject and "'s " not in said.text


def _by_taking_over(new: _Statement, old: _Statement) -> bool:
    said = old.sentences[0]
    if said.verb not in _stems(_LEADING) or not said.subject:
        return False
    done = content_words(said.rest)
    for one in new.sentences:
        found = _TAKEN_OVER.search(one.text)
        whose = found["what"] if found is not None else ""
        if found is None and one.verb == said.verb and _NOW.search(one.text):
            whose = _NOW.sub(" ", one.rest)
        if done and content_words(whose) - _stems(_LIGHT) == done and not _UNREAL.search(one.text):
            return not said.subject & one.subject
    return False


def _by_number(new: _Statement, old: _Statement) -> bool:
    """``I own 4 houses`` after ``I own 2 houses``: the same sentence in the present, of what is counted or measured."""
    if len(new.sentences) != 1 or len(old.sentences) != 1:
        return False
    one, said = new.sentences[0], old.sentences[0]
    if said.verb == "have" and _same_person(one, said) and (more := _ONE_MORE.search(one.text)):
        figures, rest = figures_of(said.rest)
        number = str(_ORDINALS.index(more["nth"]) + 2)
        return figures == {"number": {number}} and content_words(rest) == content_words(more["what"])
    if (one.verb, one.subject, one.mine) != (said.verb, said.subject, said.mine) or one.verb not in _stems(_COUNTED):
        return False
    return _lasting(one) and not _ADDED.search(one.text) and conflicts.another_number(said.raw, one.raw)


_CHANGED = re.compile(
    r"\b(?:sold|left|cancel|quit|ditch|dump|scrap|retir|rid of|gave|given|clos|finish|complet|done with|stop|"
    r"return|resign|unsubscrib|drop|broke up|decommission|phased|trad|abandon|mov|switch|migrat|chang|"
    r"convert|transition|went|pull|replac|swap|exchang|no longer|instead|used to|any ?more|any longer|"
    r"took over|tak|gone|history|shut down|discontinu|push|postpon|reschedul|shift|bump|rais|lower|"
    r"increas|reduc|got|extend|delay|became|rose|fell|updat|reset|cut|brought|renam|set|new|now|"
    r"these days|current|as of|since|lately|meanwhile|down to|up to|effective|start|from (?:next|this)|"
    r"began|begin|join|hired|relocat|emigrat|settl|work|job|"
    r"\d|two\b|three\b|four\b|five\b|six\b)",
    re.IGNORECASE,
)
"""The beginnings of the words, and the figures, by which the rules notice a change."""
_PLACED = re.compile(
    r"\b(?:liv|based|resid|home|stay|mov|reloc|emigr|settl|work|job|employ|hired|join|start|began)", re.IGNORECASE
)
_RULES = (
    ("left", _by_leaving),
    ("new value", _by_new_value),
    ("same doing", _by_same_doing),
    ("home", _by_home),
    ("workplace", _by_workplace),
    ("taken over", _by_taking_over),
    ("another number", _by_number),
)
