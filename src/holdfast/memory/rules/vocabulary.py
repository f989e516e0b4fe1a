"""The words that the rules of statements know: what a predicate is about, by verb, and the nouns each can take.

One line of a table is one kind of thing that people say of themselves; ``statements`` has the grammar. A verb stands
in its base form ("live"), in the past ("bought") or as it follows "am" ("training"). What comes after it must fit the
named check: ``any`` is anything of its own, the others are patterns below. Deliberately absent: code.
"""

from __future__ import annotations

from holdfast.when.words import FULL_MONTHS, FULL_WEEKDAYS, MONTHS


def either(words: str) -> str:
    """A pattern of alternatives, the longest first, from words with a blank between them and ``_`` inside."""
    return "|".join(word.replace("_", r"\s") for word in sorted(words.split(), key=len, reverse=True))


def each(words: str) -> frozenset[str]:
    """A set of words from words with a blank between them."""
    return frozenset(words.split())


# People and animals

KIN = (
    "wife husband spouse partner fianc\u00e9 fianc\u00e9e fiance fiancee girlfriend boyfriend gf bf hubby mother "
    "mom mum mam mama father dad daddy papa parents stepmother stepfather stepmom stepmum stepdad sister sis "
    "brother twin twins sibling siblings son sons daughter daughters child children kid kids baby toddler "
    "teenager newborn stepson stepdaughter grandmother grandma granny gran nan nana grandfather grandpa granddad "
    "grandad grandparents grandson granddaughter grandchildren grandkids grandchild aunt auntie uncle cousin "
    "cousins niece nephew nieces nephews in-laws mother-in-law father-in-law sister-in-law brother-in-law "
    "son-in-law daughter-in-law godson goddaughter godmother godfather sisters brothers family ex ex-wife "
    "ex-husband girl boy eldest youngest middle ma pa nonna nonno abuela abuelo oma opa yaya bro lad mil fil"
)
ROLES = (
    "friend friends mate buddy roommate roommates flatmate flatmates housemate neighbour neighbor neighbours "
    "neighbors boss manager supervisor mentor colleague colleagues coworker co-worker assistant landlord landlady "
    "tenant teacher tutor coach trainer professor advisor adviser instructor doctor gp dentist therapist physio "
    "surgeon cardiologist dermatologist midwife nurse vet lawyer solicitor accountant nanny babysitter cleaner "
    "gardener plumber hairdresser client business_partner co-founder cofounder team_lead cleaning_lady walker "
    "sitter minder housekeeper childminder au_pair pharmacist optician osteopath counsellor counselor "
    "psychiatrist psychologist paediatrician pediatrician consultant ex_husband ex_wife boyf bestie missus bff "
    "other_half in_laws stepkids"
)
PETS = (
    "dog dogs cat cats puppy puppies kitten kittens rabbit rabbits bunny hamster hamsters parrot parrots budgie "
    "budgies canary horse pony horses guinea_pig guinea_pigs ferret ferrets tortoise turtle gecko snake lizard "
    "fish goldfish chicken chickens hens goat goats sheep rat rats mouse greyhound beagle labrador poodle "
    "retriever spaniel terrier collie husky dachshund corgi bulldog pug shepherd pet pets donkey parakeet "
    "cockatiel llama alpaca axolotl bees"
)
BARE = (
    "mom mum mam mama dad daddy papa sis gf bf hubby grandma granny gran nan nana grandpa granddad grandad wife "
    "husband "
    "girlfriend boyfriend daughter son sister brother stepdad stepmom stepmum mother father boss landlord landlady "
    "baby kids twins roommate roomie flatmate auntie parents fianc\u00e9 fianc\u00e9e nonna nonno abuela abuelo oma opa"
)

# Things

