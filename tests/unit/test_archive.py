"""An archive is exact in every format, says where it is damaged, and believes nothing that it cannot prove."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.archive import ArchiveManifest, Selection, as_yaml, check_archive, export
from holdfast.archive.as_msgpack import MAX_FRAME_BYTES
from holdfast.archive.audit import Audit
from holdfast.archive.contents import FORMAT, VERSION, ArchiveHeader, ArchiveSection
from holdfast.archive.formats import OpenedArchive, writer
from holdfast.engine import chain
from holdfast.engine.codec import MAX_BODY_BYTES, encode
from holdfast.engine.contract import GENESIS, Event, Record, Scope, Strand
from holdfast.errors import Corrupt, HoldfastError, Invalid, NotFound, Unsupported
from holdfast.testing import ManualClock, SeededIds

FORMATS = ("json", "yaml", "msgpack")
HEADER = ArchiveHeader(FORMAT, VERSION, 1, Selection("default"))
REFUSED = (Corrupt, Invalid, Unsupported)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        text,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=20,
)


def section(*bodies: bytes, keys: tuple[str | None, ...] = (), thread: str = "t") -> ArchiveSection:
    """One thread whose entries have these bodies."""
    events: list[Event] = []
    digest = GENESIS
    for number, body in enumerate(bodies, 1):
        key = keys[number - 1] if keys else None
        digest = chain.link(digest, number, "message", key, 100 + number, body)
        events.append(Event("message", body, 100 + number, key, number, digest))
    stream = 2**62 + 1
    record = Record(
        "thread",
        thread,
        1,
        encode({}),
        Scope("ana", None, thread),
        100,
        200,
        None,
        ("x",),
        stream,
        0,
        len(bodies),
        digest,
    )
    return ArchiveSection("default", thread, (record,), (Strand(stream, "thread", thread, events=tuple(events)),), {})


def archive(fmt: str, *sections: ArchiveSection) -> bytes:
    out = io.BytesIO()
    document, audit = writer(fmt, out), Audit(HEADER)
    document.header(HEADER)
    for one in sections:
        document.section(one, audit.section(one))
    document.manifest(audit.manifest())
    return out.getvalue()


def reread(data: bytes) -> list[ArchiveSection]:
    return list(OpenedArchive(io.BytesIO(data)))


def sample() -> Any:
    """A store with a fork, a rewind, a checkpoint and a state."""
    store = holdfast.open("ram:", clock=ManualClock(), ids=SeededIds(1))
    thread = store.thread("trip-42", user="ana", agent="travel", tags=["europe"])
    thread.append(
        {"role": "user", "content": "Lisbon, please.\nIn May? 🎉"}, {"role": "assistant", "content": "naïve"}, key="a"
    )
    thread.save({"seat": "aisle", "price": 12.5})
    thread.checkpoint("before", note="asked")
    thread.append({"role": "user", "content": "<<: *anchor"}, key="b")
    thread.fork("trip-42b", at="before").append({"role": "user", "content": "other"})
    thread.rewind("before")
    thread.append({"role": "user", "content": "again"})
    return store


@pytest.fixture(scope="module")
def samples() -> dict[str, bytes]:
    found = {}
    with sample() as store:
        for fmt in FORMATS:
            out = io.BytesIO()
            store.export(out, format=fmt)
            found[fmt] = out.getvalue()
    return found


# Exactness


@pytest.mark.parametrize("fmt", FORMATS)
@given(
    contents=st.lists(values, max_size=5),
    key=text.filter(lambda key: "\x00" not in key),
    thread=st.text("a é'\"#:-", min_size=1),
)
def test_every_value_comes_back_as_the_same_bytes(fmt: str, contents: list[Any], key: str, thread: str) -> None:
    whole = section(*map(encode, contents), keys=(key, *[None] * len(contents)), thread=thread)
    assert reread(archive(fmt, whole)) == [whole]


ODD_BODIES = [
    b'j1{"a": 1,\n  "b" : [ 1.0, 1e2, -0.0 ]}',
    b'j1 {"a":1} ',
    b'j1\n"x"\n',
    b'j1"\\u00e9\\ud83c\\udf89\\/"',
    b'j1{"a":1,"a":2}',
    b'j1"\xff"',
    b"j1123456789012345678901234567890",
    b"j1" + b"[" * 150 + b"]" * 150,
    b"m1\x81\xa1a\x01",
    b"e7 who knows",
    b"",
    b"j",
]


@pytest.mark.parametrize("fmt", FORMATS)
def test_bodies_in_another_spelling_or_encoding_come_back_too(fmt: str) -> None:
    whole = section(*ODD_BODIES)
    assert reread(archive(fmt, whole)) == [whole]
    for body in ODD_BODIES:
        assert reread(archive(fmt, section(body))) == [section(body)]


def test_people_can_read_the_text_formats() -> None:
    whole = section(encode({"role": "user", "content": "First line\nand é"}), keys=("m-1",))
    found = json.loads(archive("json", whole))
    event = found["sections"][0]["strands"][0]["events"][0]
    assert event["body"] == {"role": "user", "content": "First line\nand é"}
    assert event["key"] == "m-1"
    assert "content: |-\n          First line\n          and é\n" in archive("yaml", whole).decode()
    assert yaml.safe_load(archive("yaml", whole)) == found


def test_json_has_an_entry_on_each_line() -> None:
    lines = archive("json", section(*(encode({"n": n}) for n in range(200)))).splitlines()
    assert sum(line.startswith(b'{"position":') for line in lines) == 200


def test_the_hash_is_of_the_meaning_not_the_format(samples: dict[str, bytes]) -> None:
    manifests = [check_archive(samples[fmt]) for fmt in FORMATS]
    assert {(m.counts, m.tenants["default"].entries) for m in manifests} == {(manifests[0].counts, 5)}
    assert len({check_archive(archive(fmt, section(encode(1)))).sha256 for fmt in FORMATS}) == 1


def test_numbers_over_53_bits_are_text() -> None:
    found = json.loads(archive("json", section(encode(1))))
    assert found["sections"][0]["records"][0]["stream"] == "4000000000000001"


@pytest.mark.parametrize("layout", [{"indent": 2}, {"ensure_ascii": False}, {"separators": (",", ":")}])
def test_json_laid_out_by_an_editor_is_read(samples: dict[str, bytes], layout: dict[str, Any]) -> None:
    again = json.dumps(json.loads(samples["json"]), **layout).encode()
    assert check_archive(again) == check_archive(samples["json"])
    assert check_archive(b"\xef\xbb\xbf" + samples["json"]) == check_archive(samples["json"])


def test_msgpack_can_be_taken_apart_by_any_library(samples: dict[str, bytes]) -> None:
    data, names = samples["msgpack"], []
    while data:
        size = int.from_bytes(data[1:5], "big")
        names += msgspec.msgpack.decode(msgspec.msgpack.decode(data[: 5 + size]))
        data = data[5 + size :]
    assert (names[0], names[1], names[-2], names[-1]) == ("header", "section", "end", "manifest")


@pytest.mark.parametrize("fmt", FORMATS)
def test_an_empty_archive_is_one(fmt: str) -> None:
    assert check_archive(archive(fmt)).sections == 0


def test_yaml_without_the_c_library(monkeypatch: pytest.MonkeyPatch, samples: dict[str, bytes]) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    monkeypatch.delattr(yaml, "CSafeDumper", raising=False)
    as_yaml._dumper.cache_clear()
    try:
        whole = section(*(encode(body) for body in ({"a": "x\ny\n"}, "🎉", 1e300, "\x85\u2028\ufeff", "yes", "")))
        assert reread(archive("yaml", whole)) == [whole]
        assert check_archive(samples["yaml"]).counts == check_archive(samples["json"]).counts
    finally:
        as_yaml._dumper.cache_clear()


def test_without_pyyaml_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, samples: dict[str, bytes]) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    as_yaml._yaml.cache_clear()
    try:
        for use in (lambda: writer("yaml", io.BytesIO()), lambda: check_archive(samples["yaml"])):
            with pytest.raises(Unsupported, match=r'pip install "holdfast\[yaml\]"'):
                use()
    finally:
        as_yaml._yaml.cache_clear()


# Damage


def harmless(found: bytes, original: bytes) -> bool:
    """Whether a damaged archive is refused, or means exactly what it meant."""
    try:
        return reread(found) == reread(original) and check_archive(found) == check_archive(original)
    except REFUSED:
        return True


@pytest.mark.parametrize(("fmt", "step"), [("json", 5), ("msgpack", 4), ("yaml", 60)])
def test_a_changed_byte_is_never_believed(samples: dict[str, bytes], fmt: str, step: int) -> None:
    data, chance = samples[fmt], random.Random(fmt)
    for offset in range(chance.randrange(step), len(data), step):
        changed = bytearray(data)
        changed[offset] ^= chance.choice((1, 2, 4, 8, 16, 32, 64, 128, 255))
        assert harmless(bytes(changed), data), f"byte {offset}"


@pytest.mark.slow
@pytest.mark.parametrize("fmt", FORMATS)
def test_no_changed_byte_anywhere_is_believed(samples: dict[str, bytes], fmt: str) -> None:
    data = samples[fmt]
    for offset in range(len(data)):
        for mask in (1, 32, 255) if fmt != "yaml" else (1 << offset % 8,):
            changed = bytearray(data)
            changed[offset] ^= mask
            assert harmless(bytes(changed), data), f"byte {offset}, mask {mask}"


@pytest.mark.parametrize(("fmt", "step"), [("json", 11), ("msgpack", 7), ("yaml", 150)])
def test_a_file_cut_short_is_refused(samples: dict[str, bytes], fmt: str, step: int) -> None:
    data = samples[fmt]
    for length in [*range(0, len(data) - 2, step), len(data) - 3]:
        with pytest.raises(REFUSED):
            check_archive(data[:length])


@pytest.mark.parametrize("fmt", FORMATS)
@given(seed=st.integers(0, 2**32), cuts=st.integers(1, 4))
def test_shuffled_pieces_are_refused_or_harmless(samples: dict[str, bytes], fmt: str, seed: int, cuts: int) -> None:
    data, chance = samples[fmt], random.Random(seed)
    marks = sorted(chance.randrange(len(data)) for _ in range(cuts))
    pieces = [data[a:b] for a, b in zip([0, *marks], [*marks, len(data)], strict=True)]
    chance.shuffle(pieces)
    assert harmless(b"".join(pieces), data)


@given(junk=st.binary(max_size=200))
def test_anything_else_is_no_archive(junk: bytes) -> None:
    for start in (b"", b"{", b"\xc6", b"format: "):
        with pytest.raises(REFUSED):
            check_archive(start + junk)


def test_a_changed_word_is_named_with_thread_and_entry(samples: dict[str, bytes]) -> None:
    for fmt in FORMATS:
        with pytest.raises(Corrupt, match=r"thread 'trip-42'.*entry 2 was changed") as caught:
            check_archive(samples[fmt].replace(b"na\xc3\xafve", b"na\xc3\xaffe"))
        assert (caught.value.tenant, caught.value.thread, caught.value.position) == ("default", "trip-42", 2)


def test_a_missing_entry_is_named(samples: dict[str, bytes]) -> None:
    lines = [line for line in samples["json"].splitlines() if b'"key":"a"' not in line]
    with pytest.raises(Corrupt, match="entry 1 is missing"):
        check_archive(b"\n".join(lines))


def test_a_changed_record_is_found_by_its_section(samples: dict[str, bytes]) -> None:
    for fmt in FORMATS:
        with pytest.raises(Corrupt, match=r"section 1 \(tenant 'default', thread 'trip-42'\): a record") as caught:
            check_archive(samples[fmt].replace(b"asked", b"taken", 1))
        assert caught.value.section == 1


def test_the_place_of_a_syntax_error_is_named(samples: dict[str, bytes]) -> None:
    with pytest.raises(Corrupt, match=r"byte \d+"):
        check_archive(samples["json"].replace(b'"events":[', b'"events":[,', 1))
    cut = samples["msgpack"][:-10]
    with pytest.raises(Corrupt, match=r"byte \d+: the archive ends inside this frame") as caught:
        check_archive(cut)
    assert 0 < caught.value.offset < len(cut)
    with pytest.raises(Corrupt, match=r"line \d+"):
        check_archive(samples["yaml"].replace(b"strands:", b"strands: ]", 1))


def test_the_manifest_must_agree(samples: dict[str, bytes]) -> None:
    with pytest.raises(Corrupt, match="manifest: counts"):
        check_archive(samples["json"].replace(b'"counts":{"threads":2', b'"counts":{"threads":3'))
    with pytest.raises(Corrupt, match="manifest: sha256"):
        check_archive(samples["json"][:-10] + b"0" * 5 + samples["json"][-5:])


def test_nothing_may_follow(samples: dict[str, bytes]) -> None:
    for fmt, more in (("json", b"{}"), ("msgpack", b"\xc0"), ("yaml", b"more: 1\n"), ("yaml", b"---\nmore: 1\n")):
        with pytest.raises(Corrupt):
            check_archive(samples[fmt] + more)


# What is not an archive of ours


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"version":1', b'"version":2'), (b"version: 1", b"version: 2"), (b"\xa7version\x01", b"\xa7version\x02")],
)
def test_a_newer_format_says_so(samples: dict[str, bytes], old: bytes, new: bytes) -> None:
    data = next(data for data in samples.values() if old in data[:120]).replace(old, new, 1)
    with pytest.raises(Unsupported, match=r"format version 2.*upgrade") as caught:
        check_archive(data)
    assert (caught.value.version, caught.value.known) == (2, 1)


def test_a_newer_format_may_look_otherwise() -> None:
    frame = msgspec.msgpack.encode({"header": {"format": FORMAT, "version": 9, "cipher": "x"}})
    for data in (
        json.dumps({"format": FORMAT, "version": 9, "threads": {}}).encode(),
        f"format: {FORMAT}\nversion: 9\nthreads: {{}}\nsections: {{}}\n".encode(),
        b"\xc6" + len(frame).to_bytes(4, "big") + frame,
    ):
        with pytest.raises(Unsupported):
            check_archive(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"{}",
        b"[]",
        b'{"format":"other","version":1}',
        b"format: other\nversion: 1\n",
        b"\xc6\0\0\0\1\x80",
        b"\0" * 100,
    ],
)
def test_other_files_are_no_archive(data: bytes) -> None:
    with pytest.raises(Invalid):
        check_archive(data)


def test_a_database_is_told_from_an_archive() -> None:
    with pytest.raises(Invalid, match="SQLite"):
        check_archive(b"SQLite format 3\x00" + bytes(84))


def test_an_unknown_format_name_is_refused() -> None:
    with pytest.raises(Invalid, match="json, yaml or msgpack"):
        writer("xml", io.BytesIO())


# What a stranger might send


def test_yaml_with_aliases_is_refused(samples: dict[str, bytes]) -> None:
    bomb = b"format: holdfast-archive\nversion: 1\na: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    with pytest.raises(Corrupt, match="line 3: "):
        check_archive(bomb)
    for old, new in ((b"tenant: default", b"tenant: &x default"), (b"tenant: default", b"tenant: !!str default")):
        with pytest.raises(Corrupt, match="anchors, aliases and tags"):
            check_archive(samples["yaml"].replace(old, new, 1))


def test_yaml_with_a_python_object_is_refused() -> None:
    with pytest.raises(REFUSED):
        check_archive(b"format: holdfast-archive\nversion: !!python/object/apply:os.system ['true']\n")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b"- "])
def test_endless_nesting_is_refused(opening: bytes) -> None:
    head = {b"- ": b"format: holdfast-archive\nversion: 1\nselection:\n "}
    start = head.get(opening, b'{"format":"holdfast-archive","version":1,"selection":')
    with pytest.raises(REFUSED):
        check_archive(start + opening * 100_000)


def test_a_length_that_lies_costs_nothing() -> None:
    data = archive("msgpack")
    header = data[: 5 + int.from_bytes(data[1:5], "big")]
    for size, complaint in (
        (MAX_FRAME_BYTES + 1, "not the beginning of a frame"),
        (2**32 - 1, "not the beginning of a frame"),
        (MAX_FRAME_BYTES, "ends inside this frame"),
    ):
        with pytest.raises(Corrupt, match=f"byte {len(header)}: .*{complaint}"):
            check_archive(header + b"\xc6" + size.to_bytes(4, "big"))


def unsound(change: Callable[[ArchiveSection], ArchiveSection]) -> str:
    """The complaint about a section that is consistent with its own hash, as a forger would write it."""
    with pytest.raises(Corrupt) as caught:
        Audit(HEADER).section(change(section(encode(1), encode(2), keys=("a", "b"))))
    return str(caught.value)


def with_record(**fields: Any) -> Callable[[ArchiveSection], ArchiveSection]:
    return lambda old: msgspec.structs.replace(old, records=(msgspec.structs.replace(old.records[0], **fields),))


def with_strand(**fields: Any) -> Callable[[ArchiveSection], ArchiveSection]:
    return lambda old: msgspec.structs.replace(old, strands=(msgspec.structs.replace(old.strands[0], **fields),))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda s: msgspec.structs.replace(s, tenant=""), "tenant must not be empty"),
        (lambda s: msgspec.structs.replace(s, tenant="a\0"), "NUL"),
        (lambda s: msgspec.structs.replace(s, records=s.records * 2), "appears twice"),
        (lambda s: msgspec.structs.replace(s, strands=s.strands * 2), "appears twice"),
        (lambda s: msgspec.structs.replace(s, strands=()), "history of thread 't' is not here"),
        (lambda s: msgspec.structs.replace(s, shared={s.strands[0].stream: (3,)}), "no entry 3"),
        (with_record(head=1), "does not end where its history does"),
        (with_record(base=1), "does not end where its history does"),
        (with_record(digest=b"x" * 16), "does not end where its history does"),
        (with_record(id="other"), "does not end where its history does"),
        (with_record(stream=None), "does not end where its history does"),
        (with_record(version=0), "has no version"),
        (with_record(id=""), "0 characters"),
        (with_record(id="x" * 3000), "3000 characters"),
        (with_record(kind=""), "must not be empty"),
        (with_record(scope=Scope("x" * 600)), "600 bytes"),
        (with_record(tags=("a\0b",)), "NUL"),
        (with_record(body=b'j1{"a":1},"x":{}'), "does not decode"),
        (with_strand(base=1), "entry 1 of nothing"),
        (with_strand(digest=b"x" * 16), "entry 0 of nothing"),
        (with_strand(parent=7, base=1), "an entry 1 that is not here"),
        (with_strand(events=()), "does not end where its history does"),
    ],
)
def test_a_section_that_cannot_be_is_refused(
    change: Callable[[ArchiveSection], ArchiveSection], complaint: str
) -> None:
    assert complaint in unsound(change)


@pytest.mark.parametrize(
    ("bodies", "keys", "complaint"),
    [
        ((encode(1), encode(2)), ("a", "a"), "entry 2 of thread 't' repeats the key 'a'"),
        ((encode(1),), ("a\0",), "NUL"),
        ((b"j1",), (None,), "does not decode"),
        ((encode(1), b'j1{"role":'), (None, None), "entry 2 of thread 't' does not decode"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(
    bodies: tuple[bytes, ...], keys: tuple[str | None, ...], complaint: str
) -> None:
    with pytest.raises(Corrupt, match=complaint):
        Audit(HEADER).section(section(*bodies, keys=keys))


def test_a_repeated_position_is_refused_though_its_chain_holds() -> None:
    body = encode(1)
    first = Event("message", body, 1, None, 1, chain.link(GENESIS, 1, "message", None, 1, body))
    again = Event("message", body, 1, None, 1, chain.link(first.digest, 1, "message", None, 1, body))
    forged = ArchiveSection("default", "t", (), (Strand(5, "thread", "t", events=(first, again)),), {})
    with pytest.raises(Corrupt, match="stands where entry 2 should"):
        Audit(HEADER).section(forged)


def test_a_fork_must_continue_what_it_shares() -> None:
    parent = msgspec.structs.replace(section(encode(1), encode(2)), shared={2**62 + 1: (1,)})
    digest = parent.strands[0].events[0].digest
    for given_, fits in ((digest, True), (b"x" * 16, False)):
        audit = Audit(HEADER)
        audit.section(parent)
        fork = ArchiveSection("default", "f", (), (Strand(9, "thread", "f", 2**62 + 1, 1, given_),), {})
        if fits:
            audit.section(fork)
        else:
            with pytest.raises(Corrupt, match="does not continue the entry 1 it shares"):
                audit.section(fork)


def test_a_body_over_the_limit_is_refused() -> None:
    out = io.BytesIO()
    whole = section(b"e7" + bytes(MAX_BODY_BYTES))
    document, audit = writer("msgpack", out), Audit(HEADER)
    document.header(HEADER)
    document.section(whole, audit.section(whole))
    document.manifest(audit.manifest())
    with pytest.raises(Corrupt, match="at most 16,777,216"):
        check_archive(out.getvalue())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"stream":"', b'"stream":"0'),
        (b'"stream":"4', b'"stream":"F'),
        (b'"position":1', b'"position":-1'),
        (b'"position":1', b'"position":99999999999999999999'),
        (b'"time_us":101', b'"time_us":1.5'),
        (b'"digest":"', b'"digest":"zz'),
        (b'"kind":"message"', b'"kind":7'),
        (b'"body":1', b'"body":1,"body_text":"1"'),
        (b',"body":1}', b"}"),
        (b'"position":1', b'"extra":1,"position":1'),
        (b'"tenant":"default","thread"', b'"tenant":null,"thread"'),
        (b'"selection":{"tenant":"default"}', b'"selection":{"tenant":"other"}'),
        (b'"created_us":1', b'"created_us":2'),
    ],
)
def test_a_field_that_means_nothing_is_refused(old: bytes, new: bytes) -> None:
    data = archive("json", section(encode(1)))
    assert old in data
    with pytest.raises(Corrupt):
        check_archive(data.replace(old, new, 1))


# Where archives come from


class Pipe(io.RawIOBase):
    """A stream that can be read once, as standard input can."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._data.readinto(buffer)


