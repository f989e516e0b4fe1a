"""Values come back exactly as they went in, or are refused with the path to what would not."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine import codec
from holdfast.errors import Corrupt, Invalid, TooLarge, Unsupported

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
plain = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Point(NamedTuple):
    x: int


def nested(levels: int, shape: str) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value] if shape == "list" else {"in": value}
    return value


# What comes back


@given(plain)
def test_plain_data_comes_back_exactly(value: Any) -> None:
    """Compared by repr, which tells 1 from 1.0 and True, 0.0 from -0.0, and keeps the order of keys."""
    assert repr(codec.decode(codec.encode(value))) == repr(value)


@given(plain)
def test_a_value_has_one_encoding(value: Any) -> None:
    assert codec.encode(codec.decode(codec.encode(value))) == codec.encode(value)


@pytest.mark.parametrize(
    "value",
    [
        "\x00", "a\x00b", "\x1f\x7f\x80\u2028", "\uffff\U0010ffff", "é", "e\u0301", {"\x00": "\x00"}, "",
        2**63 - 1, -(2**63), 2**53 + 1, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1e22, 1e16, 123456789012345680.0,
        [], {}, [[]], {"": {}}, [None, True, False, 0, 0.0, ""],
    ],
    ids=repr,
)  # fmt: skip
def test_awkward_values_come_back_exactly(value: Any) -> None:
    assert repr(codec.decode(codec.encode(value))) == repr(value)


@pytest.mark.parametrize("shape", ["list", "dict"])
@pytest.mark.parametrize("levels", [100, codec.MAX_DEPTH])
def test_deep_nesting_comes_back_exactly(levels: int, shape: str) -> None:
    value = nested(levels, shape)
    assert codec.decode(codec.encode(value)) == value


def test_a_tuple_comes_back_as_a_list() -> None:
    """The one liberty: both are a sequence to JSON, and callers write tuples without meaning it."""
    assert codec.decode(codec.encode({"seats": (1, (2,))})) == {"seats": [1, [2]]}


def test_a_body_names_its_encoding() -> None:
    assert codec.encode({"a": 1}) == b'j1{"a":1}'


def test_the_largest_accepted_body_comes_back() -> None:
    value = "x" * (codec.MAX_BODY_BYTES - len(codec.JSON) - 2)
    body = codec.encode(value)
    assert len(body) == codec.MAX_BODY_BYTES
    assert codec.decode(body) == value


# What is refused


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        (math.nan, "", "nan"),
        ({"a": [1, math.inf]}, ".a[1]", "inf"),
        ({"a": {"b": -math.inf}}, ".a.b", "-inf"),
        (2**63, "", "64 bits"),
        ([0, {"n": -(2**63) - 1}], "[1].n", "64 bits"),
        ({1: "one"}, "", "the key 1 is int"),
        ({"a": [{None: 1}]}, ".a[0]", "the key None is NoneType"),
        ({Colour.RED: 1}, "", "Colour"),
        ({"s": {1, 2}}, ".s", "set"),
        ([frozenset()], "[0]", "frozenset"),
        ({"b": b"bytes"}, ".b", "bytes"),
        ({"d": datetime.date(2026, 1, 1)}, ".d", "date"),
        ([decimal.Decimal(1)], "[0]", "Decimal"),
        ([1j], "[0]", "complex"),
        ({"c": Colour.RED}, ".c", "Colour"),
        ({"c": Size.SMALL}, ".c", "Size"),
        ([Point(1)], "[0]", "Point"),
        ({"o": OrderedDict(a=1)}, ".o", "OrderedDict"),
        ({"o": defaultdict(int)}, ".o", "defaultdict"),
        ({"f": object()}, ".f", "object"),
        ({"f": print}, ".f", "builtin"),
    ],
    ids=lambda value: repr(value).split(" at 0x")[0][:40],
)
def test_what_would_come_back_different_is_refused_with_its_path(value: Any, path: str, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        codec.encode(value, "the state")
    assert caught.value.path == path
    assert str(caught.value).startswith(f"the state{path}: ")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("value", "place"),
    [("\ud800", ""), (["ok", "\udfff!"], "[1]"), ({"a": {"b": "x\ud83d"}}, "b"), ({"\udc00": 1}, "\\udc00")],
    ids=ascii,
)
def test_a_lone_surrogate_is_refused_with_its_path(value: Any, place: str) -> None:
    with pytest.raises(Invalid, match="lone surrogate") as caught:
        codec.encode(value)
    assert place in caught.value.path
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("shape", ["list", "dict"])
@pytest.mark.parametrize("levels", [codec.MAX_DEPTH + 1, 250, 5_000])
def test_deeper_nesting_is_refused(levels: int, shape: str) -> None:
    with pytest.raises(Invalid, match="nested deeper"):
        codec.encode(nested(levels, shape))


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Invalid, match="nested deeper"):
        codec.encode(loop)


@pytest.mark.parametrize("size", [codec.MAX_BODY_BYTES, 50_000_000])
def test_a_large_value_is_refused_with_its_size(size: int) -> None:
    with pytest.raises(TooLarge) as caught:
        codec.encode({"blob": "x" * size}, "entry 7")
    assert caught.value.size_bytes > caught.value.limit_bytes == codec.MAX_BODY_BYTES
    assert "entry 7" in str(caught.value)


# What was stored by others


def test_msgpack_is_read() -> None:
    value = {"a": [1, 2.5, None, "x"]}
    assert codec.decode(codec.MSGPACK + msgspec.msgpack.encode(value)) == value


@pytest.mark.parametrize("body", [b"", b"j", b"j2{}", b"p1\x80\x04N.", b"{}"])
def test_an_unknown_encoding_is_unsupported(body: bytes) -> None:
    with pytest.raises(Unsupported):
        codec.decode(body)


@pytest.mark.parametrize(
    "body", [b"j1", b"j1{", b'j1{"a":}', b'j1"\xff"', b"j1[1] []", b"j1NaN", b"m1", b"m1\xc1", b"m1\x92\x01"]
)
def test_a_damaged_body_is_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt):
        codec.decode(body)


@pytest.mark.parametrize("body", [codec.JSON + b"[" * 100_000, codec.MSGPACK + b"\x91" * 100_000])
def test_a_body_nested_beyond_reason_is_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt):
        codec.decode(body)


def test_both_encodings_read_back_as_the_same_value() -> None:
    assert codec.decode(codec.encode({"a": [1]})) == {"a": [1]}
    assert codec.decode(codec.MSGPACK + msgspec.msgpack.encode({"a": [1]})) == {"a": [1]}