POSSESSIONS = (
    "car van truck suv motorbike motorcycle moped scooter vespa bike bicycle e-bike ebike caravan camper campervan rv "
    "boat sailboat kayak canoe trailer tractor piano keyboard guitar violin viola cello flute drum drums drum_kit "
    "saxophone trumpet clarinet harp ukulele banjo accordion synth synthesizer camera lens drone laptop notebook "
    "macbook chromebook pc desktop computer tablet ipad phone iphone smartphone smartwatch watch kindle e-reader "
    "printer "
    "3d_printer console playstation xbox tv telescope sewing_machine loom kiln oven stove dishwasher air_fryer "
    "espresso_machine coffee_machine house flat apartment condo studio cabin cottage chalet allotment garden "
    "greenhouse "
    "balcony garage shed farm vineyard orchard pool pond hot_tub sauna fireplace wood_stove heat_pump solar_panels "
    "fish_tank aquarium "
    "terrarium tent record_player turntable tattoo tattoos piercing shop store bakery restaurant caf\u00e9 cafe "
    "business "
    "company startup podcast blog channel website newsletter season_ticket railcard pass subscription membership "
    "licence "
    "license driving_licence degree phd master's masters bachelor's diploma mortgage pension visa passport "
    "green_card citizenship "
    "storage_unit locker wheelchair collection plot unit loft boiler fridge freezer washing_machine dryer router "
    "inhaler wifi broadband nbn thermostat inverter mower lawnmower kitchen bathroom mattress"
)
EVENTS = (
    "wedding anniversary birthday party exam exams test interview appointment meeting flight train bus ferry checkup "
    "check-up surgery operation procedure replacement transplant biopsy chemo scan mri trip holiday vacation "
    "honeymoon conference concert gig recital "
    "rehearsal marathon race match tournament game deadline presentation defence defense viva graduation ceremony "
    "reunion funeral hearing trial move move-in delivery class classes course lesson lessons training practice session "
    "sessions shift shifts lecture lectures seminar choir book_club club yoga therapy due_date semester term "
    "internship "
    "contract lease tenancy visa trip probation notice retreat workshop baby_shower baptism christening launch "
    "audition "
    "driving_test standup stand-up group band visit inspection reservation booking check-in checkout check-out viewing"
)
ROUTINE = (
    "work_hours working_hours office_hours opening_hours lunch_break bedtime time_zone timezone schedule commute hours "
    "day_off days_off alarm curfew pickup school_run shift shifts shift_plan training practice rehearsal"
)
IDENTIFIED = (
    "order booking reservation confirmation reference tracking customer client account member membership policy claim "
    "ticket case invoice student employee staff patient passport flight seat room locker gate door alarm building "
    "garage "
    "bike_lock lock license licence registration plate loyalty frequent_flyer insurance library_card card_number "
    "tax vat "
    "serial contract permit visa application pnr record shipment parcel return repair rental unit parking wifi_network "
    "entry keypad safe"
)
NUMBERING = "number no id ref reference code nr num # locator plate"
NEVER_KEPT = (
    "password passwords passwd pwd passcode passphrase pin puk cvv cvc otp totp 2fa mfa token secret api_key "
    "private_key ssn social_security_number"
)
ATTRIBUTES = (
    "address email phone number name nickname surname maiden_name birthday age height weight size shoe_size ring_size "
    "waist inseam blood_type blood_group pronouns zodiac star_sign nationality budget rent salary wage income mortgage "
    "deposit hourly_rate rate fee allowance pension savings tuition job title job_title role position major degree "
    "thesis dissertation employer company team office school university desk hometown city neighbourhood "
    "neighborhood street "
    "floor postcode zip_code native_language mother_tongue first_language language religion star_sign handle username "
    "gamertag website url blog shop store podcast band car bike laptop computer phone camera guitar piano os browser "
    "editor ide bank insurer insurance doctor gym plan goal target favourite favorite hobby hobbies instrument sport "
    "diet allergy allergies medication prescription condition diagnosis disability glasses car_plate host server "
    "staging_server "
    "server_ip ip ssid network project thesis_topic topic startup business side_hustle flat house apartment room "
    "place surgery"
)

GROUPS = (
    "company firm employer office team school class college university church gym club landlord building shop "
    "store job course contract car house flat apartment garden heating village town street balcony bedroom "
    "kitchen family"
)
"""What someone belongs to, and what it does is worth keeping: "our school uses Chromebooks"."""

UNITS = each(
    "marketing sales finance accounting engineering support legal design operations product production hr it research "
    "logistics procurement management staff security plan team group phase level tier version stage room hall settings"
)
"""What may stand with a capital and is neither a person nor a place: "production moved to Plan B"."""

