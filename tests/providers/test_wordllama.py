"""WordLlama from its wheel: the vectors are the package's own, and nothing is fetched, imported or configured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

from holdfast.errors import Misconfigured
from holdfast.providers import wordllama
from holdfast.providers.wordllama import WordLlama

TEXTS = [
    "where does she like to sit?",
    "prefers aisle seats",
    "two  spaces,   three, and a trailing one ",
    " a leading space",
    "tabs\tand\nnew\n\nlines",
    "def f(x):\n    return x < 3  # <s> </s> <unk>",
    "I <s> am </s>not a token",
    "她喜欢靠过道的座位",
    "تفضل مقعدا على الممر",
    "वह गलियारे की सीट पसंद करती है",
    "🙂 emoji 🧑‍🚀 and café, naïve, Zürich",
    "x" * 300,
    "nul \x00 inside",
    "word " * 700,
    "no-spaces-at-all-" * 100,
]

# Refuses every look at the network, in a process of its own with an empty home. argv: the texts as a JSON file.
_ALONE = """
import json, logging, sys
def refuse(event, args):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}:
        raise SystemExit(f"the network was asked: {event} {args}")
sys.addaudithook(refuse)
handlers = list(logging.root.handlers)
texts = json.load(open(sys.argv[1], encoding="utf-8"))
"""
_OURS = """
from holdfast.providers.choose import choose
embedder = choose("wordllama")
light = sorted({"numpy", "tokenizers", "wordllama"} & set(sys.modules))
rows = embedder.embed(texts)
print(json.dumps({
    "rows": rows.tolist(),
    "light": light,
    "modules": sorted(sys.modules),
    "quiet": logging.root.handlers == handlers,
}))
"""
_THEIRS = """
import pathlib, wordllama
model = wordllama.WordLlama.load(cache_dir=pathlib.Path(wordllama.__file__).parent, disable_download=True)
print(json.dumps({"rows": model.embed(texts, norm=True).tolist()}))
"""


def _alone(script: str, texts: list[str], folder: Path) -> dict[str, object]:
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-I", "-c", _ALONE + script, str(folder / "texts.json")],
        env={**os.environ, "HOME": str(folder), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return {**answer, "stderr": done.stderr}


@pytest.fixture
def model() -> Iterator[WordLlama]:
    return WordLlama()


@pytest.mark.slow
def test_the_vectors_are_those_of_the_package(tmp_path: Path) -> None:
    theirs = numpy.array(_alone(_THEIRS, TEXTS, tmp_path)["rows"], dtype=numpy.float32)
    assert numpy.abs(WordLlama().embed(TEXTS) - theirs).max() < 1e-5


@pytest.mark.slow
def test_nothing_is_fetched_imported_or_configured(tmp_path: Path) -> None:
    found = _alone(_OURS, TEXTS, tmp_path)
    assert found["light"] == []  # choosing costs nothing
    modules = found["modules"]
    assert isinstance(modules, list)
    assert not {"wordllama", "requests", "huggingface_hub", "http.client", "pydantic"} & set(modules)
    assert found["quiet"]
    assert found["stderr"] == ""
    assert [path.name for path in tmp_path.iterdir()] == ["texts.json"]
    assert numpy.allclose(found["rows"], WordLlama().embed(TEXTS), atol=1e-6)


def test_rows_are_unit_length_and_blank_ones_zero(model: WordLlama) -> None:
    rows = model.embed([*TEXTS, "", "  ", "\n"])
    assert rows.shape == (len(TEXTS) + 3, 256)
    assert rows.dtype == numpy.float32
    assert numpy.allclose(numpy.linalg.norm(rows[: len(TEXTS)], axis=1), 1.0, atol=1e-5)
    assert not rows[len(TEXTS) :].any()
    assert model.embed([]).shape == (0, 256)


def test_meaning_shows(model: WordLlama) -> None:
    question, near, far = model.embed(
        ["which seat does she want on the plane?", "prefers aisle seats on flights", "the invoice is overdue"]
    )
    assert question @ near > question @ far + 0.2


def test_a_row_does_not_depend_on_its_neighbours_or_on_what_came_before(model: WordLlama) -> None:
    together = model.embed(TEXTS)
    apart = numpy.vstack([model.embed([text]) for text in reversed(TEXTS)])[::-1]
    assert numpy.array_equal(together, apart)


def test_a_long_text_is_read_to_its_end(model: WordLlama) -> None:
    words = "the contract of the bakery was signed in Lisbon and renewed later on "
    start, whole, other = model.embed(["wine " * 2000, "wine " * 2000 + words * 1000, words])
    assert whole @ other > start @ other + 0.3


@pytest.mark.parametrize("text", ["a" * 1_000_000, "汉字编码" * 250_000, "x" + " " * 999_999, "word " * 200_000])
def test_a_megabyte_is_one_row(model: WordLlama, text: str) -> None:
    row = model.embed([text])[0]
    assert abs(float(row @ row) - 1.0) < 1e-3


def test_cutting_a_long_text_leaves_its_tokens_alone(model: WordLlama) -> None:
    text = " ".join(f"word{number} sits, quietly;" for number in range(2_000))
    whole = wordllama._load(wordllama.folder() or Path())
    pieces = wordllama._pieces(text)
    assert len(pieces) > 10
    assert [token for piece in pieces for token in whole._encode(piece)] == whole._encode(text)


def test_half_a_surrogate_pair_is_embedded(model: WordLlama) -> None:
    assert model.embed(["broken \ud83d emoji"])[0].any()


def test_many_threads_load_once_and_agree(model: WordLlama) -> None:
    wordllama._load.cache_clear()
    rows: list[numpy.ndarray] = []
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        rows.append(WordLlama().embed(TEXTS))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wordllama._load.cache_info().misses == 1
    assert all(numpy.array_equal(rows[0], other) for other in rows)


def test_the_words_it_keeps_are_bounded(model: WordLlama, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama, "_WORDS", 50)
    loaded = wordllama._load(wordllama.folder() or Path())
    texts = [" ".join(f"w{number}x{other}" for other in range(20)) for number in range(20)]
    first = loaded.embed(texts)
    assert len(loaded._words) <= 50
    assert numpy.array_equal(loaded.embed(texts), first)


# Damage


def _damaged(folder: Path, weights: bytes | None, tokens: bytes | None) -> WordLlama:
    for name, content in ((wordllama._WEIGHTS, weights), (wordllama._TOKENS, tokens)):
        path = folder / name
        path.parent.mkdir()
        if content is not None:
            path.write_bytes(content)
    model = WordLlama()
    model._folder = folder
    return model


@pytest.mark.parametrize("at", [0, 1])
def test_a_file_of_another_version_makes_no_vectors_under_this_name(tmp_path: Path, at: int) -> None:
    place = wordllama.folder() or Path()
    files = [bytearray((place / name).read_bytes()) for name in (wordllama._WEIGHTS, wordllama._TOKENS)]
    files[at][-100] ^= 1
    with pytest.raises(Misconfigured, match="is damaged, or of a version"):
        _damaged(tmp_path, bytes(files[0]), bytes(files[1])).embed(["text"])


@pytest.mark.parametrize(
    ("weights", "tokens"),
    [
        (None, None),
        (b"", b"{}"),
        (b"\xff" * 64, b"{}"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}", b"{}"),
    ],
)
def test_damaged_files_say_how_to_repair_them(tmp_path: Path, weights: bytes | None, tokens: bytes | None) -> None:
    with pytest.raises(Misconfigured, match="pip install"):
        _damaged(tmp_path, weights, tokens).embed(["text"])
