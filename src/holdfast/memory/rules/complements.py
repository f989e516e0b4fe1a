"""What may follow a verb so that the whole is worth keeping: named checks over the words after it.

``vocabulary`` names a check for each verb. Deliberately absent: verbs, subjects, and what is learned.
"""

from __future__ import annotations

from holdfast.memory.rules import vocabulary as words
from holdfast.memory.rules.phrases import thing_at
from holdfast.when import Pattern

_PERSON = rf"(?:{words.either(words.KIN)}|{words.either(words.ROLES)}|{words.either(words.PETS)})"
_PET = rf"(?:{words.either(words.PETS)})"
_OWNED = rf"(?:{words.either(words.POSSESSIONS)})"
ILLNESS = rf"(?:{words.either(words.CONDITIONS)}|\w+(?:itis|emia|aemia|osis|oma|pathy|phobia))"
_EVENT = rf"(?:{words.either(words.EVENTS)})"
FOOD = rf"(?:{words.either(words.FOODS)})"
TIME = rf"(?:{words.RECURRING}|{words.CLOCK}|{words.DATED})"
_NP = r"(?:(?:an?|the|my|our|his|her|their|two|three|four|five|six|\d+|one|both|some|no)\s)?(?:[\w'\u2019.&-]+\s){0,4}?"
_OWN_NP = r"(?:an?|my|our|one|two|three|four|both|\d+)\s(?:[\w'\u2019.&-]+\s){0,4}?"
_MODEL = r"(?-i:(?:an?|my|our|two|three)\s(?:[\w'\u2019-]+\s){0,3}?(?:[A-Z][\w-]+\s?\w*|\d{4}\s\w+))"
_BONE = (
    "arm|leg|ankle|wrist|collarbone|hand|foot|toes?|ribs?|hip|finger|nose|jaw|elbow|knee|acl|meniscus|shoulder|"
    "achilles|thumb"
)
_DRUG = (
    r"(?:\d+\s?(?:mg|mcg|ml|units)\b|(?:an?\s)?(?:insulin|the\spill|pills?|meds|medications?|tablets?|antibiotics?|"
    "statins?|"
    r"antihistamines?|vitamin\s\w+|iron|blood\sthinners?|antidepressants?|beta\sblockers?|painkillers|steroids|"
    "warfarin|"
    r"\w{4,}(?:triptan|lukast|gliptin|xaban|pril|statin|formin|oxine|pine|zole|olol|sartan|amide|oxetine|azepam|traline|cillin|phen|profen|tine|"
    r"idate|melatonin))\b)"
)
SPORT = (
    "football|soccer|tennis|basketball|volleyball|handball|rugby|hockey|chess|golf|badminton|squash|cricket|"
    "baseball|poker|"
    "bridge|darts|padel|table tennis|ping pong|d&d|video games|lacrosse|softball|water polo|bass|guitar|piano|"
    "violin|cello|"
    "viola|flute|drums|saxophone|trumpet|clarinet|harp|ukulele|banjo|accordion|keyboard|organ|trombone|oboe|bagpipes"
)