LIFE = (
    "mum mom dad mother father parent grandparent grandmother grandfather woman man beginner vegetarian vegan "
    "diabetic widow widower pensioner retiree teenager immigrant expat refugee veteran coeliac celiac "
    "wheelchair_user carer caregiver homeowner landlord tenant volunteer christian muslim jew hindu buddhist "
    "freshman sophomore graduate undergraduate foreigner newcomer smoker non-smoker runner cyclist gardener "
    "knitter introvert"
)
"""What someone is who says "as a …"."""

# Verbs that are in no table

NO_VERB = each(
    "a an the my our your his her their its this that these those i we you he she it they me us him them who "
    "which what when where why how if because since as so than then and or but nor for to of in on at by with "
    "from into about after before until over under up down out off again all any both each every few more most "
    "much no none not only own same some such too very just also even still yet already here there now once ago "
    "today tomorrow yesterday tonight please thanks ok okay yes yeah lol one two three four five six seven eight "
    "nine ten first second next last is am are was were be been being per via vs plus like without within during "
    "mr mrs ms dr prof against among towards between though although while unless except else ever never "
    "almost nearly gotta gonna wanna lemme imma sometimes often well back away"
)
PAST = each(
    "was were had did went got came saw took made gave found told felt left kept began lost met paid sat stood "
    "understood wrote drove flew rode ran sang spoke swam wore broke chose drew fell forgot froze grew knew threw "
    "woke won bought brought built caught cut fought heard held hid hit hurt led lent let meant put quit read "
    "sent set shot shut slept sold spent stole stuck taught thought tore wrote slid swore bit blew ate drank spun "
    "laid said dreamt learnt lit bent dealt dug fed hung been done gone seen taken given written driven flown "
    "spoken worn known thrown"
)
THINKING = each(
    "think guess know believe suppose assume wonder hope wish want need feel mean understand agree doubt bet "
    "swear promise remember forget realise realize reckon imagine recall appreciate apologise apologize thank "
    "mind matter seem sound say tell ask claim admit confess argue disagree consider intend expect insist suggest "
    "recommend propose figure decide deserve plan aim beg dare fear regret worry care trust prove mention refer "
    "notice worked miss struggle wanna request require concur acknowledge confirm deny declare answer live end "
    "dream treasure cherish value stress rest"
)
"""What these say holds of a moment or of a thought: they never tell a habit."""
THINKING_DONE = each(
    "thought felt said told asked meant knew guessed forgot decided wanted needed seen heard found tried made got"
)
LIGHT = each(
    "get go come take make give keep put do bring let try start begin stop finish use turn look see hear find "
    "leave call send show set add change check open close click press type enter run install build compile deploy "
    "test load save select paste copy upload download import export submit create write read move buy order pay "
    "eat drink cook sleep fall wait stay sit stand talk walk cry laugh smile hold hit lose break cut end happen "
    "work continue receive return update print count follow meet spend help fix solve face share play watch "
    "listen wear drop pick push pull throw catch fetch quit fail pass win choose switch attach include calculate "
    "compute define apply connect lack implement handle log store represent provide present approach base "
    "experience notice hang"
)
"""What these do may be done once: they tell a habit only where the clause says how often."""
FAILING = each(
    "work leak crash throw hurt itch ache die ring smell drip freeze squeak rattle stink lag glitch shake vibrate "
    "stall squeal beep blink flicker overheat fog rust"
)
TASTES = each("like love hate enjoy prefer adore live need dislike detest")
STRICT = each(
    "stay support follow share run use drive own rent ride train react carry suffer work study take skip avoid bank"
)
"""What follows these decides, and the tables below say what it must be."""
ABLE = each(
    "drive swim eat drink walk climb cycle ride bend kneel cook dance sing taste digest tolerate handle wear lift "
    "carry fly afford do have speak smell"
)
"""What someone who cannot do it will not be able to do tomorrow either."""
IS_KEPT = (
    "dishwasher freezer microwave washing_machine dryer lift elevator internet wifi parking driveway kids siblings"
)

# Health

