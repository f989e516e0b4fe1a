"""A schema declares a state; what is stored reaches today's type by migrations, or is a clear error."""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
import textwrap
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.dataclasses import dataclass as pydantic_dataclass

from holdfast.engine.codec import decode, encode
from holdfast.errors import (
    HoldfastError,
    Invalid,
    MigrationFailed,
    MigrationMissing,
    SchemaTooNew,
    SchemaUnknown,
    StateInvalid,
    Unsupported,
)
from holdfast.ledger import schema as schemas
from holdfast.ledger import typed
from holdfast.ledger.schema import DEFAULT, PLAIN, Registry, Schema, Where, duration, find, migrate, prepare, revive

HERE = Where("trip-42", 7)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
plain_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text("ab", max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)),
    max_leaves=10,
)
plain_dicts = st.dictionaries(st.text("abc", min_size=1, max_size=2), plain_values, max_size=4)


class Colour(Enum):
    RED = "red"


class PydanticTask(pydantic.BaseModel):
    status: str = "open"


class PydanticTrip(pydantic.BaseModel):
    city: str
    when: datetime
    task: PydanticTask | None = None
    tags: set[str] = set()


@dataclasses.dataclass
class DataTask:
    status: str = "open"


@dataclasses.dataclass
class DataTrip:
    city: str
    when: datetime
    task: DataTask | None = None
    tags: set[str] = dataclasses.field(default_factory=set)


class StructTask(msgspec.Struct):
    status: str = "open"


class StructTrip(msgspec.Struct):
    city: str
    when: datetime
    task: StructTask | None = None
    tags: set[str] = set()


class DictTask(TypedDict):
    status: str


class DictTrip(TypedDict):
    city: str
    when: datetime
    task: NotRequired[DictTask | None]
    tags: NotRequired[set[str]]


KINDS: list[tuple[Any, Any]] = [
    (PydanticTrip, PydanticTask), (DataTrip, DataTask), (StructTrip, StructTask), (DictTrip, DictTask)
]  # fmt: skip
each_kind = pytest.mark.parametrize(("kind", "task"), KINDS, ids=lambda kind: kind.__name__)


def declared(kind: Any, version: int = 1, **options: Any) -> tuple[Registry, Schema]:
    registry = Registry()
    registry.schema("trip", version, **options)(kind)
    return registry, find(registry, kind)


def refused(schema: Schema, plain: Any) -> StateInvalid:
    with pytest.raises(StateInvalid) as caught:
        revive(schema, plain, HERE)
    assert (caught.value.thread, caught.value.revision) == ("trip-42", 7)
    assert "thread 'trip-42', revision 7" in str(caught.value)
    return caught.value


# Declaring


@each_kind
def test_every_kind_of_type_can_be_declared(kind: Any, task: Any) -> None:
    registry, schema = declared(kind, 3, fresh={"task.status": "10m"}, critical=["city", "city"])
    assert schema == Schema("trip", 3, kind, {"task.status": timedelta(minutes=10)}, ("city",))
    assert registry.named("trip") is registry.declared(kind) is schema
    assert registry.names() == ["trip"]


def test_declaring_gives_the_class_back_and_asks_nothing_of_it() -> None:
    assert Registry().schema("trip", version=1)(StructTrip) is StructTrip


def test_a_typed_dict_of_typing_extensions_is_one_too() -> None:
    extensions = pytest.importorskip("typing_extensions")
    kind = extensions.TypedDict("kind", {"a": int})
    _, schema = declared(kind)
    assert revive(schema, {"a": 1}, HERE) == {"a": 1}


class NotData:
    pass


class Listed(msgspec.Struct, array_like=True):
    a: int = 0


class Bare(pydantic.RootModel[int]):
    pass


@pytest.mark.parametrize("kind", [NotData, dict, int, Listed, Bare, "text", None])
def test_what_is_no_document_type_cannot_be_declared(kind: Any) -> None:
    with pytest.raises(Invalid, match="cannot be a schema"):
        Registry().schema("trip", 1)(kind)


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None])
def test_a_version_is_a_whole_number_from_one(version: Any) -> None:
    with pytest.raises(Invalid, match="a version is a whole number"):
        Registry().schema("trip", version)


