"""Archives as YAML, for people: the same document as the JSON, laid out for reading.

Values pass through real data here, so a body is written as a value only where encoding that value gives the stored
bytes again; any other body is carried as its JSON text. PyYAML is an extra and imported on first use.

Reading is stricter than YAML. It takes the parser's events and builds plain data itself: anchors and aliases (with
which a small file can ask for endless memory), tags, repeated keys and deep nesting are refused, and a plain scalar
is null, true, false, a number or text. Deliberately absent: PyYAML's constructors, safe or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from math import isfinite
from types import ModuleType
from typing import Any, BinaryIO, TypeVar

import msgspec

from holdfast.archive.as_json import section_of
from holdfast.archive.contents import (
    ArchiveHeader,
    ArchiveManifest,
    ArchiveSection,
    BodyForm,
    Item,
    Seal,
    admit,
    damage,
    section_form,
)
from holdfast.engine import codec
from holdfast.errors import Corrupt, Unsupported

T = TypeVar("T")
_HEADER = ("format", "version", "created_us", "selection")
_MAX_DEPTH = codec.MAX_DEPTH + 20
_READABLE_DEPTH = 20
_ENDLESS = 2**30
_STRING = "tag:yaml.org,2002:str"
_WORDS = {"null": None, "true": True, "false": False}
_INT = re.compile(r"-?[0-9]{1,19}\Z")
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*(?:e[-+][0-9]+)?\Z")
_encode = msgspec.json.Encoder().encode


class YamlWriter:
    """Writes an archive as it comes: each section is dumped by itself, and together they are one document."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._empty = True
        _yaml()

    def header(self, header: ArchiveHeader) -> None:
        self._dump(msgspec.to_builtins(header))

    def section(self, section: ArchiveSection, seal: Seal) -> None:
        if self._empty:
            self._out.write(b"sections:\n")
            self._empty = False
        form = section_form(section, seal, as_readable)
        self._dump([msgspec.json.decode(_encode(form))])

    def manifest(self, manifest: ArchiveManifest) -> None:
        if self._empty:
            self._out.write(b"sections: []\n")
        self._dump({"manifest": msgspec.to_builtins(manifest)})

    def _dump(self, value: Any) -> None:
        options = {"allow_unicode": True, "sort_keys": False, "width": _ENDLESS, "encoding": "utf-8"}
        self._out.write(_yaml().dump(value, Dumper=_dumper(), default_flow_style=False, **options))