CONDITIONS = (
    "asthma diabetes arthritis migraine migraines eczema psoriasis epilepsy anemia anaemia adhd add autism ocd ptsd "
    "depression anxiety bipolar dyslexia dyscalculia dyspraxia tinnitus vertigo celiac coeliac crohn's ibs colitis "
    "lupus ms "
    "parkinson's alzheimer's dementia cancer leukemia lymphoma melanoma scoliosis sciatica fibromyalgia endometriosis "
    "pcos hypothyroidism hyperthyroidism thyroid_problems hypertension high_blood_pressure low_blood_pressure "
    "high_cholesterol heart_condition heart_disease heart_murmur arrhythmia pacemaker stent kidney_stones gout "
    "osteoporosis insomnia sleep_apnea sleep_apnoea narcolepsy rosacea hay_fever allergy allergies intolerance phobia "
    "disability syndrome disorder disease hiv hepatitis glaucoma cataracts astigmatism colour_blindness hearing_loss "
    "hearing_aid hearing_aids cochlear_implant prosthetic prosthesis braces retainer bad_back bad_knee bad_knees "
    "bad_hip "
    "bad_shoulder herniated_disc slipped_disc carpal_tunnel rsi tendonitis implant insulin_pump g6pd hemophilia "
    "haemophilia anaphylaxis parkinsons alzheimers crohns laminitis panic_attacks reflux gerd hernia acne "
    "vitiligo raynaud's long_covid epipen aphantasia"
)
IS_HEALTH = (
    r"(?:\w+ly\s)?(?:allergic|intolerant|sensitive)\sto|(?:pre-?|type\s[12]\s)?diabetic|asthmatic|(?:partially\s|legally\s)?(?:blind|"
    r"deaf)(?!\sto\b)|"
    r"hard\sof\shearing|colou?r[- ]?blind|left[- ]handed|pregnant|autistic|dyslexic|epileptic|an[a]?emic|bipolar|"
    r"neurodivergent|(?:\w+\s)?intolerant|c(?:o)?eliac|hypoglyc[a]?emic|near-?sighted|short-?sighted|far-?sighted|"
    r"(?:an?\s)?(?:recovering\s)?(?:alcoholic|wheelchair\suser)|in\sremission|in\sa\swheelchair|"
    r"on\s(?:blood\sthinners|insulin|antidepressants|beta\sblockers|statins|the\spill|dialysis|chemo\w*|\w+(?:pril|ine|"
    r"ol|in|am|ate|one|ide|fen|xin))\b(?!\w)|off\ssick|on\ssick\sleave|(?:\w+\s)?(?:weeks|months)\spregnant|"
    r"claustrophobic|agoraphobic|immunocompromised|wheelchair[- ]bound|"
    r"(?:diagnosed\swith|recovering\sfrom|waiting\sfor\sa\s\w+\s(?:transplant|surgery|operation))"
)
IS_DIET = (
    "(?:an?\\s)?(?:strict\\s|mostly\\s)?(?:vegetarians?|vegans?|pescatarian|pescetarian|flexitarian|teetotal(?:l?er)?|"
    "gluten[- ]free|lactose[- ]intolerant|dairy[- ]free|kosher|halal|keto)|"
    "off\\s(?:dairy|gluten|sugar|alcohol|meat)|on\\s(?:a\\s)?(?:keto|paleo|low[- ]\\w+|\\w+[- ]free|"
    "fodmap|vegan|liquid|carnivore|mediterranean)\\b"
)
IS_FAITH = (
    "(?:an?\\s)?(?:\\w+ing\\s)?(?:muslim|jewish|hindu|buddhist|sikh|catholic|christian|protestant|orthodox|mormon|"
    "quaker|atheist)"
)
IS_STATUS = (
    r"(?:happily\s|recently\s|newly\s|legally\s)?(?:married(?!\sto\s(?:my|the|our)\s)|divorced|widowed|separated|"
    "engaged|remarried)|retired|"
    r"self[- ]employed|unemployed|freelanc\w+|between\sjobs|on\s(?:maternity|paternity|parental|"
    r"sabbatical)(?:\sleave)?|"
    r"an?\s(?:widow|widower|single\s(?:mom|mum|mother|dad|father|parent)|stay-at-home\s\w+|only\schild|orphan)|"
    r"(?:an?\s)?(?:identical\s|fraternal\s)?twins?|trans|non-binary|gay|lesbian|bisexual|adopted|fluent\sin\b|"
    "bilingual|trilingual|"
    r"laid\soff|made\sredundant|promoted\sto|hired\s(?:by|at|as)|accepted\s(?:at|to|into)|elected|"
    r"born\s(?:in\s(?-i:[A-Z]|\d|the\s[A-Z])|on\s|last\s|and\sraised)|raised\s(?:in|by|on)|"
    r"named\safter|buried|expecting|enrolled|employed|based\sin|stationed|originally\sfrom|from\s(?:the\s)?(?-i:[A-Z])|"
    r"(?:allowed|supposed)\sto\swork\sonly"
)
PROFESSIONS = (
    "accountant actor actress analyst anaesthetist apprentice architect artist baker barista biologist bookkeeper "
    "butcher captain carpenter chef chemist cleaner consultant cook dentist designer developer director doctor "
    "driver economist editor electrician engineer farmer firefighter florist gardener geologist gp hairdresser "
    "historian intern journalist judge lawyer lecturer librarian manager mechanic midwife musician nanny nurse "
    "optician painter paralegal paramedic pharmacist photographer physicist physio physiotherapist pilot plumber "
    "postdoc programmer professor psychologist recruiter researcher sailor scientist secretary singer soldier "
    "student surgeon surveyor teacher technician therapist trainee translator tutor vet veterinarian waiter "
    "waitress welder writer beekeeper bartender freelancer contractor cashier courier clerk policeman policewoman "
    "police_officer social_worker tailor potter trainer tattooist illustrator animator producer undertaker "
    "referee assistant caretaker janitor dietitian coach realtor physician salesman osteopath decorator joiner "
    "roofer mason seamstress barber"
)