@pytest.mark.parametrize("name", ["", 3, "a\x00b", "x" * 600])
def test_a_schema_needs_a_name(name: Any) -> None:
    for declare in (
        lambda: Registry().schema(name, 1),
        lambda: Registry().migration(name, 1, 2),
        lambda: Registry().refresher(name, "a"),
    ):
        with pytest.raises(Invalid, match="schema name"):
            declare()


def test_one_name_is_one_class() -> None:
    registry, _ = declared(DataTrip)
    with pytest.raises(Invalid, match=r"already declared by .*DataTrip"):
        registry.schema("trip", 2)(StructTrip)
    with pytest.raises(Invalid, match="already declared as schema 'trip'"):
        registry.schema("voyage", 1)(DataTrip)


def test_a_class_defined_again_takes_the_place_of_the_old_one() -> None:
    registry = Registry()

    def define(version: int) -> Any:
        @registry.schema("trip", version)
        class Trip(msgspec.Struct):
            a: int = 0

        return Trip

    old, new = define(1), define(2)
    assert find(registry, new).version == 2
    with pytest.raises(Invalid, match="before its module was reloaded"):
        find(registry, old())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("2h", 7_200),
        ("30d", 2_592_000),
        ("1w", 604_800),
        ("1h30m", 5_400),
        ("1d0h1s", 86_401),
    ],
)
def test_durations_are_text_or_timedeltas(text: str, seconds: int) -> None:
    assert duration(text) == duration(timedelta(seconds=seconds)) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "limit",
    ["", "10", "m", "10 m", "1.5h", "30m1h", "-1h", "0s", "10M", "\u0661m", "9" * 50 + "d", "9" * 5_000 + "s", 600,
     None, timedelta(0), timedelta(-1)],
)  # fmt: skip
def test_what_is_no_duration_is_refused_at_declaration(limit: Any) -> None:
    with pytest.raises(Invalid, match="is not a duration"):
        Registry().schema("trip", 1, fresh={"city": limit})


def test_paths_are_checked_at_declaration() -> None:
    for options in ({"fresh": {"a..b": "1h"}}, {"critical": ["a["]}, {"fresh": {"a[+]": "1h"}}, {"critical": [""]}):
        with pytest.raises(Invalid):
            Registry().schema("trip", 1, **options)
    with pytest.raises(Invalid, match="must be a list"):
        Registry().schema("trip", 1, critical="city")
    with pytest.raises(Invalid, match=r"'town\.x': .*DataTrip has no such field; it has city, when, task, tags"):
        Registry().schema("trip", 1, critical=["town.x"])(DataTrip)
    declared(DataTrip, critical=["*"])


def test_a_model_that_keeps_unknown_fields_may_have_any_path() -> None:
    class Open(pydantic.BaseModel, extra="allow"):
        a: int = 0

    _, schema = declared(Open, critical=["other"])
    assert prepare(schema, Open.model_validate({"a": 1, "other": [2]}), HERE) == {"a": 1, "other": [2]}
    with pytest.raises(StateInvalid, match="other does not fit"):
        prepare(schema, Open.model_validate({"other": NOON}), HERE)


def test_old_pydantic_is_refused_with_the_version_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pydantic, "VERSION", "2.9.1")
    with pytest.raises(Unsupported, match=r"pydantic 2\.9\.1 is too old .* 2\.11 or newer"):
        Registry().schema("trip", 1)(PydanticTrip)


def test_there_is_one_default_registry() -> None:
    assert isinstance(DEFAULT, Registry)
    for name in ("schema", "migration", "refresher"):
        assert getattr(schemas, name) == getattr(DEFAULT, name)


def test_pydantic_is_never_imported() -> None:
    code = "import sys, holdfast.ledger.schema, holdfast.ledger.agent_state; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Migrations and refreshers


@pytest.mark.parametrize(("source", "target"), [(2, 2), (3, 2), (-1, 1), (True, 2), (1, "2"), (0, 0)])
def test_a_migration_goes_forward(source: Any, target: Any) -> None:
    with pytest.raises(Invalid):
        Registry().migration("trip", source, target)


