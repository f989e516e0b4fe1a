"""What a state's schema is: a name, a version, a type, how long fields stay fresh, and how old states are migrated.

A schema is declared once, where its type is; there is one version of it, the code's. Older stored versions reach it
by migrations, each from one version to a later one on plain data. Nothing is guessed: a stored field that the type
would drop, a newer version, a gap in the chain: each is an error that names thread, revision and field.

Deliberately absent: reading and writing revisions (``state.py``), and looking up a type by its class name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar, get_origin

import msgspec

from holdfast.checks import check_several, check_whole
from holdfast.engine.codec import MAX_DEPTH, decode, encode
from holdfast.errors import (
    Invalid,
    MigrationFailed,
    MigrationMissing,
    SchemaTooNew,
    SchemaUnknown,
    StateInvalid,
    Unsupported,
    quoted,
)
from holdfast.ids import check_id
from holdfast.ledger import typed
from holdfast.ledger.json_path import Sign, covers, diff, parse, render

Migrate = Callable[[dict[str, Any]], dict[str, Any]]
Refresh = Callable[[Any, str], Any]
Kind = TypeVar("Kind", bound=type)
MigrateT = TypeVar("MigrateT", bound=Migrate)
RefreshT = TypeVar("RefreshT", bound=Refresh)

_DURATION = re.compile(
    r"(?=.)(?:([0-9]+)w)?(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?",
)
_OLDEST_PYDANTIC = (2, 11)


class Where(msgspec.Struct, frozen=True):
    """The place of a stored state, for errors."""

    thread: str
    revision: int

    def __str__(self) -> str:
        return f"thread {self.thread!r}, revision {self.revision}"


class Schema(msgspec.Struct, frozen=True):
    """A declared schema. ``fresh`` and ``critical`` hold patterns as text, in the form ``json_path.render`` gives."""

    name: str
    version: int
    type: Any
    fresh: Mapping[str, timedelta] = {}
    critical: tuple[str, ...] = ()


PLAIN = Schema("", 0, dict)


class _FieldPlace(NamedTuple):
    """Where a function was defined, to tell a reloaded module from a second function for the same thing."""

    module: str
    name: str
    file: str
    line: int
    load: Any

    def redefines(self, other: _FieldPlace) -> bool:
        # A reload gives a module another spec, which equals the old one but is not it; a notebook gives a cell that was
        # changed another file. Two functions of one name in one load of one file are two.
        again = self.load is not other.load or self.file != other.file or self.line == other.line
        return (self.module, self.name) == (other.module, other.name) and again


class _Registered(NamedTuple):
    call: Callable[..., Any]
    place: _FieldPlace
    target: int = 0


class Registry:
    """The schemas, migrations and refreshers that a program declares."""

    def __init__(self) -> None:
        self._names: dict[str, Schema] = {}
        self._types: dict[Any, Schema] = {}
        self._migrations: dict[tuple[str, int], _Registered] = {}
        self._refreshers: dict[tuple[str, str], _Registered] = {}

    def schema(
        self,
        name: str,
        version: int,
        *,
        fresh: Mapping[str, timedelta | str] | None = None,
        critical: Iterable[str] = (),
    ) -> Callable[[Kind], Kind]:
        """Declare the class below as the state ``name``.

        ``fresh`` says how long a field counts as confirmed, as a timedelta or as text such as "10m" or "1h30m";
        ``critical`` names fields that you must not act on while stale or never confirmed. Both take patterns such as
        ``confirmed_facts.*``, in stored names. One name is one class, and one class has one name.
        """
        check_id(name, "schema name")
        _check_version(version, 1)
        if fresh is not None and not isinstance(fresh, Mapping):
            raise Invalid(f"fresh is a dict of paths and durations, not {quoted(fresh)}")
        limits = {_pattern(path): duration(limit) for path, limit in (fresh or {}).items()}
        urgent = tuple(dict.fromkeys(_pattern(path) for path in check_several("critical paths", critical)))

        def declare(kind: Kind) -> Kind:
            _check_type(kind, (*limits, *urgent))
            self._declare(Schema(name, version, kind, limits, urgent))
            return kind

        return declare

    def _declare(self, schema: Schema) -> None:
        old, other = self._names.get(schema.name), self._types.get(schema.type)
        if old is not None and _full_name(old.type) != _full_name(schema.type):
            raise Invalid(
                f"schema {schema.name!r} is already declared by {_full_name(old.type)}; "
                f"{_full_name(schema.type)} needs another name",
                schema=schema.name,
            )
        if other is not None and other.name != schema.name:
            raise Invalid(
                f"{_full_name(schema.type)} is already declared as schema {other.name!r}; it cannot also be "
                f"{schema.name!r}",
                schema=schema.name,
            )
        if old is not None:
            self._types.pop(old.type, None)
        self._names[schema.name] = self._types[schema.type] = schema

    def migration(self, name: str, from_version: int, to_version: int) -> Callable[[MigrateT], MigrateT]:
        """Declare the function below as the migration of ``name`` from one version to a later one.

        It gets its own copy of the document and returns the new one. There is one migration from each version. From
        version 0, it migrates plain dicts that were saved before there was a schema.
        """
        check_id(name, "schema name")
        _check_version(from_version, 0)
        _check_version(to_version, 1)
        if to_version <= from_version:
            raise Invalid(f"a migration goes to a later version, not from {from_version} to {to_version}", schema=name)

        def declare(function: MigrateT) -> MigrateT:
            new = _Registered(function, _place(function), to_version)
            what = f"migration of {name!r} from version {from_version}"
            _enter(self._migrations, (name, from_version), new, what)
            return function

        return declare

    def refresher(self, name: str, path: str) -> Callable[[RefreshT], RefreshT]:
        """Declare the function below as the refresher of a field of ``name``; ``path`` may be a pattern.

        It is called with the state's value and the path of the field, outside any commit, and returns the field's new
        value.
        """
        check_id(name, "schema name")
        pattern = _pattern(path)

        def declare(function: RefreshT) -> RefreshT:
            _enter(
                self._refreshers,
                (name, pattern),
                _Registered(function, _place(function)),
                f"refresher of {name!r} for {pattern}",
            )
            return function

        return declare

    def named(self, name: str) -> Schema | None:
        """Return the schema of this name, if it is declared."""
        return self._names.get(name) if isinstance(name, str) else None

    def declared(self, kind: Any) -> Schema | None:
        """Return the schema that a class was declared as."""
        return self._types.get(kind) if isinstance(kind, type) else None

    def names(self) -> list[str]:
        return sorted(self._names)

    def step(self, name: str, version: int) -> tuple[int, Migrate] | None:
        """Return the version that the migration from ``version`` leads to, and the migration."""
        found = self._migrations.get((check_id(name, "schema name"), check_whole("a version", version)))
        return None if found is None else (found.target, found.call)

    def refresher_of(self, name: str, path: str) -> Refresh | None:
        """Return the refresher of a field: the one whose pattern has the fewest wildcards."""
        steps = parse(path)
        fitting = [
            (parse(pattern, pattern=True).count(Sign.ANY), pattern, found.call)
            for (schema, pattern), found in self._refreshers.items()
            if schema == name and covers(parse(pattern, pattern=True), steps)
        ]
        return min(fitting, key=lambda item: item[:2])[2] if fitting else None


def duration(limit: timedelta | str) -> timedelta:
    """Parse how long something stays fresh: a timedelta, or text from weeks to seconds, such as "90s" or "1h30m"."""
    given = limit
    if isinstance(limit, str):
        found = _DURATION.fullmatch(limit)
        numbers = [int(text or 0) for text in found.groups()] if found and len(limit) < 100 else [0] * 5
        try:
            limit = timedelta(**dict(zip(("weeks", "days", "hours", "minutes", "seconds"), numbers, strict=True)))
        except OverflowError:
            limit = timedelta(0)
    if not isinstance(limit, timedelta) or limit <= timedelta(0):
        raise Invalid(f"{given!r} is not a duration; write a timedelta or text such as '90s', '10m', '1h30m' or '30d'")
    return limit


def _pattern(path: str) -> str:
    steps = parse(path, pattern=True)
    if not steps:
        raise Invalid("the empty path is the whole document; name a field of it", path=path)
    return render(steps)


def _check_version(version: int, least: int) -> None:
    if type(version) is not int or not least <= version < 2**63:
        raise Invalid(f"a version is a whole number, {least} or more, not {quoted(version)}", version=version)


def _check_type(kind: Any, patterns: Iterable[str]) -> None:
    known = typed.fields(kind) if isinstance(kind, type) else None
    if known is None or not typed.is_document(kind):
        raise Invalid(
            f"{kind!r} cannot be a schema; use a pydantic model, a dataclass (with @schema above @dataclass), a "
            "TypedDict or a msgspec Struct that is stored as a dict"
        )
    if typed.is_pydantic(kind):
        _check_pydantic()
    unknown = [pattern for pattern in patterns if parse(pattern, pattern=True)[0] not in (*known, Sign.ANY)]
    if unknown and not typed.is_open(kind):
        raise Invalid(
            f"{unknown[0]!r}: {_full_name(kind)} has no such field; it has {', '.join(known)}", path=unknown[0]
        )


def _check_pydantic() -> None:
    version = getattr(sys.modules.get("pydantic"), "VERSION", "")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < _OLDEST_PYDANTIC:
        needed = ".".join(map(str, _OLDEST_PYDANTIC))
        raise Unsupported(f"pydantic {version} is too old to declare a schema; install {needed} or newer")


def _full_name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _place(function: Callable[..., Any]) -> _FieldPlace:
    code = getattr(function, "__code__", None)
    load = getattr(function, "__globals__", {}).get("__spec__")
    return _FieldPlace(
        getattr(function, "__module__", "") or "",
        getattr(function, "__qualname__", repr(function)),
        getattr(code, "co_filename", ""),
        getattr(code, "co_firstlineno", 0),
        load,
    )


def _enter(table: dict[Any, _Registered], key: Any, new: _Registered, what: str) -> None:
    old = table.get(key)
    if old is not None and not new.place.redefines(old.place):
        raise Invalid(f"there is already a {what}, in {old.place.file} line {old.place.line}", schema=key[0])
    table[key] = new


# Finding the schema of a value


def find(registry: Registry, value: Any) -> Schema:
    """Return the schema of a class, an instance, a name, or a Schema itself; a dict is ``PLAIN``.

    An instance of a TypedDict is a dict like any other: name its schema by class or name.
    """
    if isinstance(value, Schema):
        return value
    if isinstance(value, str):
        return _named(registry, value)
    kind = value if isinstance(value, type) else type(value)
    if kind is dict or get_origin(value) is dict:
        return PLAIN
    schema = registry.declared(kind)
    if schema is not None:
        return schema
    twins = [name for name in registry.names() if _full_name(_named(registry, name).type) == _full_name(kind)]
    if twins:
        raise Invalid(f"this {kind.__name__} is from before its module was reloaded; create it again", schema=twins[0])
    raise Invalid(
        f"{kind.__name__} is not declared as a schema; put @holdfast.schema({kind.__name__.lower()!r}, version=1) "
        "on it, or use a dict",
        type=_full_name(kind),
    )


def registered(registry: Registry, name: str, where: Where) -> Schema:
    """Return the schema that a stored state names, ``PLAIN`` for the empty name; otherwise ``SchemaUnknown``."""
    return _named(registry, name, where) if name else PLAIN


def _named(registry: Registry, name: str, where: Where | None = None) -> Schema:
    schema = registry.named(name)
    if schema is not None:
        return schema
    known = ", ".join(registry.names()) or "none"
    place = f"{where}: " if where else ""
    raise SchemaUnknown(
        f"{place}no schema {name!r} is declared (declared: {known}); import the module that declares it",
        schema=name, **_facts(where),
    )  # fmt: skip


def _facts(where: Where | None) -> dict[str, Any]:
    return {"thread": where.thread, "revision": where.revision} if where else {}


# Values to plain data and back


def dump(value: Any) -> Any:
    """Turn a value, or a part of one, into plain data of its own.

    Plain data is copied as it is, and what is not plain inside it stays for the codec to refuse; a typed value becomes
    plain as its type says.
    """
    if value is None or type(value) in (dict, list, tuple, str, int, float, bool):
        return typed.settled(value, value)
    return typed.to_plain(value)


def prepare(schema: Schema, value: Any, where: Where) -> dict[str, Any]:
    """Turn a whole state into the document to store, and make sure that it can be read back unchanged.

    ``value`` is an instance of the schema's type, or a dict of its fields, typed or as stored. ``StateInvalid`` when it
    does not fit, when a field would be lost, or when something would be read back changed.
    """
    if type(value) is not dict and not (isinstance(schema.type, type) and _is_instance(value, schema.type)):
        wanted = (
            "without a schema is a dict"
            if schema is PLAIN
            else f"{schema.name!r} is a {schema.type.__name__} or a dict"
        )
        raise Invalid(f"a state {wanted}, not {type(value).__name__}", schema=schema.name)
    if schema is PLAIN:
        return dump(value)  # type: ignore[no-any-return]
    revived, kept = _revived(schema, typed.to_plain(value), where)
    try:
        changed = typed.drift(value, revived, lenient=type(value) is dict)
    except RecursionError:
        raise _too_deep(where) from None
    if changed is not None:
        raise _invalid(schema, where, changed)
    return kept


def _is_instance(value: Any, kind: type) -> bool:
    return not typed.is_typed_dict(kind) and isinstance(value, kind)


def revive(schema: Schema, plain: Any, where: Where) -> Any:
    """Turn a stored document of the schema's version into its type.

    ``StateInvalid`` names the field that does not fit, or the stored field that the type does not know. The value may
    share parts with ``plain``.
    """
    return _revived(schema, plain, where)[0]


def revived(schema: Schema, plain: Any, where: Where) -> tuple[Any, tuple[str, ...]]:
    """The same, and the fields that the document lacks, which the type filled in by default."""
    value, kept = _revived(schema, plain, where)
    return value, () if kept == plain else tuple(one.path for one in diff(plain, kept) if one.action == "added")


def _revived(schema: Schema, plain: Any, where: Where) -> tuple[Any, dict[str, Any]]:
    """The value, and the document it turns back into."""
    if not isinstance(plain, dict):
        raise _invalid(schema, where, typed.Misfit((), f"expected a dict, got {type(plain).__name__}"))
    if schema is PLAIN:
        return plain, plain
    try:
        value = typed.from_plain(schema.type, plain)
        kept = typed.to_plain(value)
        gone = typed.lost(plain, kept, value)
    except typed.Misfit as misfit:
        raise _invalid(schema, where, misfit) from misfit.__cause__ or misfit
    except RecursionError:
        raise _too_deep(where) from None
    if gone is not None:
        why = (
            f"{schema.type.__name__} has no such field, so it would be lost; add it to the type, or register a "
            "migration that moves or drops it"
        )
        raise _invalid(schema, where, typed.Misfit(gone, why))
    return value, kept


def _invalid(schema: Schema, where: Where, misfit: typed.Misfit) -> StateInvalid:
    field = render(misfit.path)
    label = f"{schema.name!r} version {schema.version}" if schema.name else "a plain dict"
    return StateInvalid(
        f"{where}: {field or 'the state'} does not fit {label}: {misfit.why}",
        field=field, expected=misfit.why, schema=schema.name, version=schema.version, **_facts(where),
    )  # fmt: skip


def _too_deep(where: Where) -> Invalid:
    return Invalid(f"{where}: the state is nested deeper than {MAX_DEPTH} levels", **_facts(where))


# Old versions to new ones


def migrate(registry: Registry, name: str, version: int, plain: Any, where: Where) -> tuple[Any, int | None]:
    """Bring a stored document to the code's version; return it and the version it came from, or None if unchanged.

    The input stays unchanged, whatever a migration does. A plain dict is brought under a schema by giving that schema's
    name and version 0.
    """
    schema = registered(registry, name, where)
    if version == schema.version:
        return plain, None
    if version > schema.version:
        raise SchemaTooNew(
            f"{where}: the state is {name!r} version {version}, and this program knows only version {schema.version}; "
            "update the program",
            schema=name, version=version, known=schema.version, **_facts(where),
        )  # fmt: skip
    chain = _chain(registry, schema, version, where)
    document = decode(encode(plain))
    for number, (target, function) in chain:
        document = _run(function, document, _MigrationRun(name, number, target, where))
    return document, version


class _MigrationRun(NamedTuple):
    """Which migration of which state is running."""

    name: str
    source: int
    target: int
    where: Where

    def failed(self, why: str) -> MigrationFailed:
        return MigrationFailed(
            f"{self.where}: the migration of {self.name!r} {self.source} → {self.target} {why}",
            schema=self.name, from_version=self.source, to_version=self.target, **_facts(self.where),
        )  # fmt: skip


def _chain(registry: Registry, schema: Schema, version: int, where: Where) -> list[tuple[int, tuple[int, Migrate]]]:
    """The migrations to run. A gap is found before the first of them runs."""
    chain = []
    while version < schema.version:
        step = registry.step(schema.name, version)
        if step is None or step[0] > schema.version:
            needed = (
                f'; write one: @holdfast.migration("{schema.name}", {version}, {version + 1}) over a function that '
            )
            needed += "takes the old document and returns the new one"
            detail = needed if step is None else f"; the one from {version} goes to {step[0]}, past the code's version"
            raise MigrationMissing(
                f"{where}: no migration of {schema.name!r} {version} → {version + 1} on the way to version "
                f"{schema.version}{detail}",
                schema=schema.name, from_version=version, to_version=version + 1, **_facts(where),
            )  # fmt: skip
        chain.append((version, step))
        version = step[0]
    return chain


def _run(function: Migrate, document: dict[str, Any], run: _MigrationRun) -> dict[str, Any]:
    try:
        result = function(document)
    except Exception as error:
        raise run.failed(f"raised {type(error).__name__}: {error}") from error
    if type(result) is not dict:
        hint = "; return the document, even if you changed it in place" if result is None else ""
        raise run.failed(f"returned {type(result).__name__}, not a dict{hint}")
    try:
        return decode(encode(result, "result"))  # type: ignore[no-any-return]
    except Invalid as error:
        raise run.failed(f"returned something that cannot be stored: {error}") from error


DEFAULT = Registry()
schema = DEFAULT.schema
migration = DEFAULT.migration
refresher = DEFAULT.refresher