# Predicates: verb, what it is about, and what must follow

DOES = {
    "live": ("place", "live"), "stay": ("place", "person"), "reside": ("place", "any"), "work": ("work", "work"),
    "study": ("work", "any"), "teach": ("work", "any"), "major": ("work", "any"), "intern": ("work", "any"),
    "freelance": ("work", "maybe"), "manage": ("work", "thing"), "run": ("work", "run"),
    "own": ("possession", "thing"), "rent": ("possession", "thing"), "lease": ("possession", "thing"),
    "drive": ("possession", "drives"), "ride": ("possession", "thing"), "wear": ("health", "wear"),
    "use": ("possession", "use"), "play": ("likes", "play"), "speak": ("person", "any"), "sing": ("likes", "in"),
    "coach": ("work", "any"), "volunteer": ("work", "any"), "train": ("routine", "when"), "swim": ("routine", "when"),
    "jog": ("routine", "when"), "cycle": ("routine", "when"), "commute": ("routine", "any"),
    "collect": ("likes", "bare"), "breed": ("likes", "any"), "grow": ("likes", "bare"), "weigh": ("health", "measure"),
    "earn": ("money", "sum"), "make": ("money", "money"), "owe": ("money", "sum"), "pay": ("money", "sum"),
    "spend": ("money", "spend"), "save": ("money", "money"), "cost": ("money", "money"), "take": ("health", "take"),
    "fast": ("person", "maybe"), "pray": ("person", "maybe"), "observe": ("person", "any"),
    "celebrate": ("person", "any"), "belong": ("person", "any"), "attend": ("routine", "any"), "go": ("routine", "go"),
    "practise": ("routine", "any"), "practice": ("routine", "any"), "identify": ("person", "any"),
    "camp": ("routine", "when"), "wake": ("routine", "clock"), "get": ("routine", "get"),
    "start": ("routine", "clock"), "finish": ("routine", "clock"), "begin": ("routine", "clock"),
    "end": ("routine", "ends"), "leave": ("routine", "clock"), "sleep": ("routine", "sleep"),
    "share": ("place", "any"), "suffer": ("health", "any"), "support": ("likes", "name"), "follow": ("likes", "name"),
    "keep": ("possession", "keep"), "eat": ("diet", "eat"), "avoid": ("diet", "bare"), "skip": ("diet", "bare"),
    "do": ("routine", "do"), "meet": ("routine", "when"), "care": ("family", "person"), "look": ("family", "after"),
    "cook": ("routine", "when"), "have": ("", "have"), "need": ("health", "need"), "carry": ("health", "epipen"),
    "react": ("health", "any"), "bank": ("money", "any"), "expire": ("identifier", "any"),
    "run out": ("identifier", "any"), "love": ("likes", "bare"), "hate": ("likes", "bare"), "like": ("likes", "bare"),
    "enjoy": ("likes", "bare"), "prefer": ("likes", "bare"), "adore": ("likes", "bare"), "dislike": ("likes", "bare"),
    "detest": ("likes", "bare"), "pick": ("routine", "whom"), "drop": ("routine", "whom"), "fly": ("plan", "date"),
    "travel": ("plan", "date"), "arrive": ("plan", "date"), "land": ("plan", "date"), "move": ("plan", "date"),
    "turn": ("family", "age"), "graduate": ("plan", "date"), "retire": ("plan", "date"), "visit": ("routine", "whom"),
    "babysit": ("routine", "when"), "host": ("routine", "whom"), "drink": ("diet", "drink"),
    "smoke": ("health", "maybe"), "measure": ("health", "measure"), "close": ("routine", "clock"),
    "open": ("routine", "clock"), "depart": ("plan", "date"), "marry": ("plan", "date"), "specialise": ("work", "any"),
    "specialize": ("work", "any"), "brew": ("likes", "bare"), "bake": ("likes", "when"), "knit": ("likes", "maybe"),
    "call": ("person", "callme"),
    "report": ("work", "person"), "lead": ("work", "thing"), "read": ("likes", "when"),
}  # fmt: skip

