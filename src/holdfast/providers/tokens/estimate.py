"""How many tokens a text has, roughly, without any tokeniser: never far below what a model counts, at times above.

A text is encoded once and looked at as bytes: words (frequent ones apart, the others by length), capitals, digits,
punctuation, space, and characters by script. Each kind has a weight for each family of tokenisers, and the sum of kinds
times weights is the estimate. The weights (``weights.py``) were fitted to lie as low as possible without any text being
counted more than 2 % below any tokeniser of the family; ``tools/tokens.py`` measures and fits, and what came out is in
docs/decisions/0019-counting-tokens.md.

A plain sum has a property worth keeping: what holds for two texts holds for both together, so mixtures are as safe as
their parts. Deliberately absent: regular expressions and a loop over characters. All counting is done by ``bytes``,
which takes just under a millisecond for 8,000 tokens of English.
"""

from __future__ import annotations

from operator import mul

from holdfast.errors import Invalid
from holdfast.providers.tokens.frequent import FREQUENT
from holdfast.providers.tokens.weights import WEIGHTS

ANY = "any"
FAMILIES = tuple(WEIGHTS)
_TAIL = bytes(range(0x80, 0xC0))  # the later bytes of a character; without them one byte stands for one character


def _table(classes: dict[str, range | bytes], default: bytes) -> bytes:
    table = bytearray(default * 256)
    for letter, members in classes.items():
        for byte in members:
            table[byte] = ord(letter)
    return bytes(table)


# One letter for each kind of character, told by its first byte in UTF-8.
_KIND = _table(
    {
        "c": bytes((*range(0x20), 0x7F)),
        " ": b" ",
        "n": b"\n",
        "t": b"\t\r\v\f",
        ".": bytes(b for b in range(0x21, 0x7F) if not chr(b).isalnum()),
        "0": b"0123456789",
        "a": range(ord("a"), ord("z") + 1),
        "A": range(ord("A"), ord("Z") + 1),
        "l": range(0xC2, 0xCE),  # Latin with marks, and signs
        "g": range(0xCE, 0xD0),  # Greek
        "y": range(0xD0, 0xD4),  # Cyrillic
        "r": range(0xD8, 0xDC),  # Arabic
        "i": b"\xe0",  # India, Thailand, Laos
        "e": b"\xe1",  # many; Vietnamese and Georgian among them
        "s": b"\xe2",  # punctuation, arrows, symbols
        "k": b"\xe3",  # Japanese syllables
        "z": range(0xE4, 0xEA),  # Chinese characters
        "o": range(0xEA, 0xEE),  # Korean
        "p": range(0xEE, 0xF0),  # full width, variants, private use
        "m": range(0xF0, 0xF8),  # emoji and rare scripts
    },
    b"h",  # two bytes, and none of the above: Hebrew, Armenian
)
# Words for looking up: Latin letters in lower case, those with marks as one byte, everything else a gap.
_WORD = bytes(
    byte if 0xC3 <= byte < 0xCE else ord(chr(byte).lower()) if byte < 0x80 and chr(byte).isalpha() else 0x20
    for byte in range(256)
)
_LETTER = _table({" ": b" "}, b"w")
_CONSONANT = _table({"c": b"bcdfghjklmnpqrstvwxz"}, b" ")

# What is counted, in the order of the weights: words by length, then pairs and singles among kinds of characters …
_LENGTHS = tuple(b" " + b"w" * length for length in (4, 11, 15))
_PLAIN = (b"A", b"aA", b"0", b" 0", b".", b"..", b"n", b"nn", b"n ", b"  ", b"   ", b" " * 8, b"t", b"c")
# … then scripts, where there are any: a kind, what is told apart by pairs, and what by the bytes themselves.
_SCRIPTS: tuple[tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]], ...] = (
    (b"l", (), (b"\xc3", b"\xc2")),
    (b"g", (b" g",), ()),
    (b"y", (b" y",), ()),
    (b"h", (), ()),
    (b"r", (b" r",), ()),
    (
        b"i",
        (b" i",),
        (b"\xe0\xa4", b"\xe0\xa5", b"\xe0\xa6", b"\xe0\xa7", b"\xe0\xae", b"\xe0\xaf", b"\xe0\xb8", b"\xe0\xb9"),
    ),
    (b"e", (), (b"\xe1\xba", b"\xe1\xbb", b"\xe1\x83")),
    (b"s", (), (b"\xe2\x80", b"\xe2\x94", b"\xe2\x95")),
    (b"k", (), (b"\xe3\x81", b"\xe3\x82", b"\xe3\x83")),
    (b"z", (b"zz",), ()),
    (b"o", (b" o",), ()),
    (b"p", (), (b"\xef\xbc", b"\xef\xb8\x8f")),
    (b"m", (), ()),
)
KINDS = (
    *("words", "letters", "longer than 3", "longer than 10", "longer than 14", "eights", "cccc"),
    *(repr(pattern.decode()) for pattern in _PLAIN),
    *(
        label
        for kind, pairs, parts in _SCRIPTS
        for label in (
            kind.decode(),
            *map(repr, map(bytes.decode, pairs)),
            *(f"{kind.decode()} {x.hex()}" for x in parts),
        )
    ),
)


class Estimate:
    """A counter for models whose tokeniser is not at hand. ``family`` says what kind of tokeniser it has.

    "large": vocabularies of 100,000 and more (OpenAI, Gemini and Gemma, Llama 3 and 4, Qwen, DeepSeek, Mistral);
    "claude": Claude up to 4.6; "claude-5": Claude from 4.7 on; "small": vocabularies of 32,000 to 50,000 (Llama 2,
    SmolLM2); "any": all of these, which is the safe choice and the highest.
    """

    exact = False

    def __init__(self, family: str = ANY) -> None:
        if family not in WEIGHTS:
            raise Invalid(f"There is no family of tokenisers {family!r}. There are {', '.join(FAMILIES)}.")
        self.family = family
        self.name = f"estimate:{family}"
        self._weights = WEIGHTS[family]

    def __repr__(self) -> str:
        return f"Estimate({self.family!r})"

    def count(self, text: str) -> int:
        # Plain ASCII yields only the first of the kinds, and map stops with the shorter of the two.
        hundredths: int = sum(map(mul, kinds(text), self._weights))
        return max(-(-hundredths // 100), 1 if text else 0)


def kinds(text: str) -> list[int]:
    """How often each of ``KINDS`` occurs; where a text is plain ASCII, only those that can."""
    raw = text.encode("utf-8", "surrogatepass")
    plain = raw.isascii()
    characters = raw.translate(_KIND, _TAIL)
    words = raw.translate(_WORD, _TAIL).split()
    rare = [word for word in words if word not in FREQUENT]
    joined = b" ".join((b"", *rare))
    letters = joined.translate(_LETTER)
    found = [len(words), len(letters) - len(rare)]
    found += map(letters.count, _LENGTHS)
    found += (letters.count(b"w" * 8), joined.translate(_CONSONANT).count(b"cccc"))
    found += map(characters.count, _PLAIN)
    if not plain:
        for kind, pairs, parts in _SCRIPTS:
            if kind in characters:
                known = [raw.count(part) for part in parts]
                found += (characters.count(kind) - sum(known), *map(characters.count, pairs), *known)
            else:
                found += (0,) * (1 + len(pairs) + len(parts))
    return found