def test_there_is_one_migration_from_each_version() -> None:
    registry = Registry()

    @registry.migration("trip", 1, 2)
    def _(old: dict[str, Any]) -> dict[str, Any]:
        return old

    with pytest.raises(Invalid, match=r"already a migration of 'trip' from version 1, in .*test_schema\.py line \d+"):

        @registry.migration("trip", 1, 3)
        def _(old: dict[str, Any]) -> dict[str, Any]:
            return old

    with pytest.raises(Invalid):
        registry.migration("trip", 1, 2)(dict)
    registry.migration("other", 1, 2)(dict)
    registry.migration("trip", 2, 3)(dict)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    source = """
        from holdfast.ledger.schema import Registry
        import msgspec
        registry = globals().get("registry") or Registry()
        @registry.schema("trip", 2)
        class Trip(msgspec.Struct):
            a: int = 0
        @registry.migration("trip", 1, 2)
        def _(old): return {"a": 1}
        @registry.refresher("trip", "a")
        def _(state, path): return 1
    """
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "reloaded_trip", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "reloaded_trip.py").write_text(textwrap.dedent(source))
    return importlib.import_module("reloaded_trip")


def test_a_reloaded_module_declares_again(module: ModuleType, tmp_path: Path) -> None:
    changed = (tmp_path / "reloaded_trip.py").read_text().replace("def _(old)", "\n\ndef _(old)").replace("1}", "2}")
    (tmp_path / "reloaded_trip.py").write_text(changed)
    importlib.reload(module)
    assert migrate(module.registry, "trip", 1, {}, HERE) == ({"a": 2}, 1)
    assert find(module.registry, module.Trip()).version == 2


def test_the_refresher_of_a_path_is_the_most_exact_one() -> None:
    registry = Registry()

    @registry.refresher("trip", "facts.*")
    def every(state: Any, path: str) -> Any:
        return path

    @registry.refresher("trip", "facts.home")
    def home(state: Any, path: str) -> Any:
        return state

    assert registry.refresher_of("trip", "facts.home") is home
    assert registry.refresher_of("trip", 'facts["home.town"]') is every
    assert registry.refresher_of("trip", "facts") is None
    assert registry.refresher_of("other", "facts.home") is None
    with pytest.raises(Invalid, match=r"already a refresher of 'trip' for facts\.home"):
        registry.refresher("trip", '["facts"].home')(every)


# Finding


@each_kind
def test_the_schema_of_a_class_an_instance_or_a_name(kind: Any, task: Any) -> None:
    registry, schema = declared(kind)
    assert find(registry, kind) is find(registry, "trip") is find(registry, schema) is schema
    value = kind(city="Lisbon", when=NOON)
    assert find(registry, value) is (PLAIN if kind is DictTrip else schema)


def test_a_dict_is_plain() -> None:
    assert find(Registry(), {}) is find(Registry(), dict) is find(Registry(), dict[str, Any]) is PLAIN
    assert (PLAIN.name, PLAIN.version) == ("", 0)


def test_what_is_not_declared_is_not_guessed() -> None:
    class Child(DataTrip):
        pass

    registry, _ = declared(DataTrip)
    for value in (StructTask(), StructTask, Child("Lisbon", NOON), None, [1]):
        with pytest.raises(Invalid, match="is not declared as a schema"):
            find(registry, value)
    with pytest.raises(SchemaUnknown, match=r"no schema 'voyage' is declared \(declared: trip\)"):
        find(registry, "voyage")


# Values to plain data and back


@each_kind
def test_a_value_comes_back_as_it_was(kind: Any, task: Any) -> None:
    _, schema = declared(kind)
    value = kind(city="Lisbon", when=NOON, task=task(status="done"), tags={"b", "a", "c"})
    plain = prepare(schema, value, HERE)
    assert plain == {
        "city": "Lisbon", "when": "2026-03-01T12:00:00Z", "task": {"status": "done"}, "tags": ["a", "b", "c"]
    }  # fmt: skip
    stored = decode(encode(plain))
    assert revive(schema, stored, HERE) == value
    assert prepare(schema, stored, HERE) == plain


@each_kind
def test_the_field_that_does_not_fit_is_named(kind: Any, task: Any) -> None:
    _, schema = declared(kind)
    good = {"city": "Lisbon", "when": "2026-03-01T12:00:00Z", "tags": []}
    for changes, field, why in (
        ({"task": {"status": 5}}, "task.status", "str"),
        ({"when": "yesterday"}, "when", "date"),
        ({"tags": ["a", 7]}, "tags[1]", "str"),
    ):
        error = refused(schema, good | changes)
        assert error.field == field
        assert why in error.expected.lower()
        assert field in str(error)
        assert error.__cause__ is not None
    missing = refused(schema, {"when": good["when"]})
    assert missing.field == "city"
    assert "required" in missing.expected
    assert refused(schema, [good]).field == ""