DID = {
    "got": ("change", "got"), "adopted": ("family", "any"), "bought": ("possession", "thing"),
    "sold": ("possession", "thing"), "inherited": ("possession", "any"), "quit": ("change", "any"),
    "joined": ("change", "joined"), "left": ("change", "left"), "moved": ("place", "moved"),
    "relocated": ("place", "any"), "broke": ("health", "broke"), "fractured": ("health", "any"),
    "tore": ("health", "any"), "sprained": ("health", "any"), "failed": ("work", "exam"), "passed": ("work", "passed"),
    "graduated": ("work", "maybe"), "turned": ("person", "age"), "signed": ("decision", "contract"),
    "dropped": ("change", "out"), "started": ("change", "started"), "finished": ("work", "degree"),
    "lost": ("change", "lost"), "named": ("family", "any"), "switched": ("change", "switched"),
    "retired": ("work", "maybe"), "married": ("family", "any"), "gave": ("change", "gave"),
    "stopped": ("change", "any"), "founded": ("work", "any"), "enrolled": ("work", "any"), "became": ("change", "any"),
    "came": ("place", "came"), "grew": ("place", "grew"), "died": ("family", "maybe"), "retook": ("work", "any"),
    "booked": ("plan", "date"), "rescheduled": ("plan", "any"), "proposed": ("family", "maybe"),
    "divorced": ("family", "maybe"), "separated": ("family", "maybe"), "rented": ("possession", "thing"),
    "leased": ("possession", "thing"), "had": ("health", "had"), "emigrated": ("place", "any"),
    "immigrated": ("place", "any"), "accepted": ("decision", "offer"), "settled": ("decision", "on"),
    "resigned": ("change", "maybe"), "traded": ("possession", "for"), "swapped": ("change", "swapped"),
    "studied": ("work", "any"), "served": ("work", "in"), "cancelled": ("change", "contract"),
    "canceled": ("change", "contract"), "opened": ("work", "thing"), "converted": ("person", "to"),
    "upgraded": ("possession", "to"), "donated": ("possession", "thing"), "crashed": ("possession", "thing"),
    "handed": ("change", "notice"), "went": ("change", "went"),
    "worked": ("work", "until"), "won": ("change", "prize"), "ordered": ("possession", "thing"),
    "published": ("work", "thing"), "replaced": ("possession", "with"), "postponed": ("plan", "any"),
    "cut": ("diet", "out"), "changed": ("change", "none"),
}  # fmt: skip
DROPPING = (
    "got adopted bought sold broke moved joined lost failed passed turned signed dropped switched became booked "
    "started inherited relocated rented gave accepted handed had finished grew swapped decided lived taught "
    "worked served cancelled upgraded"
)
"""Verbs whose subject people leave out: "got a puppy". Most others could be an order: "quit the app"."""
PARTICIPLES = {
    "begun": "began", "chosen": "chose", "broken": "broke", "grown": "grew", "given": "gave", "gotten": "got",
    "torn": "tore", "gone": "went",
}  # fmt: skip