def as_readable(body: bytes) -> BodyForm:
    """Show a body as a value where that is exact, as JSON text where it is not, as bytes where it is no JSON."""
    if body[:2] != codec.JSON:
        return BodyForm(body_bytes=body)
    try:
        value = msgspec.json.decode(body[2:])
        if _encode(value) == body[2:] and _is_readable(value, _READABLE_DEPTH):
            return BodyForm(msgspec.Raw(body[2:]))
        return BodyForm(body_text=body[2:].decode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return BodyForm(body_bytes=body)


def _is_readable(value: Any, left: int) -> bool:
    """Whether a value is nested no deeper than people can follow and PyYAML can go, and its numbers are ours."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return type(value) is not int or -(2**63) <= value < 2**63
    return left > 0 and all(_is_readable(item, left - 1) for item in value)


def read(file: BinaryIO) -> Iterator[Item]:
    """Yield the header, the sections and the manifest of a YAML archive."""
    yaml = _yaml()
    parser = _Parser(yaml, file)
    try:
        yield from _document(parser)
    except yaml.YAMLError as error:
        raise parser.damage(" ".join(str(error).split())) from None


def _document(parser: _Parser) -> Iterator[Item]:
    parser.begin()
    fields: dict[str, Any] = {}
    while (name := parser.key()) is not None:
        if name in fields or (name not in _HEADER and "format" not in fields):
            raise parser.damage(f"{name!r} does not belong here")
        if name == "sections":
            yield _header(parser, fields)
            yield from _sections(parser)
        fields[name] = parser.value() if name != "sections" else None
    parser.end()
    admit(fields.get("format"), fields.get("version"))
    if fields.keys() != {*_HEADER, "sections", "manifest"}:
        raise parser.damage("the archive ends before its manifest: it was cut short")
    yield parser.meaning(fields["manifest"], ArchiveManifest)


def _header(parser: _Parser, fields: dict[str, Any]) -> ArchiveHeader:
    admit(fields.get("format"), fields.get("version"))
    return parser.meaning(fields, ArchiveHeader)


def _sections(parser: _Parser) -> Iterator[Item]:
    for number, value in enumerate(parser.items(), 1):
        where = f"section {number}, which ends at line {parser.line}"
        try:
            text = _encode(value)
        except (msgspec.MsgspecError, ValueError) as error:
            raise damage(where, str(error), line=parser.line) from None
        yield section_of(text, where)


class _Parser:
    """Builds plain data from the parser's events, and knows the line it is at."""

    def __init__(self, yaml: ModuleType, file: BinaryIO) -> None:
        self._yaml = yaml
        self._events = yaml.parse(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.line = 1

    def begin(self) -> None:
        for expected in (self._yaml.StreamStartEvent, self._yaml.DocumentStartEvent, self._yaml.MappingStartEvent):
            self._expect(expected)

    def end(self) -> None:
        for expected in (self._yaml.DocumentEndEvent, self._yaml.StreamEndEvent):
            self._expect(expected)

    def key(self) -> str | None:
        """The next key of the mapping that is open, None at its end."""
        event = self._next()
        if isinstance(event, self._yaml.MappingEndEvent):
            return None
        if not isinstance(event, self._yaml.ScalarEvent):
            raise self.damage("a key must be text")
        return str(event.value)

    def items(self) -> Iterator[Any]:
        """The values of the sequence that begins here, one at a time."""
        self._expect(self._yaml.SequenceStartEvent)
        while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
            yield self._build(event, _MAX_DEPTH)

    def value(self) -> Any:
        return self._build(self._next(), _MAX_DEPTH)

    def meaning(self, value: Any, type: type[T]) -> T:
        try:
            return msgspec.convert(value, type)
        except (msgspec.MsgspecError, ValueError) as error:
            raise self.damage(str(error)) from None

    def damage(self, what: str) -> Corrupt:
        return damage(f"line {self.line}", what, line=self.line)

    def _expect(self, kind: Any) -> None:
        event = self._next()
        if not isinstance(event, kind):
            raise self.damage(f"{type(event).__name__} instead of {kind.__name__}")

    def _next(self) -> Any:
        event = next(self._events, None)
        if event is None:
            raise self.damage("the archive was cut short")
        self.line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None or getattr(event, "tag", None) is not None:
            raise self.damage("anchors, aliases and tags are not accepted")
        return event

    def _build(self, event: Any, depth: int) -> Any:
        if isinstance(event, self._yaml.ScalarEvent):
            return self._scalar(event.value) if event.implicit[0] else event.value
        if depth == 0:
            raise self.damage(f"nested deeper than {_MAX_DEPTH} levels")
        if isinstance(event, self._yaml.SequenceStartEvent):
            sequence: list[Any] = []
            while not isinstance(event := self._next(), self._yaml.SequenceEndEvent):
                sequence.append(self._build(event, depth - 1))
            return sequence
        if not isinstance(event, self._yaml.MappingStartEvent):
            raise self.damage("a value should be here")
        mapping: dict[str, Any] = {}
        while (name := self.key()) is not None:
            if name in mapping:
                raise self.damage(f"the key {name!r} appears twice")
            mapping[name] = self._build(self._next(), depth - 1)
        return mapping

    def _scalar(self, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            number = float(text)
            if not isfinite(number):
                raise self.damage(f"{text[:80]} is not a number that can be stored")
            return number
        return text


@cache
def _yaml() -> ModuleType:
    try:
        import yaml  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise Unsupported('YAML needs an extra: pip install "holdfast[yaml]"', extra="yaml") from error
    module: ModuleType = yaml
    return module


@cache
def _dumper() -> Any:
    """A dumper that writes no aliases, and text of several lines as such a block."""
    yaml = _yaml()

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def represent(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar(_STRING, text, style="|" if _is_block(text) else None)

    Dumper.add_representer(str, represent)
    return Dumper


def _is_block(text: str) -> bool:
    """Whether text reads well as a block and is certain to be read back from one."""
    lines = text.split("\n")
    if len(lines) == 1 or not lines[0] or lines[0][0] == " " or text.endswith("\n\n"):
        return False
    return all(line.isprintable() and not line.endswith(" ") for line in lines)
