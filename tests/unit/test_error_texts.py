"""What an error says can be printed anywhere, echoes little of what was given, and shows no password."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import Invalid, Misconfigured, quoted
from holdfast.extension import kept_address, whole_address


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def deep() -> Any:
    value: Any = None
    for _ in range(100_000):
        value = [value]
    return value


def test_a_value_is_quoted_whatever_it_is() -> None:
    values = ("a", 5, Unshowable(), [Unshowable()], 10**5000, deep())
    assert list(map(quoted, values)) == ["'a'", "5", "<Unshowable>", "<list>", "<int>", "<list>"]


def test_a_long_value_is_cut() -> None:
    shown = quoted("x" * 100_000)
    assert len(shown) <= 200
    assert shown.startswith("'xxx")
    assert shown.endswith("xxx'")


@pytest.mark.parametrize("echo", ["'{}'", '"{}"', "{}"])
def test_what_a_message_echoes_is_cut_and_what_it_says_is_not(echo: str) -> None:
    text = str(Invalid(f"there is no file {echo.format('x' * 100_000)}; write one first"))
    assert text.startswith("there is no file ")
    assert text.endswith("; write one first")
    assert len(text) < 250


def test_what_stands_between_two_echoes_is_not_cut() -> None:
    text = f"step 'book' of today's run \"r\": {'nobody can say whether it happened, ' * 8}so look for 'key'"
    assert str(Invalid(text)) == text


def test_a_message_keeps_its_beginning_and_its_end() -> None:
    text = str(Invalid("begin " + "word " * 100_000 + "end"))
    assert len(text) <= 1_000
    assert text.startswith("begin word")
    assert text.endswith("word end")


def test_what_cannot_be_printed_is_escaped() -> None:
    text = str(Invalid("a\ud800b \x1b[2J \x9b \x00 c\td\ne é 🦊"))
    assert text == "a\\ud800b \\x1b[2J \\x9b \\x00 c\td\ne é 🦊"
    assert text.encode().decode() == text


def test_facts_are_kept_as_they_were_given() -> None:
    error = Invalid("x" * 5_000, given="x" * 5_000)
    assert len(error.given) == 5_000
    assert (str(error.again()), error.again().facts) == (str(error), error.facts)


# Passwords

SECRET = "hush"
ADDRESSES = [
    "postgresql://u:p@hush w@host/db", "postgresql://u:hush%zz@host/db", "postgresql://u:hush@host:port/db",
    "postgresql://u:hush/x@host/db", "postgresql://u:hush?x@host/db", "postgresql://u:hush#x@host/db",
    "postgresql://u:hush@[::1/db", "postgresql://u:hush@host/db?nonsense=1", "postgresql://u:12/hush@host/db",
    "postgresql://u:hush\x00@host/db", "postgresql://u:hush\ud800@host/db", "postgresql:/u:hush@host/db",
    "postgresql:host=h password=hush", "postgresql:password='hush hush'", "host=h password = hush", "password=hush",
    "postgresql//u:hush@host/db", "postgresql//u:x hush@host/db", "postgresq://u:hush@host/db",
    "sqlite://u:hush@host/x", "postgresql://host/db?user=u&password=hu%zzhush", "mysql://u:hush@host/db",
    "postgresql://u:hush@127.0.0.1:1/db?connect_timeout=1",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES, ids=ascii)
def test_a_malformed_address_shows_no_password(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the text, not in what is logged with the error, and not as the name of a file."""
    monkeypatch.chdir(tmp_path)
    for act in (lambda: holdfast.open(address), lambda: holdfast.restore("backup.db", address)):
        with pytest.raises(holdfast.errors.HoldfastError) as caught:
            act()
        told = [*traceback.format_exception_only(caught.value), repr(caught.value), repr(caught.value.facts)]
        cause = caught.value.__cause__
        while cause is not None:
            told += traceback.format_exception_only(cause)
            cause = cause.__cause__
        assert SECRET not in "".join(told)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_masked_wherever_an_address_is_told() -> None:
    assert str(Misconfigured("at postgresql://u:hush@h/db")) == "at postgresql://u:***@h/db"
    assert str(Misconfigured("host=h password='a hush' user=u")) == "host=h password=*** user=u"
    assert str(Misconfigured("no file /a/b:c, nor one at d@e")) == "no file /a/b:c, nor one at d@e"


@pytest.mark.parametrize(("address", "kept"), [
    ("agent.db", "agent.db"),
    ("postgresql://u:hu%40sh@h:5432/db", "postgresql://u@h:5432/db"),
    ("postgresql://h/db?user=u&password=hush&sslmode=require", "postgresql://h/db?user=u&sslmode=require"),
    ("postgresql://h/db?password=hush", "postgresql://h/db"),
    ("postgresql://u@h/db", "postgresql://u@h/db"),
    ("postgresql://h:5432/db?user=me@srv", "postgresql://h:5432/db?user=me@srv"),
    ("postgresql://u:a/b@h/db?sslpassword=hush", "postgresql://u@h/db"),
    ("notes?", "notes?"),
])  # fmt: skip
def test_an_address_is_kept_without_its_password(address: str, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept_address(address) == kept
    monkeypatch.setenv("HOLDFAST_DB", address)
    assert whole_address(kept) == address
    monkeypatch.setenv("HOLDFAST_DB", "postgresql://u:other@elsewhere/db")
    assert whole_address(kept) == kept