DOING = {
    "living": ("place", "live"), "working": ("work", "working"), "studying": ("work", "any"),
    "teaching": ("work", "any"), "renting": ("possession", "any"), "learning": ("work", "learn"),
    "training": ("plan", "for"), "saving": ("money", "save"), "taking": ("decision", "taking"),
    "doing": ("routine", "doing"), "moving": ("plan", "moving"), "flying": ("plan", "plan"), "going": ("plan", "plan"),
    "travelling": ("plan", "plan"), "traveling": ("plan", "plan"), "visiting": ("plan", "plan"),
    "getting": ("plan", "getting"), "starting": ("plan", "starting"), "donating": ("plan", "any"),
    "expecting": ("family", "expecting"), "leaving": ("plan", "plan"), "quitting": ("plan", "any"),
    "retiring": ("plan", "any"), "writing": ("work", "writing"), "building": ("work", "building"),
    "renovating": ("work", "any"), "launching": ("plan", "plan"), "opening": ("plan", "thing"),
    "hosting": ("plan", "plan"), "running": ("plan", "run"), "paying": ("money", "money"),
    "planning": ("plan", "planning"), "dating": ("family", "any"), "seeing": ("health", "person"),
    "fostering": ("family", "any"), "raising": ("family", "any"), "sharing": ("place", "any"),
    "commuting": ("routine", "any"), "recovering": ("health", "any"), "selling": ("plan", "thing"),
    "buying": ("plan", "thing"), "majoring": ("work", "any"), "interning": ("work", "any"),
    "volunteering": ("work", "any"), "marrying": ("plan", "any"), "graduating": ("plan", "plan"),
    "teething": ("family", "maybe"), "adopting": ("family", "any"), "switching": ("plan", "to"),
    "restoring": ("work", "any"), "turning": ("family", "age"), "coming": ("plan", "plan"),
    "staying": ("plan", "plan"), "arriving": ("plan", "plan"), "applying": ("plan", "to"),
    "allergic": ("health", "to"), "staring": ("", "none"), "breastfeeding": ("health", "maybe"),
    "undergoing": ("health", "any"), "using": ("possession", "use"), "driving": ("possession", "drive"),
    "playing": ("likes", "play"), "emigrating": ("plan", "any"), "trying": ("plan", "tryto"),
}  # fmt: skip
NEVER_DOES = {
    "eat": ("diet", "bare"), "drink": ("diet", "bare"), "smoke": ("health", "maybe"), "drive": ("person", "maybe"),
    "like": ("likes", "bare"), "speak": ("person", "name"), "tolerate": ("health", "bare"),
    "celebrate": ("person", "any"), "stand": ("likes", "bare"), "swim": ("person", "only"), "have": ("diet", "food"),
    "do": ("diet", "fooddays"), "digest": ("diet", "bare"), "work": ("routine", "weekdays"), "fly": ("likes", "only"),
    "read": ("person", "name"), "take": ("diet", "sugar"), "hear": ("health", "ear"), "see": ("health", "ear"),
    "use": ("likes", "name"), "touch": ("diet", "food"), "lift": ("health", "any"), "teach": ("routine", "weekdays"),
    "kneel": ("health", "maybe"), "eat out": ("diet", "any"), "spend": ("money", "spend"), "pay": ("money", "spend"),
    "afford": ("money", "spend"),
}  # fmt: skip
FOODS = (
    "meat pork beef chicken lamb fish seafood shellfish shrimp prawns dairy milk cheese lactose eggs gluten wheat "
    "bread sugar "
    "sweets caffeine coffee alcohol wine beer nuts peanuts soy soya onions garlic mushrooms tomatoes spicy spice honey "
    "red_meat carbs butter cream coriander cilantro nightshades fructose aspartame grapefruit aspirin ibuprofen "
    "penicillin "
    "latex sesame mustard kiwi mango bananas strawberries"
)
LANGUAGES = (
    "english spanish french german italian dutch portuguese chinese mandarin cantonese japanese korean russian arabic "
    "hindi tamil urdu bengali polish czech turkish greek swedish norwegian danish finnish hungarian romanian ukrainian "
    "hebrew thai vietnamese swahili farsi persian catalan welsh irish punjabi tagalog esperanto latin"
)