def test_any_source_will_do(tmp_path: Any, samples: dict[str, bytes]) -> None:
    path = tmp_path / "archive"
    for data in samples.values():
        path.write_bytes(data)
        expected = check_archive(data)
        assert isinstance(expected, ArchiveManifest)
        assert check_archive(path) == expected
        assert check_archive(io.BytesIO(data)) == expected
        assert check_archive(io.BufferedReader(Pipe(data))) == expected


def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path: Any) -> None:
    with pytest.raises(NotFound):
        check_archive(tmp_path / "absent")
    with pytest.raises(HoldfastError):
        check_archive(tmp_path)


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_same_content_gives_the_same_bytes(fmt: str) -> None:
    outs = (io.BytesIO(), io.BytesIO())
    for out in outs:
        with sample() as store:
            store.export(out, format=fmt)
    assert outs[0].getvalue() == outs[1].getvalue()


def test_progress_is_told() -> None:
    calls: list[tuple[str, int, int]] = []
    with sample() as store, store.core.engine.snapshot() as view:
        out = io.BytesIO()
        export(view, Selection("default"), out, "json", time=1, progress=lambda *call: calls.append(call))
    check_archive(out.getvalue(), progress=lambda *call: calls.append(call))
    assert calls == [("export", 1, 2), ("export", 2, 2), ("check", 1, 0), ("check", 2, 0)]