@each_kind
def test_a_stored_field_that_the_type_does_not_know_is_no_silent_loss(kind: Any, task: Any) -> None:
    _, schema = declared(kind)
    good = {"city": "Lisbon", "when": "2026-03-01T12:00:00Z", "task": {"status": "open"}, "tags": []}
    for stored, field in ((good | {"seat": None}, "seat"), (good | {"task": {"status": "x", "due": 1}}, "task.due")):
        error = refused(schema, stored)
        assert error.field == field
        assert "migration" in str(error)


def test_plain_dicts_come_back_as_they_are() -> None:
    value: dict[str, Any] = {"a": (1, [2, {"b": None}]), "c": "x"}
    assert prepare(PLAIN, value, HERE) == {"a": [1, [2, {"b": None}]], "c": "x"}
    assert prepare(PLAIN, value, HERE)["a"][1][1] is not value["a"][1][1]
    assert revive(PLAIN, {"a": 1}, HERE) == {"a": 1}
    assert "plain dict" in str(refused(PLAIN, None))


def test_what_is_not_plain_in_a_plain_dict_is_for_the_codec_to_refuse() -> None:
    with pytest.raises(Invalid, match=r"value\.a\.when: datetime is not plain data"):
        encode(prepare(PLAIN, {"a": {"when": NOON}}, HERE))
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(Invalid, match="nested deeper"):
        encode(prepare(PLAIN, deep, HERE))


def test_dump_takes_parts_too() -> None:
    assert schemas.dump(StructTask("done")) == {"status": "done"}
    assert schemas.dump(NOON) == "2026-03-01T12:00:00Z"
    assert schemas.dump({3, 1}) == [1, 3]
    assert schemas.dump({"a", 1}) == ["a", 1]
    assert schemas.dump(None) is None
    assert schemas.dump((1, (2,))) == [1, [2]]


def test_prepare_takes_the_type_or_a_dict_with_its_fields() -> None:
    _, schema = declared(DataTrip)
    plain = prepare(schema, {"city": "Lisbon", "when": NOON, "task": DataTask("done")}, HERE)
    assert plain == {"city": "Lisbon", "when": "2026-03-01T12:00:00Z", "task": {"status": "done"}, "tags": []}
    for value in (StructTask(), None, [1]):
        with pytest.raises(Invalid, match="is a DataTrip or a dict, not"):
            prepare(schema, value, HERE)
    with pytest.raises(Invalid, match="a state without a schema is a dict, not list"):
        prepare(PLAIN, [1], HERE)
    _, schema = declared(DictTrip)
    with pytest.raises(Invalid, match="not StructTask"):
        prepare(schema, StructTask(), HERE)


# What would come back different is refused when it is saved, not when it is needed


@dataclasses.dataclass
class Loose:
    anything: Any = None
    number: float = 0.0
    task: DataTask | None = None
    counts: dict[int, str] = dataclasses.field(default_factory=dict)


class LooseDict(TypedDict):
    anything: Any


@dataclasses.dataclass
class LateTask(DataTask):
    late: bool = True


