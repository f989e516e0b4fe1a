"""Extraction by rules, over sentences written for it: a table for each rule, tricky ones, and the whole.

A line is a sentence and what it says as (key or relation, value); the value is the object of a link, or else words of
the text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.errors import NotFound
from holdfast.memory import rules
from holdfast.memory.extraction import Extraction
from holdfast.memory.rules import complements, vocabulary
from holdfast.records import EntryRef

TIME = datetime(2023, 9, 13, 15, 0, tzinfo=UTC)  # a Wednesday

Facts = list[tuple[str | None, str]]

SAID: dict[str, list[tuple[str, Facts]]] = {
    "name": [
        ("My name is Ana.", [("name", "Ana")]),
        ("my name's Ana Lopez and I need help", [("name", "Ana Lopez")]),
        ("Hello! My full name is Maria de la Cruz.", [("name", "Maria de la Cruz")]),
        ("No, my name is Anna.", [("name", "Anna")]),
        ("My name is 山田太郎", [("name", "山田太郎")]),
        ("My name is Zoë O'Neill.", [("name", "Zoë O'Neill")]),
    ],
    "nickname": [
        ("Please call me Bob.", [("called", "Bob")]),
        ("Everyone calls me Teddy", [("called", "Teddy")]),
        ("I go by Sam.", [("called", "Sam")]),
        ("My nickname is Ace.", [("called", "Ace")]),
    ],
    "introduction": [
        ("Hi, I'm Ana!", [("name", "Ana")]),
        ("I'm Tobias.", [("name", "Tobias")]),
        ("Hey there, I am Priya Nair, nice to meet you", [("name", "Priya Nair")]),
        ("Hello, this is Jonas from accounting", [("name", "Jonas")]),
    ],
    "email": [
        ("My email is ana@example.org.", [("email", "ana@example.org")]),
        ("My work e-mail address is a.b+c@mail.example.co.uk", [("email", "a.b+c@mail.example.co.uk")]),
        ("You can reach me at ana@example.org", [("email", "ana@example.org")]),
        ("my email: ana@example.org", [("email", "ana@example.org")]),
    ],
    "phone": [
        ("My phone number is +44 20 7946 0958.", [("phone", "+44 20 7946 0958")]),
        ("You can call me at 555-012-3456", [("phone", "555-012-3456")]),
        ("my mobile is 0151 23456789", [("phone", "0151 23456789")]),
    ],
    "home": [
        ("I live in Berlin.", [("home", "Berlin")]),
        ("I currently live in New York City with my cat", [("home", "New York City")]),
        ("I'm based in Portland, Oregon.", [("home", "Portland, Oregon")]),
        ("We live in the Netherlands", [("home", "the Netherlands")]),
        ("I've lived in Rio de Janeiro since 2019.", [("home", "Rio de Janeiro")]),
        ("Actually, I live in Bonn.", [("home", "Bonn")]),
        ("I am now living in Oslo, and it is cold.", [("home", "Oslo")]),
        ("I'm 28 and living in Ghent", [("home", "Ghent"), ("age", "28")]),
        ("I don't live alone, but I live in Graz.", [("home", "Graz")]),
        ("I live in Berlin, what can I do on a rainy day?", [("home", "Berlin")]),
        ("I used to live in Paris but now I live in Ulm", [("home", "Ulm"), (None, "used to live in Paris")]),
    ],
    "move": [
        ("I moved to Berlin last month.", [("home", "Berlin"), (None, "I moved to Berlin")]),
        ("I just moved from Paris to Lyon.", [("home", "Lyon")]),
        ("We've moved back to Madrid", [("home", "Madrid")]),
        ("I recently relocated to Austin", [("home", "Austin")]),
        ("I have moved to Braga, please send the kettle there", [("home", "Braga")]),
        ("I moved to Tallinn with my girlfriend", [("home", "Tallinn")]),
        ("I moved to Austin, Texas", [("home", "Austin, Texas")]),
        ("Actually we moved to Zwolle in May", [("home", "Zwolle"), (None, "we moved to Zwolle in May")]),
    ],
    "origin": [
        ("I'm from Porto.", [("origin", "Porto")]),
        ("I grew up in Kansas.", [("origin", "Kansas")]),
        ("I was born in Lagos", [("origin", "Lagos")]),
        ("I come from the Faroe Islands", [("origin", "the Faroe Islands")]),
    ],
    "left home": [
        ("I no longer live in Berlin.", [("home", "Berlin")]),
        ("I don't live in Berlin anymore", [("home", "Berlin")]),
    ],
    "their home": [
        ("Lena lives in Oslo.", [("home", "Oslo")]),
        ("My sister Lena now lives in Oslo", [("home", "Oslo"), ("sister", "Lena")]),
        ("Tom Baker moved to Chicago", [("home", "Chicago")]),
        ("Ilse's moved to Ptuj", [("home", "Ptuj")]),
        ("Ilse moved to Ptuj in May", [("home", "Ptuj")]),
    ],
    "employer": [
        ("I work at Siemens.", [("employer", "Siemens")]),
        ("I work for the Red Cross", [("employer", "the Red Cross")]),
        ("I'm employed by Deutsche Bahn", [("employer", "Deutsche Bahn")]),
        ("I've been working at Acme since 2019", [("employer", "Acme")]),
        ("As of June 2022, I work at Initech.", [("employer", "Initech")]),
    ],
    "new employer": [
        ("I joined Globex as an intern", [("employer", "Globex")]),
        ("I joined Globex last year as a tester", [("employer", "Globex"), (None, "I joined Globex last year")]),
        ("I joined Globex, a small firm in Leeds", [("employer", "Globex")]),
        ("I got a job at Hooli!", [("employer", "Hooli")]),
        ("I started working at Umbrella", [("employer", "Umbrella")]),
    ],
    "left employer": [
        ("I no longer work at Siemens.", [("employer", "Siemens")]),
        ("I quit my job at Hooli", [("employer", "Hooli")]),
        ("I don't work for Acme anymore", [("employer", "Acme")]),
    ],
    "job": [
        ("I work as a nurse.", [("job", "nurse")]),
        ("I work as a data scientist at Acme", [("job", "data scientist"), ("employer", "Acme")]),
        ("My job is teaching maths", [("job", "teaching maths")]),
        ("I'm working as an interpreter right now", [("job", "interpreter")]),
    ],
    "profession": [
        ("I'm a software engineer.", [("job", "software engineer")]),
        ("I am a high school teacher at Lincoln High", [("job", "high school teacher"), ("employer", "Lincoln High")]),
        ("I'm an architect and I love it", [("job", "architect")]),
        ("I'm Noor, a 44-year-old glass artist.", [("job", "glass artist"), ("age", "44"), ("name", "Noor")]),
    ],
    "studies": [
        ("I study law at Oxford.", [("studies", "Oxford")]),
        ("I'm studying computer science at MIT", [("studies", "MIT")]),
    ],
    "their work": [
        ("Lena works at Siemens.", [("employer", "Siemens")]),
        ("My brother Max works as a pilot", [("job", "pilot"), ("brother", "Max")]),
    ],
    "relative": [
        ("My wife Lena loves tea.", [("wife", "Lena"), (None, "wife Lena loves tea")]),
        ("My wife, Lena, is a doctor.", [("wife", "Lena"), (None, "wife Lena is a doctor")]),
        ("my dog is called Rex", [("dog", "Rex")]),
        ("My vet is Dr. de Boer", [("vet", "Dr. de Boer")]),
        ("My older brother's name is Paul", [("brother", "Paul")]),
        ("I have a cat named Misha.", [("cat", "Misha")]),
        ("My boss is Carla Jones", [("boss", "Carla Jones")]),
        ("I went out with my best friend Noor.", [("best friend", "Noor")]),
        ("We had dinner at my uncle Ben's place", [("uncle", "Ben")]),
    ],
    "relative after": [
        ("Lena is my sister.", [("sister", "Lena")]),
        ("Dr. van Dam is my vet", [("vet", "van Dam")]),
        ("Bo van der Beek is my coach", [("coach", "Bo van der Beek")]),
        ("Dr. Amir Khan is my dentist", [("dentist", "Amir Khan")]),
    ],
    "married": [("I'm married to Lena.", [("spouse", "Lena")]), ("I am engaged to Tomas", [("fiancé", "Tomas")])],
    "relatives": [
        ("My kids are Tom and Max.", [("kid", "Tom"), ("kid", "Max")]),
        ("I have two sons, Tom and Max.", [("son", "Tom"), ("son", "Max"), ("count:sons", "two sons")]),
        (
            "We've got three kids: Nel, who's 9, little Siem and Bo",
            [("count:children", "three kids"), ("kid", "Nel"), ("kid", "Siem"), ("kid", "Bo"), (None, "kid Nel is 9")],
        ),
        ("My sons are Tom (4 months) and Max", [("son", "Tom"), ("son", "Max"), (None, "son Tom is 4 months")]),
        ("Our cats are called Luna, Nero and Pip", [("cat", "Luna"), ("cat", "Nero"), ("cat", "Pip")]),
    ],
    "likes": [
        ("I like sushi.", [("likes:sushi", "sushi")]),
        ("I really love hiking in the mountains", [("likes:hiking in the mountains", "hiking in the mountains")]),
        ("I prefer tea over coffee", [("likes:tea", "tea")]),
        ("I prefer trains to planes.", [("likes:trains", "trains")]),
        ("I'm a big fan of jazz", [("likes:jazz", "jazz")]),
        ("I enjoy figs, rum and tea.", [("likes:figs", "figs"), ("likes:rum", "rum"), ("likes:tea", "tea")]),
        ("I don't like tea but I love coffee", [("likes:tea", "tea"), ("likes:coffee", "coffee")]),
        ("i love the Beatles", [("likes:beatles", "the Beatles")]),
    ],
    "dislikes": [
        ("I hate sushi.", [("likes:sushi", "sushi")]),
        ("I can't stand loud music", [("likes:loud music", "loud music")]),
        ("I don't like mushrooms or olives", [("likes:mushrooms", "mushrooms"), ("likes:olives", "olives")]),
        ("I'm not a fan of horror films", [("likes:horror films", "horror films")]),
        ("I really dislike small talk", [("likes:small talk", "small talk")]),
    ],
    "no longer likes": [("I no longer like coffee.", [("likes:coffee", "coffee")]),
        ("I've gone off beetroot", [("likes:beetroot", "beetroot")]),
    ],
    "favourite": [
        ("My favourite colour is blue.", [("favourite:colour", "blue")]),
        ("my favorite ice cream flavor is pistachio", [("favourite:ice cream flavor", "pistachio")]),
        ("Dune is my favourite book.", [("favourite:book", "Dune")]),
    ],
    "allergy": [
        ("I'm allergic to peanuts.", [("allergy:peanuts", "peanuts")]),
        ("I am severely allergic to cats and dogs", [("allergy:cats", "cats"), ("allergy:dogs", "dogs")]),
        ("I have a severe nut allergy", [("allergy:nut", "nut")]),
    ],
    "diet": [
        ("I'm vegetarian.", [("diet", "vegetarian")]),
        ("I am a strict vegan", [("diet", "vegan")]),
        ("I went vegan in 2021", [("diet", "vegan"), (None, "I went vegan")]),
        ("I'm no longer vegan.", [("diet", "vegan")]),
    ],
    "avoids": [
        ("I don't eat pork.", [("eats:pork", "pork")]),
        ("I never drink alcohol", [("eats:alcohol", "alcohol")]),
    ],
    "instruction": [
        ("Always answer in French.", [(None, "Always answer in French")]),
        ("Please never use emojis.", [(None, "never use emojis")]),
        ("From now on, write short replies", [(None, "From now on, write short replies")]),
        ("Whenever I ask about dates, use ISO format.", [(None, "Whenever I ask about dates, use ISO format")]),
        ("Please answer in German", [(None, "answer in German")]),
        ("I want you to always cite sources when I ask about medicine", [(None, "always cite sources")]),
    ],
    "birthday": [
        ("My birthday is 8 May.", [("birthday", "8 May")]),
        ("my gran's birthday is 3 May, mine is 8 June", [(None, "gran's birthday is 3 May"), ("birthday", "8 June")]),
        ("My birthday is on March 3rd", [("birthday", "3 March")]),
        ("I was born on 12 July 1990", [("birthday", "12 July 1990")]),
        ("I was born in 1990.", [("birth_year", "1990")]),
    ],
    "anniversary": [("Our wedding anniversary is on June 3.", [("anniversary", "3 June")])],
    "planned": [
        ("I have a flight on 8 May.", [(None, "2024-05-08")]),
        ("I'm flying to Rome on Friday", [(None, "2023-09-15")]),
        ("My dentist appointment is tomorrow at 3 pm.", [(None, "2023-09-14")]),
        ("We'll visit my parents next weekend", [(None, "2023-09-23 to 2023-09-24")]),
    ],
    "happened": [
        ("I met Lena last Friday.", [(None, "2023-09-08")]),
        ("Yesterday we went to Rye!", [(None, "2023-09-12")]),
        ("I ran a half marathon two days ago", [(None, "2023-09-11")]),
        ("I visited Lyon in May 2021", [(None, "2021-05-01 to 2021-05-31")]),
    ],
    "decision": [
        ("We decided to use Postgres.", [("decision:postgres", "We decided to use Postgres")]),
        ("Let's go with the blue one.", [(None, "Let's go with the blue one")]),
        ("I chose the window seat", [(None, "I chose the window seat")]),
        ('We decided to watch "Dune" tonight', [(None, 'We decided to watch "Dune" tonight')]),
        ("We've agreed on a budget of 5,000 euros", [("decision:budget", "agreed on a budget")]),
        ("I've decided against the move", [(None, "decided against")]),
        ("We decided to keep the token in a cookie", [(None, "keep the token in a cookie")]),
    ],
    "correction": [
        ("No, I meant Tuesday.", [(None, "I meant Tuesday")]),
        ("It's not red but green.", [(None, "not red but green")]),
        ("That's wrong, it is 42.", [(None, "it is 42")]),
        ("It's Thursday, not Friday", [(None, "Thursday, not Friday")]),
    ],
    "formerly": [
        ("I used to live in Paris.", [(None, "used to live in Paris")]),
        ("I used to smoke, but I stopped", [(None, "used to smoke")]),
        ("I used to play chess before work got busy", [(None, "used to play chess")]),
    ],
    "switch": [
        ("I switched to Firefox.", [("switched to", "Firefox")]),
        (
            "We switched from MySQL to Postgres last year",
            [("switched to", "Postgres"), ("decision:postgres last year", "from MySQL to Postgres")],
        ),
    ],
    "stopped": [
        ("I no longer use Twitter.", [(None, "no longer use Twitter")]),
        ("I don't play tennis anymore", [(None, "don't play tennis anymore")]),
    ],
    "relative clause": [
        ("my friend who lives in Oslo", [(None, "friend lives in Oslo")]),
        ("Which book for my uncle who restores clocks?", [(None, "uncle restores clocks")]),
        ("Is soup fine for my gran Ilse who can't eat dairy?", [("gran", "Ilse"), (None, "Ilse cannot eat dairy")]),
    ],
    "apposition": [
        ("My bike (a 1994 Koga) needs a chain", [(None, "bike is a 1994 Koga")]),
        ("Would my aunt, a beekeeper, like that?", [(None, "aunt is a beekeeper")]),
    ],
    "has": [
        ("Any games for my 6 year old?", [(None, "has a 6 year old")]),
        ("What do my three cats cost me a month?", [(None, "has three cats")]),
    ],
    "as one": [
        ("As a widower, who can I talk to?", [(None, "is a widower")]),
        ("What does a beginner like me need?", [(None, "is a beginner")]),
    ],
    "others": [
        ("Mornings are best for me", [(None, "Mornings are best for Ana")]),
        ("Penicillin gives me hives.", [(None, "Penicillin gives Ana hives")]),
        ("Thunder scares me.", [(None, "Thunder scares Ana")]),
        ("Nobody in our house eats pork", [(None, "Nobody in Ana's house eats pork")]),
        ("Two of my cousins are deaf", [(None, "Two of Ana's cousins are deaf")]),
        ("Nel can't have dairy or eggs", [(None, "Nel cannot have dairy or eggs")]),
        ("Nel plays the harp", [(None, "Nel plays the harp")]),
        ("Nel, who's 9, is off sick", [(None, "Nel is 9")]),
        ("Nel is allergic to latex", [(None, "Nel is allergic to latex")]),
        ("Purple is my colour.", [(None, "Purple is Ana's colour")]),
    ],
    "reasoned instruction": [
        ("I'm coeliac, so no wheat please", [("diet", "coeliac"), (None, "asks: no wheat please")]),
        ("Don't schedule anything before noon, I work nights", [(None, "works nights"), (None, "Don't schedule")]),
    ],
    "statement": [
        ("My gran speaks only Tamil.", [(None, "gran speaks only Tamil")]),
        ("got braces last month", [(None, "got braces last month (2023-08-01 to 2023-08-31)")]),
        ("on weekdays i get up at 5:15, so evenings are hard", [(None, "gets up at 5:15 on weekdays")]),
        ("gf is called Thandi, she's a paramedic", [(None, "gf is called Thandi"), (None, "gf Thandi is a paramedic")]),
        ("My friend lives in Rome", [(None, "Ana's friend lives in Rome")]),
        ("I work from home", [(None, "works from home")]),
        ("I joined a gym", [(None, "joined a gym")]),
        ("I live in a small flat.", [(None, "lives in a small flat")]),
        ("We live near Lake Bled", [("home", "lives near Lake Bled")]),
        ("My wife is a doctor.", [(None, "Ana's wife is a doctor")]),
        ("Hi! My thesis deadline has moved to 3 June", [(None, "thesis deadline has moved to 3 June (2024-06-03)")]),
        ("My ring size is 54 and Nel already wears 56", [("ring size", "is 54")]),
        ("I take rizatriptan for it", [(None, "takes rizatriptan")]),
        ("The mortgage went up to 1,610", [("mortgage", "mortgage went up to 1,610")]),
        ("I can't do Mondays", [(None, "cannot do Mondays")]),
        ("my bike is a size 54 Canyon, which saddle fits?", [("bike", "size 54 Canyon")]),
    ],
    "condition": [
        ("Because of my epilepsy I need breaks", [(None, "has epilepsy")]),
        ("My stammer gets worse on the phone", [(None, "has a stammer")]),
    ],
    "answer": [
        ("From Berlin, please.", [("flies from", "Berlin")]),
        ("Nuts and eggs.", [("allergy:nuts", "Nuts"), ("allergy:eggs", "eggs")]),
        ("In Bonn.", [("home", "Bonn")]),
        ("About 1,200 euros.", [("budget", "About 1,200 euros")]),
    ],
    "identifier": [
        ("my tracking number: 1Z77K20934", [("tracking number", "1Z77K20934")]),
        ("The gate code is 5309.", [("gate code", "5309")]),
        ("My locker code is 4412", [("locker code", "4412")]),
        ("Booking reference XK29QP", [(None, "XK29QP")]),
        ("My booking reference at the Astoria is XK29QP", [("booking reference at astoria", "XK29QP")]),
        (
            "I ordered a kettle too, order number ZA-5512.",
            [("order number for kettle", "order number for a kettle is ZA-5512")],
        ),
        ("My gate code is 5309, it's 5310 now", [("gate code", "gate code is 5310")]),
        ("Car reg's YK68 DNE", [("car reg", "YK68 DNE")]),
        ("Policy ref AX-5519/2 with Aviva, thanks", [("policy ref with aviva", "AX-5519/2")]),
        ("NHS number 943 476 5919", [("nhs number", "943 476 5919")]),
    ],
    "slot": [
        ("Wednesday evenings are chess club", [(None, "wednesday evenings are chess club")]),
    ],
    "budget": [
        ("Our budget for the kitchen is 8,000 euros.", [("budget for kitchen", "for the kitchen is 8,000 euros")]),
        ("My camera budget is now 700 euros", [("camera budget", "budget is now 700 euros")]),
        ("A chair for work, budget 200 euros", [("budget", "budget 200 euros")]),
        ("I don't want to spend more than $40", [(None, "does not want to spend more than $40")]),
    ],
    "reach": [
        ("Call me after 5.", [(None, "Call me after 5")]),
        ("Please only call me on weekdays", [(None, "only call me on weekdays")]),
    ],
    "sensitivity": [
        ("No food with nuts: I am allergic.", [("allergy:nuts", "nuts")]),
        ("My allergy to latex matters here", [("allergy:latex", "latex")]),
        ("No sugar in tea for me, ever.", [(None, "takes no sugar in tea")]),
    ],
    "age": [
        ("I am 34 years old.", [("age", "34")]),
        ("I'm a 29-year-old", [("age", "29")]),
        ("I just turned 40!", [("age", "40")]),
    ],
    "how many": [
        ("I have two children.", [("count:children", "two children")]),
        ("We have 3 dogs", [("count:dogs", "3 dogs")]),
        ("I have one younger sister", [("count:sisters", "one sister")]),
    ],
    "body": [("I'm 180 cm tall.", [("height", "180 cm")]), ("I weigh about 70 kg", [("weight", "70 kg")])],
}  # fmt: skip

# Sentences of many kinds.
VARIOUS: list[tuple[str, Facts]] = [
    ("I have asthma, can i swim", [(None, "has asthma")]),
    ("Guess what, I'm allergic to latex", [("allergy:latex", "latex")]),
    ("No idea why, but I'm allergic to celery", [("allergy:celery", "celery")]),
    ("is there a bakery near me, I live in Graz", [("home", "Graz")]),
    ("Had my tonsils out in 2015", [(None, "had their tonsils out in 2015")]),
    ("Ida lives in Graz and is my boss", [("home", "Graz")]),
    ("is my cousin Ida right about olives, i hate them", [("cousin", "Ida")]),
    ("my moms turning 70 in October", [(None, "Ana's mom is turning 70 in October")]),
    ("hes called Otto, my dog", []),
    ("Retired in 2019 after thirty years at the mint", [(None, "retired in 2019")]),
    ("cant stand olives, sorry", [("likes:olives", "olives")]),
    ("Been coeliac since uni", [(None, "Ana has been coeliac since uni")]),
    ("Blind in one eye, which monitor?", [(None, "Ana is blind in one eye")]),
    ("Not that anyone asked, but I've been told I'm prediabetic", []),
    ("Been told I'm prediabetic", [(None, "Ana is prediabetic")]),
    ("I've two pins in my left ankle", [(None, "has two pins in their left ankle")]),
    ("Please stop ending every reply with a question", [(None, "stop ending every reply")]),
    ("could you answer me in Catalan from now on?", [(None, "answer me in Catalan from now on")]),
    ("my dentist is dr abara", [("dentist", "dr abara")]),
    ("parrot (Captain) eats the curtains", [(None, "Ana's parrot is Captain")]),
    (
        "Would my aunt, a beekeeper, know? My uncle, Gus, turns 80 on 3 May",
        [(None, "aunt is a beekeeper"), ("uncle", "Gus"), (None, "uncle Gus turns 80")],
    ),
    ("i have asthma i need short walks", [(None, "has asthma")]),
    ("We are a family of five", [(None, "belongs to a family of five")]),
    ("We homeschool both girls", [(None, "homeschools both girls")]),
    ("my nan Rose crochets blankets", [("nan", "Rose"), (None, "nan Rose crochets blankets")]),
    ("we dont own a car", [(None, "does not own a car")]),
    ("I taught chemistry for nine years", [(None, "taught chemistry for nine years")]),
    ("When I was little we lived on a barge for a year", [(None, "lived on a barge for a year when they were little")]),
    ("I've never eaten meat", [(None, "has never eaten meat")]),
    ("I rarely drink", [(None, "rarely drinks")]),
    ("im new to the area", [(None, "is new to the area")]),
    ("My Dutch is pretty rusty", [(None, "Dutch is pretty rusty")]),
    ("My neighbour's cat sleeps on our roof every night", [(None, "neighbour's cat sleeps on their roof every night")]),
    ("Can I eat brie, I'm pregnant?", [(None, "is pregnant")]),
    ("My order no. is 5512-08, where is it?", [(None, "5512-08")]),
    ("my train is on friday at 9", [(None, "(2023-09-15)")]),
    ("I'm German.", [(None, "is German")]),
    ("I'm Italian by heritage", [(None, "is Italian by heritage")]),
    ("I'm a morning person", [(None, "is a morning person")]),
    ("I'm a doctor's daughter", [(None, "is a doctor's daughter")]),
    ("I'm a slow reader", [(None, "is a slow reader")]),
    ("I have never lived in Rome.", [(None, "has never lived in Rome")]),
    ("hey! name's Marco", [("name", "is called Marco")]),
    ("You can call me Beth if you like", [("called", "wants to be called Beth")]),
    ("I'm Dimitri and I run a bakery", [("name", "is called Dimitri"), (None, "runs a bakery")]),
    ("Our family moved to Calgary in 2018", [("home", "Calgary")]),
    ("I have been living in Kyoto for three years", [("home", "Kyoto")]),
    ("My hometown is Split", [("origin", "Split")]),
    ("I work in marketing at Nestlé", [("employer", "Nestlé")]),
    ("I just started a new job at Shell", [("employer", "Shell")]),
    ("I'm a nurse at St. Mary's Hospital", [("job", "nurse"), ("employer", "St. Mary's Hospital")]),
    (
        "My husband Peter and I went to Crete last summer",
        [("husband", "Peter"), (None, "My husband Peter and I went to Crete last summer (2023-06-01 to 2023-08-31)")],
    ),
    ("My mom's name is Judith", [("mom", "Judith")]),
    ("We have a golden retriever named Biscuit", [("golden retriever", "Biscuit")]),
    ("My daughter Ella just turned five", [("daughter", "Ella"), (None, "daughter Ella turned five")]),
    ("my boss, Helen, is great", [("boss", "Helen")]),
    ("I absolutely love Thai food", [("likes:thai food", "Thai food")]),
    ("I'm really into climbing", [("likes:climbing", "climbing")]),
    ("I don't care for cilantro", [("likes:cilantro", "cilantro")]),
    ("Coffee is my favourite drink", [("favourite:drink", "Coffee")]),
    ("My favorite band is Radiohead.", [("favourite:band", "Radiohead")]),
    (
        "I'm allergic to shellfish and penicillin",
        [("allergy:shellfish", "shellfish"), ("allergy:penicillin", "penicillin")],
    ),
    ("I'm lactose intolerant", [("diet", "lactose intolerant")]),
    ("I don't eat meat", [("eats:meat", "meat")]),
    ("Please always use metric units", [(None, "Please always use metric units")]),
    ("Never send me emails after 6 pm", [(None, "Never send me emails after 6 pm")]),
    ("From now on use British spelling", [(None, "From now on use British spelling")]),
    ("My birthday is August 14th", [("birthday", "Ana's birthday is 14 August")]),
    ("I was born on the 2nd of February, 1985", [("birthday", "was born on 2 February 1985")]),
    (
        "I have a job interview next Tuesday at 10am",
        [(None, "I have a job interview next Tuesday at 10am (2023-09-19)")],
    ),
    ("We're getting married on 14 June 2025", [(None, "We're getting married on 14 June 2025 (2025-06-14)")]),
    (
        "I had surgery on my knee last month",
        [(None, "Ana had surgery on their knee last month (2023-08-01 to 2023-08-31)")],
    ),
    ("We bought a house in 2020", [(None, "Ana bought a house in 2020")]),
    ("I've decided to quit smoking", [(None, "I've decided to quit smoking")]),
    ("OK let's go with option B", [("decision:option b", "let's go with option B")]),
    ("we agreed to meet every Thursday", [(None, "we agreed to meet every Thursday")]),
    ("Actually my name is spelled Kathryn", [("name", "is called Kathryn")]),
    ("No, it's 15 not 50", [(None, "it's 15 not 50")]),
    ("I meant the blue file", [(None, "I meant the blue file")]),
    ("I used to be a smoker", [(None, "used to be a smoker")]),
    ("I no longer drive", [(None, "I no longer drive")]),
    ("I switched from iPhone to Android", [("switched to", "Android"), ("decision:android", "iPhone to Android")]),
    ("I'm 52 years old", [("age", "is 52 years old")]),
    ("I'm 27", [("age", "is 27 years old")]),
    ("I have three kids", [("count:children", "has three kids")]),
    ("I weigh 82 kilos", [("weight", "weighs 82 kilos")]),
    ("reach me on +1 (415) 555-0132", [("phone", "has the phone number +1 (415) 555-0132")]),
    ("my e-mail is kat@uni.edu", [("email", "has the e-mail address kat@uni.edu")]),
    ("My brother Leo works for Tesla", [("brother", "Leo"), ("employer", "Tesla")]),
    (
        "I enjoy reading, cooking and gardening",
        [("likes:reading", "reading"), ("likes:cooking", "cooking"), ("likes:gardening", "gardening")],
    ),
    ("Hi all, I'm Wanjiru, the new product manager", [("name", "is called Wanjiru")]),
    ("My name is José Ángel Ruiz", [("name", "is called José Ángel Ruiz")]),
    ("Just call me Liz", [("called", "wants to be called Liz")]),
    ("We live in Auckland, New Zealand", [("home", "Auckland, New Zealand")]),
    ("I've been living in Malmö since last autumn", [("home", "Malmö")]),
    ("I recently moved from Delhi to Pune for work", [("home", "Pune")]),
    ("I'm originally from Ghana", [("origin", "Ghana")]),
    ("Well, I live in Cork actually", [("home", "Cork")]),
    ("I work for NASA as an engineer", [("employer", "NASA")]),
    ("I'm working at Zalando these days", [("employer", "Zalando")]),
    ("I'm a freelance translator", [("job", "freelance translator")]),
    ("I work as a paramedic in Leeds", [("job", "paramedic")]),
    (
        "I left my job at Intel in June",
        [("employer", "Intel")],
    ),
    (
        "I joined Spotify as a tester two years ago",
        [("employer", "Spotify"), (None, "I joined Spotify as a tester two years ago (2021-01-01 to 2021-12-31)")],
    ),
    ("Maya works as a vet", [("job", "vet")]),
    ("My son Arjun starts school tomorrow", [("son", "Arjun"), (None, "starts school tomorrow (2023-09-14)")]),
    ("my cats are Salt and Pepper", [("cat", "Salt"), ("cat", "Pepper")]),
    ("I'm engaged to Hana", [("fiancé", "Hana")]),
    ("Omar is my best friend", [("best friend", "Omar")]),
    ("My landlord is Mr. Brooks", [("landlord", "Mr. Brooks")]),
    ("I love spicy food but I hate coriander", [("likes:spicy food", "spicy food"), ("likes:coriander", "coriander")]),
    ("I prefer window seats", [("likes:window seats", "window seats")]),
    ("I'm not fond of crowds", [("likes:crowds", "crowds")]),
    ("I really don't like flying", [("likes:flying", "flying")]),
    ("my favourite film is Spirited Away", [("favourite:film", "Spirited Away")]),
    ("I'm allergic to bee stings", [("allergy:bee stings", "bee stings")]),
    ("I became a vegetarian last year", [("diet", "vegetarian")]),
    ("I can't eat gluten", [("eats:gluten", "gluten")]),
    ("Please reply in Spanish", [(None, "Please reply in Spanish")]),
    ("Always ask before you delete anything", [(None, "Always ask before you delete anything")]),
    ("never call me sir", [(None, "never call me sir")]),
    ("Whenever I send code, run the tests first", [(None, "Whenever I send code, run the tests first")]),
    ("Our anniversary is on 21 March", [("anniversary", "Ana's anniversary is 21 March")]),
    ("I've got a dentist appointment on Monday", [(None, "I've got a dentist appointment on Monday (2023-09-18)")]),
    ("We flew to Oslo on 3 August", [(None, "We flew to Oslo on 3 August (2023-08-03)")]),
    ("I settled on the red sofa", [("decision:red sofa", "I settled on the red sofa")]),
    ("We'll go with the second vendor", [("decision:second vendor", "We'll go with the second vendor")]),
    ("that's not correct, the price is 40 euros", [(None, "that's not correct, the price is 40 euros")]),
    ("Sorry, I meant Wednesday", [(None, "Sorry, I meant Wednesday")]),
    ("I used to play the cello", [(None, "used to play the cello")]),
    ("I don't smoke anymore", [(None, "I don't smoke anymore")]),
    ("We've switched to Linux", [("switched to", "Linux")]),
    ("I turned 60 in March", [("age", "is 60 years old")]),
    ("I have no siblings", [("count:siblings", "has no siblings")]),
    ("I have four grandchildren", [("count:grandchildren", "has four grandchildren")]),
    ("Text me at 020 7946 0123", [("phone", "has the phone number 020 7946 0123")]),
    ("my work email is li.wei@corp.example", [("email", "has the e-mail address li.wei@corp.example")]),
]

# What an assistant asked before some of these was said.
ASKED = {
    "From Berlin, please.": "A wedding, how lovely. Where do you fly from, and when?",
    "Nuts and eggs.": "Do you have any allergies?",
    "In Bonn.": "Where do you live?",
    "About 1,200 euros.": "And what is your budget?",
}

# What the rules do not see, and what they take for a fact: known, and counted in the measure of the whole.
MISSED = [
    "I'm currently staying in Lisbon",
    "I was promoted to team lead at Bosch",
    "I'm from the south of France",
    "I grew up on a farm in Iowa",
    "I prefer working in the morning",
    "I got my driving licence when I was 18",
]
MISTAKEN = [
    "My name is Legion for we are many is a Bible verse",
    "my doctor May visit",
    "We moved from Jenkins to Buildkite",
    "My wife Is Amazing",
]

# Nothing may be found in any of these, by any rule.
SILENT: dict[str, list[str]] = {
    "left out": [
        "Bought by a bank in 2012, what did it cost?",
        "Love is a battlefield, who sang that?",
        "Married couples often share a bank.",
        "Moved the file to the archive folder",
        "cant find my keys anywhere",
        "been waiting on hold for an hour",
        "The fridge is a device that cools.",
        "I y x and my z q",
    ],
    "shown": [
        "Order number 55123 is the example in the docs",
        "The ISBN number is 978-0-14-044913-6",
        "My card number is 4111 1111 1111 1111",
        "could you use yeast every time?",
    ],
    "various": [
        "Where do I live?",
        "I'd love to live in Japan someday",
        "If my name is Bob then what",
        "He told me that his name is Jim",
        "I thought I was allergic to dust",
        "I'm not from London",
        "Do you know if I work at IBM?",
        "Write an email: Hi, I'm Tom and I work at Apple.",
        "I like that",
        "I love this song",
        "I'm tired of this",
        "Call me crazy but it works",
        "I live for weekends",
        "I live in the moment",
        "I work in silence",
        "I can't stand up",
        "I can't stand here all day",
        "I like to think about it",
        "I'm a fan",
        "I would never eat meat",
        "I wonder if I like jazz",
        "Say I have two kids and earn 50k",
        "Assuming I live in Texas, what taxes apply?",
        "Let's assume my wife is called Eve",
        "I always answer my phone",
        "I never use it",
        "In the story, I live in Narnia",
        "The narrator says: I was born in 1900",
        "My character lives in Gotham",
        "I'm playing a detective who lives in Berlin",
        "For example, I live in Berlin.",
        "I decided nothing",
        "We chose poorly",
        "Let's go",
        "I moved to the next question",
        "I moved to dismiss the case",
        "I got a job to do",
        "I have one question",
        "I turned 90 degrees left",
        "I turned 3 pages",
        "My cat is fat",
        "Is Lena my sister",
        "I wish my birthday was in May",
        "my birthday was great",
        "I was born ready",
        "I was born in a hospital",
        "I'm based on a true story",
        "It is not only cheap but good",
        "I'm sure it's fine, not great",
        "My doctor said no",
        "I don't like that idea",
        "I don't eat here",
        "I am in Berlin for two days",
        "Tell me if I live in an earthquake zone",
        "I love it here in Spain",
        "I live next door",
        "I live and breathe music",
        "Would you say I live in Berlin?",
        "My therapist told me I love chaos",
        "They said my name is on the list",
        "I'd work at Google if they paid well",
        "I was going to move to Rome",
        "I almost moved to Rome",
        "I never moved to Rome",
        "I work as fast as I can",
        "I work for a living",
        "I'm a mess",
        "my wife and I",
        "my wife is amazing",
        "my sister in Berlin",
        "I love when it rains",
        "I like where this is going",
        "I hate to say it",
        "I hate Mondays?",
        "Who loves sushi",
        "I can't stand by and watch",
        "I don't like your tone",
        "What is my favourite colour",
        "My favourite is the second one",
        "I'm not allergic to anything",
        "Are you vegan",
        "I'm cooking for a vegan",
        "The vegan option is fine",
        "You always answer late",
        "I will never answer that",
        "She never uses emojis",
        "Always happy to help",
        "I was born yesterday",
        "My birthday was last week",
        "I have a friend",
        "I have ten minutes",
        "I have two left feet",
        "I turned 180 degrees",
        "I'm 100% sure",
        "I'm 5 minutes away",
        "We might decide to stay",
        "Did I choose the blue one",
        "He decided to leave",
        "Let's go with my parents to the zoo",
        "I'm switching to decaf maybe",
        "I meant well",
        "I meant what I said",
        "It's not that I hate it but I'm busy",
        "Email bob@x.org about it",
        "His email is bob@x.org",
        "Please say: my name is Bob",
        "Paris is my favourite",
        "Lena works hard",
        "Tom lives in fear",
        "Dogs can't eat onions",
        "Vegans can't have dairy",
        "Glenn Gould plays the piano",
        "If Nel can't have dairy, what then",
        "I'm allergic to nothing, luckily",
        "I've gone off the road",
        "Our boiler went at 9",
        "The blue one is free, mine is 8 June",
        "London is calling",
        "I dreamed that I lived in Rio",
        "In this game I live in Skyrim",
    ],
    "questions": [
        "Do I live in Berlin?",
        "What if I lived in Paris?",
        "My name is what?",
        "Is my name Ana?",
        "Should I work at Siemens?",
        "Am I allergic to nuts?",
        "Who is my boss?",
        "Did we decide to use Postgres?",
        "Can you recommend a place where I live in Berlin?",
        "I live in Berlin, right?",
        "I work at Siemens, do I?",
        "So my wife is Lena, is she?",
    ],
    "questions without a mark": [
        "do we live in Graz",
        "ok so do i like olives",
        "did i mention i work at Bosch",
        "is my cousin called Ida",
        "Is my cousin called Ida?",
        "isn't our cat called Miso",
        "have we settled on Postgres",
        "am i vegan",
        "no clue where i work, is it at Bosch",
        "remind me, am i allergic to latex",
        "do you remember i live in Graz",
        "did you note that I'm vegan",
        "what is my name",
        "i live in Graz, don't i",
        "I work at Bosch, right",
        "has Ida Moser moved to Graz",
        "is Ida living in Graz",
    ],
    "supposed": [
        "If I lived in Paris, I'd eat croissants.",
        "If I am vegetarian, I can eat this.",
        "I wish I lived in Rome.",
        "I would love a coffee.",
        "I'd like a table for two.",
        "Imagine I work at NASA.",
        "Suppose my name is Bob.",
        "Maybe I like jazz.",
        "I might move to Oslo.",
        "Let's say I live in Tokyo.",
        "Pretend my wife is Cleopatra.",
        "I could work as a nurse.",
        "I dreamt I lived in Venice",
        "Perhaps we decided to wait.",
        "I want to live in Spain.",
        "I plan to work as a chef.",
    ],
    "denied": [
        "I don't live in Berlin.",
        "I do not work at Siemens.",
        "I'm not allergic to nuts.",
        "I'm not vegetarian.",
        "My name is not Bob.",
        "Our budget isn't 900 euros",
        "my budget is no longer 1,200 euros",
        "The budget was never 1,200 euros",
        "our budget was $500",
        "The budget for the harbour is $3 million",
        "Norway's budget is $300 billion",
        "What is a realistic budget of $300 good for",
        "My order number was A77123",
        "My gate code isn't 5309",
        "It's not true that I live in Paris.",
        "I never said I work at Acme",
        "Lena is not my sister.",
        "We haven't decided to move.",
        "I am not 34 years old.",
        "I'm not Ana.",
    ],
    "reported": [
        "She said I live in Paris.",
        "Tom told me my name is funny",
        "He thinks I like sushi.",
        "My mother says I hate spinach.",
        "According to the form I live in Rome.",
        "They claim I work at Google.",
        "Someone wrote that I was born in 1980.",
        "The character says my name is Hamlet.",
    ],
    "quoted": [
        'He asked me to read "My name is Bob" aloud.',
        "The sign reads “I love New York”.",
        "Translate this: I live in Berlin.",
        "Rewrite the following: My name is Ana and I work at Siemens.",
        "> I live in Paris",
        "```\nI live in Berlin\n```",
        "Run `my email is a@b.org` please",
        "Here is a poem:\nI live in Arcadia\nmy name is Pan",
    ],
    "granted": [
        "Where is my brother who said he'd call?",
        "My sister, a friend and I went out",
        "What is wrong with my 3 year old laptop?",
        "As a user I want to log in",
        "It makes me sad",
        "Bob gave me a pen",
        "So no wheat please",
    ],
    "passing": [
        "I click the button.",
        "I think cats rule.",
        "I agree with the second point",
        "My dishwasher leaks.",
        "I haven't seen the report",
        "I'm a mess.",
        "I can't find my keys.",
        "We define n as the number of rows",
        "Sharing my flat is hard.",
        "My wife knows the answer.",
        "I'm tired today.",
        "I have a headache.",
        "I'm in a meeting.",
        "my phone's at 3%, hurry",
        "I have a meeting in an hour.",
        "I get an error every time.",
        "My code is in Python 3.11.",
        "my result is 42",
        "I lost my train of thought.",
        "Call me tomorrow after 5.",
        "I had pizza last night.",
        "I can't eat another bite.",
        "My wife is asleep.",
        "My gran can't swim today",
        "I can't drive tonight, my eyes hurt",
        "My bus is delayed until 11:00",
        "My bus is 20 minutes late",
    ],
    "a part, or a joke": [
        "Pretend you're my doctor. I have asthma.",
        "Let's role-play! I live in Rome.",
        "I live on Mars. Just kidding!",
        "My character is a 40-year-old detective named Rex.",
        "You are now a pirate. I have a parrot.",
    ],
    "taken back": [
        "I live in Rome... NOT!",
        "I live in Rome, not!",
        "I live in St. Gallen. NOT",
        "I live in Rome. That's a lie.",
        "I live in Rome. No wait, that's false.",
        "I live in Rome. No. Wait. That\u2019s wrong.",
        "I live in Rome.\nSorry, that was not true at all",
        "I live in Rome! Scratch that.",
        "I live in Rome (not!).",
        "I live in Rome. Nah, it's a lie.",
        "I have two kids. I lied.",
    ],
    "secret": [
        "My password is hunter2.",
        "My PIN is 4471.",
        "My card's CVV number is 123",
        "my verification code is 481516",
        "One-time code: 481516",
        "our 2fa code is 481516 now",
        "backup code is QX12-CD34",
        "my account's recovery codes are 88-11 and 88-12",
        "my authenticator code: 481516",
        "My security code is 481516.",
        "my login code is 4815",
        "My social security number is 078-05-1120",
        "my passwd is Swordfish1",
        "The PUK is 48151623",
        "It's not hunter2 but Hunter3, my password",
        "We decided to use Swordfish as password",
        "From now on use the passphrase Swordfish",
    ],
    "pasted": [
        "---- Original Message ----\nI live in Rome and my name is Bob.",
        "FYI\nFrom: Bob <bob@x.org>\nSubject: hello\n\nI live in Rome.",
        "On 3 May 2024, Bob wrote:\nI live in Rome. My dog is called Rex.",
        "Look:\n> I have asthma\n> and two kids",
        'They sent me this: "I live in Rome.\n\nI have two kids.\n\nMy dog is called Rex." What now?',
        "[12:03] Bob: I live in Rome\n[12:04] Eve: I live in Oslo",
        "Customer: I live in Rome\nAgent: I work at Acme",
        "<email>I live in Rome. I have two kids.</email>",
        "\u2018I live in Rome\u2019, it says",
        "Tom: I live in Rome.\nLena: ok",
        "Look what they wrote.\n\nTom Baker: I live in Rome.\nLena: same here, my dog is called Rex",
        "Dr. Meyer: I live in Rome.\nTom van Dyk: ok",
        "**Tom:** I live in Rome.\n**Lena:** ok",
        "- Tom (10:32): I live in Rome.\n- Lena (10:33): ok",
        "Tom:\nI live in Rome.\nLena:\nok",
        "Me: where do you live?\nTom: I live in Rome.",
        "Mom: I live in Rome.\nDad: ok",
        "Speaker 1: I live in Rome.\nSpeaker 2: I have two kids.",
        "tom: hi\nlena: hello\ntom: I live in Rome.",
        "tom: I live in Rome.\n\nlena: ok",
        "\u5c71\u7530\uff1a I live in Rome.\n\u7530\u4e2d\uff1a ok",
        "5/1/26, 10:32 - Tom: I live in Rome.\n5/1/26, 10:33 - Lena: ok",
        "5/1/26, 10:32\u202fAM - Tom: I live in Rome.",
        "2026-05-01 10:32 Tom: I live in Rome.\n2026-05-01 10:33 Lena: ok",
        "<Tom> I live in Rome.\n<Lena> ok",
        "[10:32] <@tom> I live in Rome.\n[10:33] <+lena> ok",
        "On Mon, 3 May 2026 at 10:00, Tom\n<tom@x.org> wrote:\nI live in Rome.",
        "On Mon, 3 May 2026 at 10:00, Tom <tom@x.org>\nwrote:\n\nI live in Rome.",
        "*From:* Tom\n*Sent:* Monday\nI live in Rome.",
        "Fwd: see below\nI live in Rome.",
        "FW: hello\n\nI live in Rome.",
        "<DIV>I live in Rome.</DIV>",
        "<Div class='a'>I live in Rome.</DIV>",
        "// I live in Rome.",
        "/* I live in Rome.\nI have two kids. */",
        "<!-- I live in Rome. -->",
        "\u2039I live in Rome.\u203a",
        "\u300cI live in Rome.\u300d",
        "\u300eI live in Rome.\u300f",
        "\u300aI live in Rome.\u300b",
        "\u00bbI live in Rome.\u00ab",
        "\u201dI live in Rome.\u201d",
        "\u201aI\u2019m from Oslo and I live in Rome.\u2018",
        "Translate this to French\nI live in Rome.",
        "Can you proofread this?\n\nI live in Rome. I have two dogs.",
        "Please fix the grammar of this text\nI live in Rome.",
        "Translate to Spanish\nI live in Rome.",
    ],
    "others": [
        "He lives in Berlin.",
        "She works at Siemens.",
        "They decided to leave.",
        "You live in Paris.",
        "Your name is Bob.",
        "His wife Lena called.",
        "Her birthday is 8 May.",
        "Nobody lives in Atlantis.",
        "Everyone works for Someone.",
        "Who lives in Oslo",
        "The company works for free.",
    ],
    "look-alikes": [
        "I'm sure.",
        "I'm Vegan-curious",
        "Call me later.",
        "Call me when you can.",
        "I live in hope.",
        "I work for free.",
        "I'm a bit tired.",
        "I like it.",
        "I love you.",
        "I like the idea.",
        "I love how you wrote that.",
        "I love the colour.",
        "I like the taste of these.",
        "I'm having trouble with the report of 5 April.",
        "I'll use it on the website.",
        "Here is the piano I used to play on.",
        "I like your suggestion.",
        "Never mind.",
        "I'm 87.5% of the way there.",
        "Never say never!",
        "Keep going and never give up!",
        "I prefer shoes with a sleek, modern look.",
        "Always a pleasure!",
        "I always end up late.",
        "I never said that.",
        "Please write a poem about Paris.",
        "I'm from time to time busy.",
        "My name is on the list.",
        "My dog is brown.",
        "It's not just fast but cheap.",
        "I have a question.",
        "I have two questions.",
        "I have a feeling about this",
        "I meant to call you.",
        "I picked it up.",
        "I didn't eat lunch today.",
        "I don't eat much.",
        "Contact support@example.org for help.",
        "The number is 12345678.",
        "I moved the file to Trash.",
        "I moved on.",
        "I joined the call late.",
        "I moved to Settings and clicked Save",
        "I joined Ida for lunch",
        "Logistics moved to Fridays",
        "Ida moved to Plan C yesterday",
        "Billing moved to Stripe",
        "Standup's moved to Zoom",
        "The meeting is on Friday.",
        "Turned 40 pages.",
        "Like I said.",
        "I am not sure if I should go.",
        "My favourite!",
        "We work as intended.",
        "In May flowers bloom.",
    ],
}


def _read(text: str, **more: object) -> list[rules.Extraction]:
    return rules.extract(text, speaker="Ana", role="user", time=TIME, subject="ana", asked=ASKED.get(text), **more)  # type: ignore[arg-type]


def _says(found: rules.Extraction, fact: tuple[str | None, str]) -> bool:
    name, value = fact
    named = name in {found.key, found.relation} if name else found.key is None
    return named and (found.object == value if found.object is not None else value in found.text)


LINES = [(rule, text, facts) for rule, lines in SAID.items() for text, facts in lines]
LINES += [("", text, facts) for text, facts in VARIOUS]
QUIET = [text for texts in SILENT.values() for text in texts]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Note: I live in Rome.", ["home"]),
        ("By the way: I live in Rome", ["home"]),
        ("Update: my sister Lena moved to Oslo.\nAlso: I work at Siemens.", ["sister", "employer"]),
        ("Work: I work at Siemens\nHome: I live in Rome", ["employer", "home"]),
        ("Backstory: I live in Rome.\nQuestion: where do I buy my bread?", ["home"]),
        ("Job Title: I'm a nurse\nFavourite Food: I love sushi", ["job", "likes:sushi"]),
        ("Day 1: I live in Rome.\nDay 2: I work at Siemens", ["home", "employer"]),
        ("Lena: vegan\nTom: allergic to nuts\nI live in Rome.", ["home"]),
        ("Hi Tom:\nI live in Rome.", ["home"]),
        ("job: I work at Siemens\nhome: I live in Rome", ["employer", "home"]),
        ("Write me an email to my landlord\nI live in Rome.", ["home"]),
        ("Check this out\nI live in Rome.", ["home"]),
        ("Re: your question, I live in Rome.", ["home"]),
        ("I live in Rome // I work at Siemens", ["home", "employer"]),
        ("My old phone had a 5\u201d screen. I live in Rome. The new one has a 6\u201d one.", ["home"]),
        ("I live in Rome. That's not a lie.", ["home"]),
        ("I live in Rome. Not - as people think - in Oslo.", ["home"]),
        ("My boss says I'm lazy. That's a lie. I live in Rome.", ["home"]),
    ],
)
def test_what_looks_like_a_paste_and_is_said_by_the_sender_is_read(text: str, says: list[str]) -> None:
    assert [name for name in says if not any(name in (each.key, each.relation) for each in _read(text))] == []


def test_what_is_said_after_taking_back_is_read() -> None:
    (found,) = _read("I live in Rome. No wait, that's false. I live in Oslo.")
    assert (found.object, found.corrects) == ("Oslo", True)


def test_every_rule_has_a_table_and_says_what_it_is_for() -> None:
    assert set(SAID) == set(rules.RULES)
    assert all(rule.about and rule.name == name for name, rule in rules.RULES.items())
    assert len(LINES) + len(QUIET) >= 450


@pytest.mark.parametrize(("rule", "text", "facts"), LINES, ids=[text for _, text, _ in LINES])
def test_what_a_sentence_says_is_found_and_nothing_else(rule: str, text: str, facts: Facts) -> None:
    found = _read(text)
    missing = [fact for fact in facts if not any(_says(each, fact) for each in found)]
    surplus = [each for each in found if not any(_says(each, fact) for fact in facts)]
    assert (missing, surplus) == ([], [])
    assert not rule or any(each.rule == rule for each in found)


@pytest.mark.parametrize("text", QUIET)
def test_what_is_not_stated_of_the_speaker_is_no_fact(text: str) -> None:
    assert _read(text) == []


def test_over_all_sentences_nearly_everything_found_is_right_and_nearly_everything_right_is_found() -> None:
    right, wrong, missed = 0, sum(len(_read(text)) for text in MISTAKEN), sum(not _read(text) for text in MISSED)
    for text, facts in [(text, facts) for _, text, facts in LINES] + [(text, []) for text in QUIET]:
        found = _read(text)
        right += sum(any(_says(each, fact) for fact in facts) for each in found)
        wrong += sum(not any(_says(each, fact) for fact in facts) for each in found)
        missed += sum(not any(_says(each, fact) for each in found) for fact in facts)
    print(f"precision {right / (right + wrong):.3f}, recall {right / (right + missed):.3f}, {right} facts")
    assert right / (right + wrong) >= 0.97
    assert right / (right + missed) >= 0.96


@pytest.mark.parametrize("name", list(rules.RULES))
def test_a_rule_alone_finds_its_own_and_only_under_its_name(name: str) -> None:
    for text, facts in SAID[name]:
        found = _read(text, rules=[rules.rule(name)])
        assert {each.rule for each in found} == ({name} if facts else set())


def test_every_check_that_a_verb_names_exists_and_none_is_left_over() -> None:
    tables = (vocabulary.DOES, vocabulary.DID, vocabulary.DOING, vocabulary.NEVER_DOES)
    named = {check for table in tables for _, check in table.values()}
    assert named - {"bare"} == set(complements.PATTERNS)


def test_an_unknown_rule_is_not_found() -> None:
    with pytest.raises(NotFound, match="there is no rule 'weather'"):
        rules.rule("weather")


def test_what_is_read_with_a_subject_put_back_is_quoted_as_it_was_written() -> None:
    text = "ok. Finished chemo on Friday"
    (found,) = _read(text)
    assert found.text.startswith("Ana finished chemo on Friday")
    assert found.quote == text[found.start : found.end] == "Finished chemo on Friday"


def test_a_finding_carries_its_words_and_where_they_stand() -> None:
    text = "Well. First things first: I live in Berlin, since 2019. More later."
    ref = EntryRef("t", 3)
    (found,) = _read(text, ref=ref)
    assert found.quote == "I live in Berlin" == text[found.start : found.end]
    assert (found.subject, found.text, found.ref) == ("ana", "Ana lives in Berlin", ref)
    assert (found.kind, found.relation, found.object) == ("semantic", "lives in", "Berlin")
    assert found.valid_from == datetime(2019, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("I moved to Berlin last month.", datetime(2023, 8, 1, tzinfo=UTC)),
        ("As of June 2022, I work at Initech.", datetime(2022, 6, 1, tzinfo=UTC)),
        ("I live in Berlin and I fly to Rome next week.", None),
        ("I live in Berlin and met Lena yesterday.", None),
        ("I switched to Linux in 2020.", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_fact_holds_from_when_it_says(text: str, since: datetime | None) -> None:
    fact = next(each for each in _read(text) if each.kind == "semantic")
    assert fact.valid_from == since


def test_a_time_without_a_zone_is_utc() -> None:
    (found, _) = rules.extract("I moved to Rome in May.", time=TIME.replace(tzinfo=None), subject="ana")
    assert found.valid_from == datetime(2023, 5, 1, tzinfo=UTC)


def test_what_is_said_of_a_named_person_has_that_person_as_subject() -> None:
    (found,) = _read("Lena Olsen lives in Oslo")
    assert (found.subject, found.text) == ("Lena Olsen", "Lena Olsen lives in Oslo")


@pytest.mark.parametrize("role", ["assistant", "system", "tool", "developer", "Assistant"])
def test_only_people_speak_of_themselves(role: str) -> None:
    assert rules.extract("I live in Berlin. My name is Ana.", role=role, time=TIME, subject="ana") == []


def test_an_event_is_episodic_and_holds_for_its_interval() -> None:
    (found,) = _read("I met Lena last Friday.")
    assert (found.kind, found.valid_from, found.valid_to) == (
        "episodic",
        datetime(2023, 9, 8, tzinfo=UTC),
        datetime(2023, 9, 9, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (None, "From Berlin."),
        ("You fly from Berlin.", "From Berlin."),
        ("Where do you fly from?", "I am not sure yet."),
        ("Where do you fly from?", "What do you mean?"),
        ("Do you have any allergies?", "No."),
        ("What is your password?", "Hunter22"),
        ("What is your recovery code?", "QX12-CD34"),
        ("What is your question?", "Berlin or Bonn"),
    ],
)
def test_a_fragment_says_something_only_beside_a_question_it_answers(asked: str | None, said: str) -> None:
    assert rules.extract(said, time=TIME, subject="ana", asked=asked) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My doctor is Dr. K. Meyer, she is great.", "Dr. K. Meyer"),
        ("We live in St. Pölten. It is nice.", "St. Pölten"),
        ("My favourite author is J. R. R. Tolkien.", "J. R. R. Tolkien"),
        ("K. Meyer is my dentist.", "K. Meyer"),
    ],
)
def test_a_name_is_not_cut_at_a_dot(text: str, name: str) -> None:
    assert name in {each.object for each in _read(text)}


def test_she_is_the_one_person_named_in_the_sentence_before() -> None:
    assert [each.text for each in _read("What can I cook for my niece? She's vegan.")] == ["Ana's niece is vegan"]
    assert _read("My niece and my boss are here. She's vegan.") == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("My van is a 2009 Vito", "van"),
        ("My van is 2009 Vito", "van"),
        ("My bank is Monzo.", "bank"),
        ("My gym is the Forum", "gym"),
        ("My rent is about 900 euros", "rent"),
        ("My ring size is 54", "ring size"),
        ("My mortgage is 1,480 euros", "mortgage"),
        ("My van is at Bo's workshop", None),
        ("My van is 12 years old", None),
        ("My van is 5 metres long", None),
        ("My bank is closed at 5", None),
        ("My rent is due on Friday", None),
        ("My rent is 900 euros too high", None),
        ("My locker is 212", "locker"),
        ("My gym is on the third floor", None),
        ("My budget is tight", None),
        ("We live in a crooked old house on the Nikolaikirchhof, number 9, with a dog", None),
    ],
)
def test_only_a_value_has_a_key(text: str, key: str | None) -> None:
    """What is somewhere, or in some state, is what it was: "my van is at the workshop" replaces no van."""
    assert {each.key for each in _read(text)} == {key}


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Linux",
        "I moved to Slack.",
        "I moved to Marketing last month",
        "I moved to Level 9 in May",
        "We moved from Jenkins to Buildkite",
        "We moved to Buildkite in May",
        "Choir moved to Thursdays",
        "I moved to Python 3.12 in May",
        "I joined Discord as a joke",
        "I joined Netflix last year",
        "I joined Ida's team",
        "I joined Unicef as a volunteer",
    ],
)
def test_what_one_moves_to_or_joins_may_be_no_home_and_no_employer(text: str) -> None:
    assert {"home", "employer"}.isdisjoint(each.key for each in _read(text))


def test_an_instruction_is_procedural() -> None:
    (found,) = _read("Please always answer in French.")
    assert (found.kind, found.key) == ("procedural", None)


# A correction says "never true", a change "no longer true".


@pytest.mark.parametrize(
    ("text", "corrects", "ended"),
    [
        ("I live in Bonn.", False, False),
        ("Actually, I live in Bonn.", True, False),
        ("I actually live in Bonn.", True, False),
        ("Sorry, I live in Bonn.", True, False),
        ("No, I live in Bonn.", True, False),
        ("No problem, I live in Bonn.", False, False),
        ("That's wrong. I live in Bonn.", True, False),
        ("I was wrong, I live in Bonn.", True, False),
        ("Actually, I moved to Bonn last year.", False, False),
        ("Actually, I now live in Bonn.", False, False),
        ("Actually, I no longer live in Bonn.", False, True),
        ("I don't live in Bonn any more.", False, True),
    ],
)
def test_a_correction_is_told_from_a_change(text: str, corrects: bool, ended: bool) -> None:
    (found,) = [each for each in _read(text) if each.key == "home"]
    assert (found.corrects, found.ended) == (corrects, ended)


def test_the_end_of_one_value_does_not_end_the_value_said_beside_it() -> None:
    found = _read("I no longer work at Acme. I work at Globex now.")
    assert [(each.key, each.object, each.ended) for each in found] == [
        (None, "Acme", False),
        ("employer", "Globex", False),
    ]


@pytest.mark.parametrize(
    ("text", "key", "object"),
    [
        ("I no longer live in Paris.", "home", "Paris"),
        ("I don't live in New York any more.", "home", "New York"),
        ("I quit my job at Hooli.", "employer", "Hooli"),
        ("I resigned from my position at Hooli last week.", "employer", "Hooli"),
        ("I don't work at Hooli anymore.", "employer", "Hooli"),
        ("I'm no longer vegan.", "diet", "vegan"),
        ("I no longer like jazz.", "likes:jazz", "jazz"),
    ],
)
def test_what_is_over_is_named(text: str, key: str, object: str) -> None:
    """So that the end of one value can be told from the end of another."""
    (found,) = [each for each in _read(text) if each.ended]
    assert (found.key, found.object) == (key, object)
    assert found.relation is not None


def test_no_rule_ends_a_fact_without_naming_what_is_over() -> None:
    ended = [each for _, text, _ in LINES for each in _read(text) if each.ended]
    assert len({each.rule for each in ended}) >= 4
    assert [each.text for each in ended if each.object is None or each.relation is None] == []


def test_liking_and_hating_share_a_key() -> None:
    keys = {each.key for text in ("I love the Beatles", "I hate The  Beatles.") for each in _read(text)}
    assert keys == {"likes:beatles"}


# No text may do harm


ODD = (
    '" \u201c \u201d ` ``` > \n ? ?! . if not said : \x00 \u017f \u0130 \u5c71\u7530 \u0639\u0645\u0631 '
    "\u0928\u0947\u0939\u093e"
)
PIECES = [word for lines in SAID.values() for text, _ in lines for word in text.split(" ")] + ODD.split(" ")
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join))


@given(TEXTS)
def test_no_text_makes_it_fail_and_quotes_stand_where_they_say(text: str) -> None:
    for found in _read(text):
        assert found.quote == text[found.start : found.end] != ""
        assert found.rule in rules.RULES
        assert found.kind in {"semantic", "episodic", "procedural"}
        assert "\x00" not in found.text or "\x00" in text
        assert (found.relation is None) == (found.object is None)
        assert not (found.valid_from and found.valid_to) or found.valid_from < found.valid_to


@pytest.mark.parametrize(
    "text",
    [
        "我住在柏林。我叫安娜。",
        "أعيش في برلين واسمي آنا.",
        "मैं बर्लिन में रहती हूँ।",
        "Я живу в Берлине.",
        "ฉันอยู่ที่เบอร์ลิน",
        "🎉" * 50,
    ],
)
def test_other_scripts_are_read_through_without_findings(text: str) -> None:
    assert _read(text) == []


def test_names_of_other_scripts_are_kept_whole() -> None:
    found = _read("My name is नेहा शर्मा. I live in São Paulo. My wife is Ольга.")
    assert [(each.key, each.object) for each in found][1:] == [("home", "São Paulo"), ("wife", "Ольга")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["I live in Berlin. ", "He is here. ", "I ", "my ", "I like ", '"', "“", "`", "a", "I'm ", "not ", "Ana ", ":",
     "> x\n", "translate x: ", "<a>", "'a ", "From: b\n", "my a and ", "every Monday I ",
     "Bob: I\n", "<Bob> ", "<!-- ", "/* ", "On 3 may x\n", "\u00bb", "I sing. Not. ", "fix the text ",
     "I have a ", "Always use ", "I met Lena last Friday ", "中", "\n", " ", "if I ask x, "],
)  # fmt: skip
def test_a_long_text_is_read_through(piece: str) -> None:
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    for found in _read(text):
        assert text[found.start : found.end] == found.quote


def test_an_extractor_of_ones_own_takes_the_place_of_the_english_rules() -> None:
    def german(text: str, *, subject: str, **_: Any) -> list[Extraction]:
        head, _, place = text.partition(" wohne in ")
        found = f"lives in {place}"
        return [Extraction("wohnort", found, subject, text, 0, len(text), key="home", object=place)] if head else []

    with holdfast.open("ram:", embedder=None) as store:
        store.thread("t", user="ana").append({"role": "user", "content": "Ich wohne in Bonn"})
        assert store.memory("ana").learn("t") == []
        assert [memory.text for memory in store.memory("ana").learn("t", extractor=german)] == ["lives in Bonn"]
        assert [fact.text for fact in store.memory("ana").facts()] == ["lives in Bonn"]


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("My job is very stressful.", None),
        ("My job is to manage people.", None),
        ("My job is not secure.", None),
        ("My job is a nurse.", "nurse"),
        ("My profession is architect.", "architect"),
        ("My job is software engineer.", "software engineer"),
    ],
)
def test_what_is_said_about_a_job_is_not_the_job(text: str, job: str | None) -> None:
    found = rules.extract(text, time=datetime(2026, 5, 1, tzinfo=UTC), subject="ana")
    assert [each.object for each in found if each.key == "job"] == ([] if job is None else [job])