_POINT = "it|this|that|them|these|those"
_ANY = (
    "(?!(?:it|that|this|these|those|them|him|her|you|there|here|to|how|what|when|why|where|who|if|so|too|very|like|"
    r"as|well|out|fine|hard|all|is|the\s(?:same|following|above|idea|answer))\b)\S"
)
PATTERNS: dict[str, str] = {
    "any": _ANY,
    "maybe": r"",
    "only": r"\W*(?:$|,|\bbecause\b)",
    "none": r"(?!)",
    "person": rf"(?:each\sother\b|.*?\b(?:{_PERSON})\b)",
    "thing": rf"(?:{_OWN_NP}{_OWNED}\b|{_MODEL}|the\s(?:[\w-]+\s){{0,2}}{_OWNED}\b)",
    "sum": rf".*?(?:{words.MONEY}|\b\d[\d.,]{{2,}})",
    "learn": rf"(?!{_POINT}|that|how\sto\suse|from|about|more|so|as|to\s(?:live|love|be|deal|cope|say|let))\S",
    "notice": r"in\s(?:my|our)\s(?:notice|resignation)",
    "went": (
        r"(?:up|down)\sto\s|(?:vegan|vegetarian|back\sto\s(?:school|uni|university|college|work)|freelance|"
        r"part[- ]time|on\smaternity)\b"
    ),
    "live": (
        r"(?:with\s(?!this|it|that)|w/?\s|in\s(?!hope|fear|the\s(?:moment|past|present|now|cloud|future)|denial|"
        "peace|sin|"
        r"silence|harmony|luxury|constant|dread|poverty|pain|misery|terror|my\shead|this\s)\w|alone\b|near\s|by\sthe\s|"
        r"outside\s|between\s|above\s|below\s|next\sto\s|across\s|close\sto\s|off\s|on\s(?!my\sown\sterms|the\sedge\b)|"
        r"at\s|\d|abroad\b|(?:upstairs|downstairs)\b|together\b|apart\b|there\ssince)"
    ),
    "joined": (
        r"(?!(?:the|an?|this|that|your)\s(?:\w+\s)?(?:call|meeting|chat|queue|line|zoom|discussion|server|wifi|"
        r"channel)\b|in\b|late\b|them\b|us\b|you\b|[^,.]{2,30}\sfor\s(?:lunch|dinner|coffee|drinks?|a\s\w+)\b)\S"
    ),
    "drives": (
        rf"(?:the\s(?:[\w-]+\s){{0,3}}(?:bus|tram|train|taxi|school\srun|night\sbus)\b|{_OWN_NP}{_OWNED}\b|{_MODEL}|(?:trucks?|buses|a\s(?:truck|bus|taxi|cab|tram|van|forklift|lorry)|"
        r"lorries|trains|taxis|for\s(?-i:[A-Z])|to\swork|manual|stick)\b)"
    ),
    "name": r"(?-i:(?:the\s)?[A-Z\d])",
    "work": (
        r"(?:at\s(?!it\b|this\b|the\smoment\b|least\b)|for\s(?!free\b|a\sliving\b|me\b|it\b|this\b|now\b|\d)|"
        r"as\san?\s|in\s(?!silence\b|theory\b|"
        r"progress\b|pairs\b|general\b|this\b|that\b)(?:an?\s|the\s|\w+)|with\s(?!me\b|what\b|it\b|you\b|this\b|"
        r"that\b)|"
        r"nights\b|(?:the\s)?(?:\w+\s)?shifts?\b|on\s(?:an?|the)\s(?:\w+\s)?(?:rig|farm|ship|ward|site|boat|estate|"
        r"platform)\b|part[- ]time\b|full[- ]time\b|remote(?:ly)?\b|"
        rf"from\s(?:home\b|\d)|freelance\b|.*?(?:{words.RECURRING}|{words.CLOCK})|\d+\s(?:hours|days))"
    ),
    "working": (
        rf".*?{words.RECURRING}|"
        r"(?:at\s(?!it|the\smoment|least)|for\s(?!free|me|it)|as\san?\s|nights\b|part[- ]time\b|full[- ]time\b|"
        r"remotely\b|from\shome\b|towards?\s|in\s(?:an?|the)?\s?\w+|on\s(?:my|an?)\s(?:\w+\s){0,2}(?:book|novel|"
        "thesis|phd|dissertation|album|memoir|degree|master))"
    ),
    "run": (
        r"(?:(?-i:[A-Z][a-z]+\b).*?\son\smy\s|(?:an?|my\sown|our|two|three|the\s(?:local|family|shop|kitchen|"
        rf"caf\u00e9|bar|school|\w+\sclub))\s(?!(?:\w+\s){{0,2}}(?:scripts?|tests?|query|queries|code|command|build|"
        r"risk|fever|temperature|program|loop|model|server|vm)\b)|\d+\s?(?:k|km|miles)\b|(?:half\s)?marathons\b|"
        f".*?{words.RECURRING})"
    ),
    "wear": (
        r"(?:\w+\s)?(?:glasses|contacts?|contact\slenses|hearing\saids?|size|braces|an?\s(?:size|wig|hijab|"
        r"prosthe\w+|retainer|insulin)|dentures|bifocals|a\ssize|hijab|orthotics|the\shijab|\d)"
    ),
    "use": (
        r"(?:(?:an?\s)?(?:wheelchair|crutches|cane|walker|inhaler|screen\sreader|cpap|insulin|walking\sstick|"
        r"hearing\saids?)\b|an?\s(?-i:[A-Z])|(?-i:[A-Z][\w-]+)\b.*?\b(?:at\swork|at\shome|at\sschool|for\swork|"
        r"for\smy|on\smy|and\s(?-i:[A-Z])))"
    ),
    "play": rf"(?:the\s|in\san?\s|for\s|as\s|(?:\w+\s){{0,2}}(?:{SPORT})\b)",
    "in": r"(?:in|with)\s",
    "when": rf".*?(?:{words.RECURRING}|{words.CLOCK})",
    "whom": rf"(?!{words.RECURRING}|{words.CLOCK}|by\b|at\b|in\b|on\b)\S.*?(?:{words.RECURRING}|{words.CLOCK})",
    "date": rf".*?{words.DATED}",
    "measure": (
        r"(?:about\s|around\s|exactly\s|almost\s)?\d+(?:[.,]\d+)?\s?(?:kgs?|kilos?|lbs?|pounds|stone|cm|centimet\w+|"
        r"m|met\w+|feet|ft|tons?|inches)\b"
    ),
    "money": rf".*?{words.MONEY}",
    "spend": rf"(?:.{{0,20}}){words.MONEY}",
    "take": (
        rf"(?:{_NP}{_DRUG}|.*?\sfor\smy\s(?:{ILLNESS}|{_BONE}|back|heart|thyroid|\w+\spressure|blood|skin|stomach)|"
        rf"(?:the\s)?(?:[\w:]+\s){{0,2}}(?:bus|train|tram|metro|subway|ferry|tube|lessons|"
        rf"classes)\b.*?(?:{words.RECURRING}|to\swork|{words.CLOCK})|.*?{words.RECURRING})"
    ),
    "sugar": r"(?:\w+\s)?(?:sugar|milk|cream|vaccines|elevators|lifts|the\s\w+)",
    "go": (
        rf"to\s(?!sleep\b).*?(?:{words.RECURRING})|by\s(?:bike|bus|car|train|the\sname)|to\s(?:bed|work|the\sgym|"
        rf"church|school|mosque|therapy|physio).*?(?:{words.CLOCK}|{TIME})|to\sbed\searly|"
        rf"to\s(?:\w+\s){{0,2}}(?:school|university|college|high\sschool)\b"
    ),
    "get": (
        rf"(?:up\b.*?{words.CLOCK}|up\searly|home\b.*?{words.CLOCK}|off\swork\b.*?{words.CLOCK}|paid\b(?!\stomorrow)|"
        rf"(?:bad\s|"
        r"terrible\s)?(?:migraines|hives|seasick|carsick|motion\ssick\w*|nosebleeds|headaches\sfrom|panic\sattacks|"
        r"hay\sfever|vertigo|heartburn|an?\srash\sfrom)\b|(?:an?|my)\s(?:\w+\s)?(?:massage|haircut|shot|injection|"
        rf"infusion|transfusion|delivery|bonus|allowance)\b.*?{words.RECURRING})"
    ),
    "ends": rf"(?:in|with)\s\d|.*?{TIME}",
    "clock": rf".*?(?:{words.CLOCK}|{words.DATED})",
    "sleep": rf"(?:.*?(?:{words.RECURRING}|{words.CLOCK})|with\sa\s\w+|on\smy|\d)",
    "keep": rf"(?:kosher|halal|sabbath|shabbat|shabbos|{_NP}{_PET}\b|a\s(?:diary|journal))",
    "eat": (
        r"(?:only\s|strictly\s|mostly\s)?(?:kosher|halal|vegan|vegetarian|gluten[- ]free|plant[- ]based|keto|no\s|"
        "paleo|low[- ]carb)"
    ),
    "drink": rf"(?:only\s|no\s|my\s\w+\s(?:black|with)|.*?{words.RECURRING})",
    "do": (
        r"(?:keto|paleo|intermittent\sfasting|night\sshifts|(?!not|my\sbest|it|this|that|nothing|some|every|"
        rf"the\sdeploy)\S.*?(?:{words.RECURRING}|{words.CLOCK})|(?:yoga|pilates|crossfit|judo|karate|ballet|pottery|"
        r"ceramics|boxing|bjj|triathlons?|shift\swork)\b)"
    ),
    "after": r"after\s(?:my|our|his|two|three)\s",
    "have": (
        rf"(?:{_NP}(?:{words.either(words.KIN)}|{_PET})\b|an?\s\d+[\s-](?:year|month|week)s?[\s-]old|"
        rf"an?\s(?:{words.either(words.ROLES)})\s(?:called|named|who|from|in)\b|{_NP}{ILLNESS}\b|"
        rf"{_OWN_NP}{_OWNED}\b(?!\s(?:tire|tyre|problem|issue|error|question|bug|crash|tab|call))|{_MODEL}|"
        rf"{_NP}{_EVENT}\b.*?{TIME}|.*?{words.MONEY}|{_NP}(?:citizenship|degree|phd|masters|master's|dual\s\w+|"
        rf"accent|tattoos?|blood\stype)\b|(?:\w+\s)?(?:hair|eyes)\b|{_OWN_NP}(?:daughter|son)|"
        rf".*?(?:{words.RECURRING})|{ILLNESS}|an?\s(?:fear|phobia)\sof|.*?\s(?:off)\s(?:on\s)?{words.RECURRING}|"
        rf"until\s.*?{TIME}|(?:an?\s)?size\s\d|an?\s(?:size|allergy)|(?:an?|two)\s(?!pain|ache|twinge|lump|cut|bug|splinter)(?:[\w-]+\s)"
        rf"{{1,4}}in\s(?:my|both)\s(?:left\s|right\s)?(?:{_BONE}|chest|heart|neck|back|skull|spine))"
    ),
    "need": (
        r"(?:insulin|(?:an?\s)?(?:wheelchair|step[- ]free|interpreter|subtitles|large\sprint|ground[- ]floor|"
        r"hearing|aisle\sseat\sbecause|quiet\sroom|dialysis|ramp))"
    ),
    "epipen": r"(?:an?\s)?(?:epi-?pen|inhaler|insulin)",
    "age": (
        r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
        "sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
        r"ninety)\b(?!\s(?:degrees|pages|around))"
    ),
    "got": (
        r"(?:accepted|into|promoted|laid\soff|fired|married|divorced|engaged|hired|diagnosed|my\s(?:citizenship|"
        rf"degree|visa|licen[cs]e|driving|green|phd|first)|(?:the|a|an)\s(?:\w+\s){{0,2}}(?:job|promotion|offer|"
        rf"place|position|scholarship|raise|grant|internship|visa)\b(?!\sto\s(?!the|a|my)\w)|moved\sto\s.*?{TIME}|"
        rf"{_NP}{_PET}\b|{_OWN_NP}{_OWNED}\b(?!\s(?:tyre|tire))|{_MODEL}|the\s{_OWNED}\s(?:\w+\s)?\d|an?\s(?:[a-z]+\s){{0,3}}[a-z]+\d\w*\s|"
        rf"{_NP}{ILLNESS}\b|custody|tenure|keys\b|the\skeys\b|vaccinated)"
    ),
    "left": (
        r"(?:(?:my|the|our)\s(?:\w+\s){0,2}(?:job|position|role|company|church|band|husband|wife|partner|team|firm|"
        r"army|navy|uni\w*|school|agency|startup|country|bank|hospital)\b|(?-i:[A-Z]\w+)|for\s(?-i:[A-Z]))"
    ),
    "moved": (
        r"(?:to\s(?!tears|the\snext|settings|trash|dismiss)|from\s|into\s|in\s(?:with\s|together)|out\b|back\s(?:to|in)|"
        r"house\b|here\s|over\sto|house|away|near|closer)"
    ),
    "broke": rf"(?:up\swith\s|{_NP}(?:{_BONE})\b|off\s(?:our|the|my)\sengagement)",
    "exam": r"(?!you\b|to\b|it\b|at\b|again\b|miserably\b)(?:\w+\s){0,3}\w+",
    "passed": (
        r"(?:away\b|(?:my|the|his|her)\s(?:\w+\s){0,3}(?:exam|exams|test|bar|boards|driving|probation|certification|"
        r"defen[cs]e|licen[cs]e)\b)"
    ),
    "contract": (
        r"(?:\w+\s){0,4}(?:contract|lease|offer|mortgage|papers|agreement|deal|subscription|membership|tenancy|"
        r"policy|gym|netflix|spotify)\b"
    ),
    "out": r"out\s",
    "callme": rf"(?:me|us)\s(?!{words.DAY})(?-i:[A-Z])",
    "started": (
        rf"(?:(?:an?|my)\s(?:\w+\s){{0,3}}(?:job|role|position|business|company|phd|master|masters|degree|course|"
        r"apprenticeship|internship|podcast|blog|shop|diet|therapy|treatment|chemo|medication)\b|at\s(?-i:[A-Z])|"
        rf"as\san?\s|working\s(?:at|for|as|in)|learning\s|taking\s(?:{_DRUG}|\w+\slessons)|{_DRUG}|therapy|physio|"
        "school|university|college|kindergarten|nursery|daycare|chemo|dialysis|(?:first|second|third|sixth|middle|"
        r"high|primary|secondary)\s(?:grade|school|year|class|form)|playing\s(?:the\s)?\w+)"
    ),
    "degree": (
        r"(?:my|a|his|her)\s(?:\w+\s){0,3}(?:degree|phd|master'?s|masters|bachelor'?s|thesis|training|residency|"
        r"apprenticeship|treatment|chemo\w*|studies|dissertation|internship|probation)\b|(?:school|university|"
        r"college|chemo|med\sschool|law\sschool)\b"
    ),
    "lost": (
        rf"(?:(?-i:Mum|Dad|Mom|Gran|Grandad|Grandma|Grandpa|Nan)\b(?!\sin\sthe|\sat\s)|(?:my|our|his|her)\s(?:job|{_PERSON}|hearing|sight|licen[cs]e|leg|arm|sense|voice|home|house|"
        r"eyesight)\b|\d+\s?(?:kg|kilos|pounds|lbs))"
    ),
    "swapped": r"(?:to|over\sto)\s|.*?\bfor\s(?:an?|the|my|our|(?-i:[A-Z]))",
    "switched": rf"(?:the\s.*?(?:{TIME})|to|from|my|our|jobs|careers|majors|teams|banks|schools|gyms|doctors)\b",
    "gave": r"(?:up\s(?!on\b|hope\b)|birth\b|(?:my|our)\snotice|notice\b)",
    "came": r"(?:to\s(?-i:[A-Z])|from\s(?-i:[A-Z])|out\s(?:as|to)\b|here\sfrom)",
    "grew": r"up\s",
    "had": (
        r"(?:.*?\b(?:surgery|operation|transplant|stroke|heart\sattack|miscarriage|lasik|bypass|c-section|"
        r"hysterectomy|chemo\w*|concussion|seizure|knee\sreplacement|hip\sreplacement|vasectomy)\b|(?:(?:a|our|my|"
        rf"his|her)\s(?:\w+\s){{0,2}})?(?:baby|twins|son|daughter|child|kids|boy|girl)\b|(?:my|a|his|"
        rf"her)\s(?:\w+\s){{1,2}}(?:removed|replaced|taken\sout|amputated)\b|my\s(?:\w+\s){{1,2}}out\b|"
        rf"{ILLNESS}\sas\sa|"
        r"a\s(?:\w+\s)?(?:allergic\sreaction|baby))"
    ),
    "offer": r"(?:the|an?|their)\s(?:\w+\s){0,3}(?:offer|job|position|place|role|post)\b",
    "on": r"on\s",
    "for": r".*?\bfor\s(?:an?|the|my|our|(?-i:[A-Z]))",
    "to": r"(?:to|from|with)\s",
    "with": r".*?\bwith\b",
    "until": rf".*?(?:{TIME})",
    "prize": (
        r"(?:the|a)\s(?:\w+\s){0,4}(?:prize|award|scholarship|grant|medal|championship|title|cup|lottery|"
        r"competition)\b"
    ),
    "moving": r"(?:to|into|in|out|back|house|away|offices?)\b(?!\s(?:the\snext|my\sfiles))",
    "plan": rf".*?{words.DATED}",
    "planning": rf".*?{words.DATED}",
    "getting": (
        f"(?:an?\\sdivorce|married|divorced|engaged|remarried|{_NP}(?:{_PET}|braces|surgery|tattoo|implant|operation|"
        rf"transplant)\b|.*?\b(?:removed|replaced|renovated|installed)\b|(?:an?|my|our|the)\s.*?{words.DATED})"
    ),
    "starting": (
        rf"(?:.*?{words.DATED}|at\s(?-i:[A-Z])|as\san?\s|(?:an?|my)\s(?:\w+\s){{0,2}}(?:job|role|phd|business|"
        r"company|course|degree|masters?|apprenticeship)\b|school|university|college|uni\b|kindergarten)"
    ),
    "expecting": (
        r"(?:(?:a|our|my|their|twins|triplets|another)\s?(?:\w+\s){0,2}(?:baby|child|girl|boy|kid)?\b(?!call|reply|"
        "answer|delivery|package))"
    ),
    "taking": (
        rf"(?:the\s(?:\w+\s){{0,2}}(?:offer|job|position|role)\b|an?\s(?:\w+\s){{0,3}}(?:class|course|gap\syear|"
        rf"sabbatical|leave)\b|{_NP}{_DRUG}|.*?{words.RECURRING}|\w+\s(?:lessons|classes)\b|parental\sleave|"
        rf"maternity\sleave|my\s(?:\w+\s){{0,2}}(?:exam|test)\b.*?{words.DATED}|.*?{words.DATED})"
    ),
    "doing": (
        rf"(?:(?:an?|my|his|her)\s(?:\w+\s){{0,3}}(?:degree|phd|masters?|master's|course|internship|apprenticeship|"
        r"residency|bootcamp|diploma|certificate|dissertation|mba|traineeship)\b|(?:keto|whole30|couch\sto\s5k|"
        rf"physio|therapy|dry\sjanuary|chemo\w*|ivf|intermittent\sfasting)\b|.*?{words.RECURRING})"
    ),
    "save": rf"(?:up\s)?(?:for\s|.*?{words.MONEY})",
    "writing": (
        r"(?:an?|my)\s(?:\w+\s){0,3}(?:book|novel|thesis|dissertation|memoir|phd|screenplay|musical|album|cookbook|"
        r"biography|textbook|trilogy|master)\w*\b"
    ),
    "tryto": (
        r"to\s(?:lose|gain|quit|stop|cut|save|learn|get\s(?:pregnant|fit|in\sshape|sober)|eat|conceive|become|sleep|"
        r"give\sup|"
        r"pay\soff)\b(?!\s(?:it|this|that|the|how|my)\b)"
    ),
    "building": (
        r"(?:an?|my|our)\s(?:\w+\s){0,3}(?:house|boat|kit|cabin|app|shed|treehouse|company|startup|van|guitar|robot|"
        r"extension|greenhouse|deck|studio|game|canoe)\b"
    ),
    "drive": rf"(?:{_OWN_NP}{_OWNED}\b|{_MODEL})",
    "food": rf"(?:any\s|the\s|too\smuch\s|raw\s|\w+\s)?{FOOD}\b",
    "fooddays": rf"(?:(?:any\s|the\s|\w+\s)?{FOOD}\b|(?:on\s)?{words.RECURRING})",
    "weekdays": rf"(?:on\s|at\s)?(?:{words.RECURRING})",
    "ear": r"(?:out\sof|in|on|with)\s(?:my|his|her|one)\s",
}  # fmt: skip
SECRET = Pattern(
    rf"(?i:\b(?:{words.either(words.NEVER_KEPT)}|(?:credit|debit) card|card\b[^.]{{0,30}}?(?:\d[ -]?){{13,19}}|"
    r"(?:verification|one[- ]?time|single[- ]use|(?:two|multi)[- ](?:factor|step)|back-?up|"
    r"recovery|seed|restore|reset|authenticat(?:or|ion)|authori[sz]ation|security|log-?in|sign-?in|sms|tan)\s"
    r"(?:\w+\s)?(?:codes?|phrases?|keys?|words|numbers?))\b)"
)
"""What lets someone in as the speaker. The code of a door or a locker is an everyday thing, and is kept."""
_COMPILED = {name: Pattern(rf"(?i:{body})") for name, body in PATTERNS.items()}
_AMOUNT = Pattern(
    r"(?i:(?:too\s)?(?:much|a\slot|lots|enough|another|anything|more|breakfast|lunch|dinner|today|well|very)\b)"
)