# What may follow a verb

MONEY = (
    r"(?:[$\u20ac\u00a3]\s?\d[\d.,]*\s?(?:k|m|million)?\b|\d[\d.,]*\s?k?\s?(?:[$\u20ac\u00a3]|dollars?|euros?|"
    "pounds?|quid|bucks|francs?|"
    r"kroner|kronor|rupees|yen|pesos|zloty|usd|eur|gbp|chf|grand|k\b|cents?)|\d[\d.,]*\s(?:a|an|per|each|"
    r"every)\s(?:hour|day|week|month|year|"
    r"night|term|lesson|session|person|head))"
)
DAY = rf"(?:{'|'.join(FULL_WEEKDAYS)}|mon|tues?|wed|thur?s?|fri|sat|sun)"
MONTHLY = rf"(?:{'|'.join(FULL_MONTHS)}|{'|'.join(MONTHS)}|sept)"
RECURRING = (
    rf"(?:\b(?:every|each)\s(?!time\b|one\b|single\b|word\b|line\b)|\b{DAY}s\b|\bweekdays\b|\bweekends\b|\bdaily\b|"
    r"\bweekly\b|\bmonthly\b|\byearly\b|\bnightly\b|"
    r"\b(?:once|twice|\w+\stimes)\s(?:a|per)\s\w+|\balways\b|\busually\b|\bin\sthe\s(?:mornings?|evenings?|"
    r"afternoons?)\b|\bat\snight\b|"
    r"\bmornings\b|\bevenings\b|\bafternoons\b|\bnights\b|\ball\s(?:year|summer|winter)\b|\bbefore\sbreakfast\b|"
    r"\bmost\s\w+s\b|"
    rf"\b{DAY}\s?(?:-|to|\u2013|through|and|\+|&)\s?{DAY}\b)"
)
CLOCK = (
    r"(?:\b\d{1,2}(?::\d\d)?\s?(?:am|pm|a\.m|p\.m|o'clock)\b|\b\d{1,2}:\d\d\b|\b(?:at|after|before|until|till|til|"
    r"from|by|around|past)\s\d{1,2}\b(?!\s?(?:%|euro|dollar|kilo|percent|year|month|week|day|minute|people|page))|"
    r"\b(?:noon|midnight|sunrise|dawn)\b|\bhalf\spast\b)"
)
DATED = (
    rf"(?:\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{MONTHLY}\b|\b{MONTHLY}\.?\s\d{{1,4}}|\b(?:in|on|next|this|last|"
    "until|till|by|since|from|mid|late|early|of)"
    rf"[\s-](?:the\s)?(?:{MONTHLY}|{DAY})\b|\b(?:on|till|until|by|from|before|after|for|to)\sthe\s\d{{1,2}}(?:st|nd|rd|"
    rf"th)\b|\b20\d\d\b|\b19\d\d\b|\b\d{{4}}-\d\d-\d\d\b|"
    r"\b\d{1,2}[./]\d{1,2}\b|\b(?:next|this|last)\s(?:week|month|year|spring|summer|autumn|fall|winter|weekend|"
    r"semester|term)\b|"
    r"\bin\s(?:the\s)?(?:spring|summer|autumn|fall|winter|week\s\d+|(?:two|three|four|five|six|a\sfew|"
    r"\d+)\s(?:weeks|months|years))\b|\btomorrow\b|\bchristmas\b|\beaster\b)"
)