@pytest.mark.parametrize(
    "anything",
    [
        NOON,
        Decimal("1.5"),
        UUID(int=1),
        b"x",
        {1, 2},
        Colour.RED,
        StructTask(),
        PydanticTask(),
        {1: "a"},
        [{"a": NOON}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_untyped_place_holds_plain_data_only(anything: Any) -> None:
    _, schema = declared(Loose)
    with pytest.raises(StateInvalid) as caught:
        prepare(schema, Loose(anything), HERE)
    assert caught.value.field.startswith("anything")


@pytest.mark.parametrize("value", [Loose(task=LateTask()), Loose(number="1"), Loose(task={"status": "x"})])  # type: ignore[arg-type]
def test_a_value_of_another_type_than_declared_is_refused(value: Loose) -> None:
    _, schema = declared(Loose)
    with pytest.raises(StateInvalid):
        prepare(schema, value, HERE)


@pytest.mark.parametrize(
    "value", [Loose((1, (2, 3))), Loose(number=1), Loose(counts={1: "a"}), Loose({"a": [None, True, 1.5]})]
)
def test_what_means_the_same_is_accepted(value: Loose) -> None:
    _, schema = declared(Loose)
    again = prepare(schema, revive(schema, prepare(schema, value, HERE), HERE), HERE)
    assert again == prepare(schema, value, HERE)


@pytest.mark.parametrize("anything", [NOON, {"deep": [NOON]}, {1: "a"}, {"set": {1}}])
@pytest.mark.parametrize("kind", [Loose, LooseDict])
def test_a_dict_of_fields_is_held_to_the_same(kind: Any, anything: Any) -> None:
    _, schema = declared(kind)
    with pytest.raises(StateInvalid) as caught:
        prepare(schema, {"anything": anything}, HERE)
    assert caught.value.field.startswith("anything")


def test_a_dict_of_fields_may_be_as_stored() -> None:
    _, schema = declared(Loose)
    given = {"task": {"status": "done"}, "number": 1, "counts": {"1": "a"}}
    assert prepare(schema, given, HERE) == given | {"anything": None}

    class Tidy(pydantic.BaseModel, str_strip_whitespace=True):
        name: str

    _, schema = declared(Tidy)
    assert prepare(schema, {"name": " Ana "}, HERE) == {"name": "Ana"}


@dataclasses.dataclass(frozen=True)
class Leaf:
    name: str = "x"


@dataclasses.dataclass
class Tree:
    leaves: list[Leaf] = dataclasses.field(default_factory=list)
    bag: set[Leaf] = dataclasses.field(default_factory=set)
    depth: int = dataclasses.field(default=3, init=False)
    unset: int | msgspec.UnsetType = msgspec.UNSET


def test_defaults_of_dataclasses_are_written_out() -> None:
    _, schema = declared(Tree)
    tree = revive(schema, {"leaves": [{}], "bag": [{}]}, HERE)
    assert tree.leaves == [Leaf()]
    assert prepare(schema, tree, HERE) == {"leaves": [{"name": "x"}], "bag": [{"name": "x"}], "depth": 3}
    assert prepare(schema, Tree(), HERE) == {"leaves": [], "bag": [], "depth": 3}


def test_a_secret_that_a_model_hides_is_not_stored_as_stars() -> None:
    class Login(pydantic.BaseModel):
        password: pydantic.SecretStr

    _, schema = declared(Login)
    with pytest.raises(StateInvalid, match=r"password does not fit .* would be read back changed"):
        prepare(schema, Login(password=pydantic.SecretStr("hunter2")), HERE)


def test_what_no_type_explains_is_named() -> None:
    _, schema = declared(Loose)
    with pytest.raises(Invalid, match=r"anything\.x\[1\]: NotData cannot be stored") as caught:
        prepare(schema, Loose({"x": [1, NotData()]}), HERE)
    assert caught.value.path == "anything.x[1]"
    with pytest.raises(Invalid, match="cannot be turned into plain data"):
        prepare(schema, Loose({(1, 2): 3}), HERE)
    with pytest.raises(Invalid, match="value: NotData"):
        schemas.dump(NotData())


def test_a_value_that_holds_itself_is_refused() -> None:
    _, schema = declared(Loose)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Invalid, match="nested deeper"):
        prepare(schema, Loose(loop), HERE)


@pytest.mark.parametrize("step", ["drift", "lost"])
def test_running_out_of_stack_is_told_as_depth(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(*_: Any, **__: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(typed, step, overflow)
    _, schema = declared(Loose)
    with pytest.raises(Invalid, match="thread 'trip-42', revision 7: the state is nested deeper"):
        prepare(schema, Loose(), HERE)


def test_a_number_that_json_lacks_is_left_to_the_codec() -> None:
    _, schema = declared(Loose)
    with pytest.raises(Invalid, match=r"value\.number: nan"):
        encode(prepare(schema, Loose(number=float("nan")), HERE))


@dataclasses.dataclass(eq=False)
class Odd:
    only_itself: DataTask = dataclasses.field(default_factory=DataTask)
    pair: tuple[int, ...] = ()


def test_a_type_without_equality_is_compared_by_its_fields() -> None:
    _, schema = declared(Odd)
    plain = prepare(schema, Odd(pair=(1, 2)), HERE)
    assert plain == {"only_itself": {"status": "open"}, "pair": [1, 2]}
    with pytest.raises(StateInvalid):
        prepare(schema, Odd(pair=(1, NOON)), HERE)  # type: ignore[arg-type]


class Grid:
    """Like an array: it has no single truth, and only equals itself."""

    def __init__(self, cells: list[int]) -> None:
        self.cells = cells

    def __eq__(self, other: object) -> Any:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


class Opaque:
    def __init__(self, cells: list[int]) -> None:
        self.cells = cells


@pytest.mark.parametrize("kind", [Grid, Opaque])
def test_what_cannot_be_compared_is_trusted_to_its_serialiser(kind: Any) -> None:
    class Board(pydantic.BaseModel, arbitrary_types_allowed=True):
        grid: kind  # type: ignore[valid-type]

        @pydantic.field_validator("grid", mode="before")
        @classmethod
        def _read(cls, given: Any) -> Any:
            return kind(given) if isinstance(given, list) else given

        @pydantic.field_serializer("grid")
        def _write(self, grid: Any) -> list[int]:
            return list(grid.cells)

    Board.model_rebuild(_types_namespace={"kind": kind})
    _, schema = declared(Board)
    assert prepare(schema, Board(grid=kind([1, 2])), HERE) == {"grid": [1, 2]}


# Errors of msgspec and pydantic, in our words


class Deep(msgspec.Struct):
    groups: dict[str, dict[str, list[StructTask]]] = {}
    by_number: dict[int, int] = {}
    model: PydanticTrip | None = None
    custom: dict[str, NotData] = {}


@pytest.mark.parametrize(
    ("stored", "field"),
    [
        ({"groups": {"a": {"x": []}, "b.c": {"y": [{}], "z": [{}, {"status": 1}]}}}, 'groups["b.c"].z[1].status'),
        ({"groups": {"a": 1}}, "groups.a"),
        ({"by_number": {"1": 1, "x": 2}}, "by_number"),
        ({"model": {"city": "Lisbon", "when": "2026-03-01T12:00:00Z", "task": {"status": 1}}}, "model.task.status"),
        ({"model": {"city": "Lisbon"}}, "model.when"),
        ({"custom": {"n": 1}}, "custom.n"),
    ],
)
def test_msgspec_paths_name_keys_and_go_into_models(stored: dict[str, Any], field: str) -> None:
    _, schema = declared(Deep)
    assert refused(schema, stored).field == field


def test_names_with_dots_are_told_apart() -> None:
    kind = TypedDict("kind", {"a": dict[str, int], "a.b": int, "c": dict[str, dict[str, int]]}, total=False)
    _, schema = declared(kind)
    assert refused(schema, {"a.b": "x"}).field == '["a.b"]'
    assert refused(schema, {"c": {"d": {}, "": {"x": "y"}}}).field == 'c[""].x'


def test_a_root_of_keys_only() -> None:
    class Closed(msgspec.Struct, forbid_unknown_fields=True):
        a: int = 0

    _, schema = declared(Closed)
    error = refused(schema, {"b": 1})
    assert (error.field, error.expected) == ("b", "there is no such field")


def test_pydantic_tells_the_first_problem_and_counts_the_rest() -> None:
    class Cat(pydantic.BaseModel):
        kind: str
        lives: int

    class Owner(pydantic.BaseModel):
        pet: Cat | int = 0
        ages: dict[int, int] = {}

    _, schema = declared(Owner)
    error = refused(schema, {"pet": {"kind": 1, "lives": "nine"}})
    assert error.field.startswith("pet")
    assert "more)" in error.expected
    assert refused(schema, {"ages": {"x": 1}}).field == "ages.x"


def test_a_validator_may_raise_anything() -> None:
    @dataclasses.dataclass
    class Fussy:
        a: int = 0

        def __post_init__(self) -> None:
            if self.a:
                raise {1: ValueError, 2: KeyError, 3: RecursionError}[self.a]("no")

    _, schema = declared(Fussy)
    assert "no" in refused(schema, {"a": 1}).expected
    assert "KeyError" in refused(schema, {"a": 2}).expected
    assert isinstance(refused(schema, {"a": 2}).__cause__, KeyError)


def test_a_model_given_a_number_that_json_lacks() -> None:
    class Price(pydantic.BaseModel):
        amount: float = 0.0

    _, schema = declared(Price)
    with pytest.raises(Invalid, match=r"state\.amount: nan"):
        prepare(schema, Price(amount=float("nan")), HERE)


# Ways of a type to be written that must not look like a loss


def test_defaults_that_are_left_out_are_no_loss() -> None:
    class Terse(msgspec.Struct, omit_defaults=True, rename="camel", tag="terse"):
        my_name: str = "x"
        inner: list[StructTask] = []

    _, schema = declared(Terse, critical=["myName"])
    assert revive(schema, {"type": "terse", "myName": "x", "inner": []}, HERE) == Terse()
    assert prepare(schema, Terse(my_name="y"), HERE) == {"type": "terse", "myName": "y"}
    assert refused(schema, {"inner": [{"status": "a"}, {"extra": 1}]}).field == "inner[1].extra"


def test_models_are_stored_under_field_names_and_without_computed_fields() -> None:
    class Aliased(pydantic.BaseModel, strict=True, extra="forbid"):
        first_name: str = pydantic.Field(alias="firstName")
        born: datetime | None = None
        session: str = pydantic.Field(default="", exclude=True)
        _cache: int = pydantic.PrivateAttr(default=0)

        @pydantic.computed_field  # type: ignore[prop-decorator]
        @property
        def initial(self) -> str:
            return self.first_name[0]

    _, schema = declared(Aliased, fresh={"first_name": "1d"})
    value = Aliased(firstName="Ana", born=NOON, session="s")
    value._cache = 5
    plain = prepare(schema, value, HERE)
    assert plain == {"first_name": "Ana", "born": "2026-03-01T12:00:00Z"}
    assert revive(schema, plain, HERE).first_name == "Ana"


def test_pydantic_dataclasses_are_validated_by_pydantic() -> None:
    @pydantic_dataclass
    class Checked:
        age: int = pydantic.Field(gt=3)

    _, schema = declared(Checked)
    assert revive(schema, prepare(schema, Checked(4), HERE), HERE) == Checked(4)
    assert refused(schema, {"age": 1}).field == "age"


class Tag(msgspec.Struct, frozen=True):
    name: str


class Tagged(msgspec.Struct):
    tags: set[Tag] = set()


def test_a_set_of_objects_is_stored_in_a_stable_order() -> None:
    _, schema = declared(Tagged)
    expected = {"tags": [{"name": name} for name in "abcd"]}
    assert prepare(schema, Tagged({Tag(name) for name in "dbca"}), HERE) == expected
    assert prepare(schema, revive(schema, {"tags": [{"name": "a"}, {"name": "a"}]}, HERE), HERE) == {
        "tags": [{"name": "a"}]
    }


# Migrating


def chain(*steps: tuple[int, int], version: int) -> Registry:
    registry, _ = declared(StructTrip, version)
    for source, target in steps:

        def step(old: dict[str, Any], target: int = target) -> dict[str, Any]:
            old.setdefault("seen", []).append(target)
            return old

        registry.migration("trip", source, target)(step)
    return registry


def test_migrations_run_in_order_from_the_stored_version() -> None:
    registry = chain((1, 2), (2, 3), (3, 5), (5, 6), version=6)
    stored = {"city": "Lisbon"}
    assert migrate(registry, "trip", 1, stored, HERE) == ({"city": "Lisbon", "seen": [2, 3, 5, 6]}, 1)
    assert migrate(registry, "trip", 3, stored, HERE) == ({"city": "Lisbon", "seen": [5, 6]}, 3)
    assert stored == {"city": "Lisbon"}
    same, came_from = migrate(registry, "trip", 6, stored, HERE)
    assert same is stored
    assert came_from is None


def test_a_plain_dict_needs_no_migration_and_can_be_brought_under_a_schema() -> None:
    registry = chain((1, 2), version=2)
    assert migrate(registry, "", 0, {"a": 1}, HERE) == ({"a": 1}, None)
    with pytest.raises(MigrationMissing, match="0 → 1"):
        migrate(registry, "trip", 0, {"a": 1}, HERE)
    registry.migration("trip", 0, 1)(lambda old: {"adopted": old})
    assert migrate(registry, "trip", 0, {"a": 1}, HERE) == ({"adopted": {"a": 1}, "seen": [2]}, 0)


def failing(registry: Registry, version: int, error: type[HoldfastError], name: str = "trip") -> HoldfastError:
    stored = {"city": "Lisbon", "list": [1]}
    before = deepcopy(stored)
    with pytest.raises(error) as caught:
        migrate(registry, name, version, stored, HERE)
    assert stored == before
    assert (caught.value.thread, caught.value.revision, caught.value.schema) == ("trip-42", 7, name)
    assert "thread 'trip-42', revision 7" in str(caught.value)
    return caught.value


def test_a_newer_version_than_the_code() -> None:
    error = failing(chain(version=2), 3, SchemaTooNew)
    assert (error.version, error.known) == (3, 2)
    assert "version 3" in str(error)


def test_an_unknown_schema() -> None:
    assert "no schema 'voyage'" in str(failing(chain(version=1), 1, SchemaUnknown, "voyage"))
    assert "declared: none" in str(failing(Registry(), 1, SchemaUnknown, "voyage"))


def test_a_hole_in_the_chain_is_found_before_anything_runs() -> None:
    ran = []
    registry = chain((3, 4), version=4)
    registry.migration("trip", 1, 2)(lambda old: ran.append(1) or old)
    error = failing(registry, 1, MigrationMissing)
    assert (error.from_version, error.to_version) == (2, 3)
    assert "2 → 3" in str(error)
    assert 'write one: @holdfast.migration("trip", 2, 3) over a function' in str(error)
    assert not ran


def test_a_migration_past_the_code_is_a_hole() -> None:
    error = failing(chain((1, 5), version=3), 1, MigrationMissing)
    assert "1 → 2" in str(error)
    assert "goes to 5" in str(error)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (lambda old: old["absent"], "raised KeyError: 'absent'"),
        (lambda old: old.clear() or None, "returned NoneType, not a dict; return the document"),
        (lambda old: [old], "returned list, not a dict"),
        (lambda old: {"when": NOON}, r"returned something that cannot be stored: result\.when: datetime"),
        (lambda old: old["list"].append(2) or 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_a_migration_that_fails_says_which_and_changes_nothing(step: Any, why: str) -> None:
    registry = chain((1, 2), version=3)
    registry.migration("trip", 2, 3)(step)
    error = failing(registry, 1, MigrationFailed)
    assert (error.from_version, error.to_version) == (2, 3)
    assert "2 → 3" in str(error)
    with pytest.raises(MigrationFailed, match=why) as caught:
        migrate(registry, "trip", 2, {"list": [1]}, HERE)
    assert (caught.value.__cause__ is None) == ("not a dict" in why)


def test_migrated_and_validated_at_once() -> None:
    registry, schema = declared(StructTrip, 2)
    registry.migration("trip", 1, 2)(lambda old: {"city": old["town"], "when": old["when"]})
    plain, came_from = migrate(registry, "trip", 1, {"town": "Lisbon", "when": "2026-03-01T12:00:00Z"}, HERE)
    assert revive(schema, plain, HERE) == StructTrip("Lisbon", NOON)
    assert came_from == 1


@given(plain_dicts, plain_dicts, st.booleans())
def test_migrating_never_changes_its_input(stored: dict[str, Any], extra: dict[str, Any], fails: bool) -> None:
    def ruin(old: dict[str, Any]) -> dict[str, Any]:
        for value in list(old.values()):
            if isinstance(value, dict | list):
                value.clear()
        old.update(extra)
        if fails:
            raise ValueError
        return old

    registry, _ = declared(StructTrip, 2)
    registry.migration("trip", 1, 2)(ruin)
    before = deepcopy(stored)
    try:
        result, came_from = migrate(registry, "trip", 1, stored, HERE)
        assert came_from == 1
        assert result.items() >= extra.items()
    except MigrationFailed:
        assert fails
    assert stored == before


@given(st.integers(1, 6), st.integers(1, 6), st.sets(st.integers(1, 5)))
def test_every_chain_arrives_or_names_its_first_hole(stored: int, code: int, steps: set[int]) -> None:
    registry = chain(*((step, step + 1) for step in sorted(steps)), version=code)
    holes = [version for version in range(stored, code) if version not in steps]
    if stored > code or holes:
        with pytest.raises(SchemaTooNew if stored > code else MigrationMissing) as caught:
            migrate(registry, "trip", stored, {}, HERE)
        assert stored > code or caught.value.from_version == holes[0]
        return
    document, came_from = migrate(registry, "trip", stored, {}, HERE)
    assert document.get("seen", []) == list(range(stored + 1, code + 1))
    assert came_from == (stored if stored < code else None)


class AnyTrip(msgspec.Struct):
    a: Any = None
    b: dict[str, Any] = {}


@given(plain_values, plain_dicts)
def test_plain_data_in_a_type_always_comes_back(a: Any, b: dict[str, Any]) -> None:
    _, schema = declared(AnyTrip)
    plain = prepare(schema, AnyTrip(a, b), HERE)
    assert plain == {"a": a, "b": b}
    assert revive(schema, decode(encode(plain)), HERE) == AnyTrip(a, b)