def fits(check: str, text: str, start: int, end: int) -> bool:
    """Whether what stands between two places is what the check asks for."""
    if check == "bare":
        named = thing_at(text[:end], start) is not None or text.startswith("to be called ", start)
        return named and not _AMOUNT.match(text, start, end)
    return _COMPILED[check].match(text, start, end) is not None


IS_SELF = (
    rf"(?:{words.IS_HEALTH}|(?:{words.IS_DIET}|{words.IS_FAITH}|{words.IS_STATUS})(?<![^\s]-)(?:(?<=\s)|\b)(?!-)|"
    r"(?:an?|the)\s(?:(?!bit|big|huge|good|bad|better|terrible|great|slow|non|"
    rf"former)[\w&'-]+\s){{0,3}}(?:{words.either(words.PROFESSIONS)})\b(?!['\u2019-])|"
    rf"(?:\d|1\.\d)[.,\d]*\s?(?:m|cm|ft|feet|foot(?:\s\d+)?)\b|(?:about\s|around\s)?\d+\s?(?:cm|kg)\b|"
    r"(?:not\s)?(?:(?:only|usually|always|mostly|generally|just)\s)?(?:free|available|busy|off|away|"
    r"out\sof\s(?:the\soffice|town)|reachable|at\s(?:work|the\sgym|the\soffice|school|uni)|in\s(?:class|lectures|"
    rf"the\soffice|meetings))\b.*?(?:{words.RECURRING}|{words.CLOCK}|{words.DATED}|\ball\sday)|"
    r"in\sthe\s\w+\stime\s?zone|on\s\w+\stime\b|(?:only\s)?reachable\s(?:by|on|via)\s|an?\s(?:aries|taurus|gemini|"
    r"leo|virgo|libra|scorpio|sagittarius|capricorn|aquarius|pisces)\b|on\s(?:the\s|an?\s)?(?:(?:early|late|night|"
    rf"day|morning|evening)\s)?shifts?\b.*?(?:{TIME})|on\s(?:holiday|vacation|leave|call)\b.*?(?:{TIME})|"
    rf"(?:on\sthe|up\s(?:at|by)\s\d)\s?.*?{words.RECURRING}|"
    r"(?:the|an?|one\sof|head|captain|president|treasurer|secretary|chair\w*|member|coach|owner|founder|"
    r"co-?founder)\s?(?:head|captain|president|treasurer|chair\w*|member|coach|owner|founder|co-?founder|ceo|cto|"
    r"cfo|oldest|youngest|eldest|middle|only|first|godmother|godfather|best\sman|maid\sof\shonour)?\s(?:of|at|for|"
    r"in\sour)\s|"
    rf"an?\s(?:\w+\s){{0,2}}(?:night\sowl|early\sbird|introvert|extrovert|non-?smoker|smoker|size|"
    r"native\s\w+\sspeaker|citizen|resident|type\s\w+|\w+\scitizen|refugee|immigrant|veteran|volunteer|"
    r"morning\slark|teetotaller)\b|"
    r"(?:afraid|scared|terrified|fond|a\s(?:big\s|huge\s)?fan|sick)\sof\s(?:(?!this|that|it|you|the)\w)|"
    r"(?:they|she|he|ze|xe|any)/\w{2,6}|into\s(?!this|that|it|you|him|her)\w|based\sin\s|due\s(?:in|on|around|at|before|to\sgive\sbirth)\b|(?:in|"
    r"of)\s(?:my|the)\s(?:first|second|third|fourth|fifth|final|last)\s(?:year|semester|term|trimester)|"
    rf"(?:in|at)\s(?:the\s)?(?:\w+\s)?(?:band|choir|army|navy|orchestra|book\sclub)\b)"
)
IS_OTHER = (
    rf"(?:(?:called|named)\s|(?:(?:about|almost|just|only|nearly|turning|now)\s)?(?:\d{{1,3}}|one|two|three|four|"
    "five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
    r"sixteen)(?:\s(?:and\sa\shalf)?\s?(?:years?|months?|weeks?)(?:\sold)?)?(?=\W*$|\s(?:and|now|already|this|in|"
    r"next)\b|\s(?:years?|months?|weeks?)\b)|an?\s(?=\w)|"
    r"in\s(?:first|second|third|fourth|fifth|sixth|\d+(?:st|nd|rd|th)|year|grade|kindergarten|nursery|primary|"
    rf"middle|high|hospital|the\sarmy|college)\b|visiting\b.*?{words.DATED}|(?:away|staying|coming|abroad|"
    rf"visiting)\b.*?{words.DATED}|dead\b|neutered|spayed|house-?trained|(?:\w+\s)?{_PET}\b)"
)
_LEADING = (
    "called|named|spelled|spelt|with|at|on|in|from|by|about|around|roughly|under|over|approximately|the|an?|still|"
    "now|only|max|maximum|"
    "between|up\\sto"
)
SPECIFIC = (
    rf"(?:(?:(?:{_LEADING})\s){{0,3}}(?:[$\u20ac\u00a3\x00\"\u201c]|(?-i:[A-Z\d]))|"
    rf"an?\s(?:[\w-]+\s){{1,3}}?(?-i:[A-Z\d])|"
    r"on\sthe\s\w+\sfloor|\w+/\w+)"
)
IS_THING = rf"(?:{SPECIFIC}|.*?(?:{TIME}|{words.MONEY}))"
