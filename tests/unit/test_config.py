"""What is not named comes from the environment, looked at when it is needed and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast import config, errors


def test_without_a_name_and_without_a_setting_no_store_is_opened() -> None:
    with pytest.raises(errors.Misconfigured, match="HOLDFAST_DB"):
        holdfast.open()


def test_an_empty_setting_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DB", "")
    monkeypatch.setenv("HOLDFAST_TENANT", "")
    assert (config.database(), config.tenant()) == (None, "default")
    with pytest.raises(errors.Misconfigured):
        holdfast.open()


def test_the_environment_names_the_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_DB", str(tmp_path / "named.db"))
    with holdfast.open() as store:
        store.thread("t").append({"role": "user", "content": "hi"})
    assert (tmp_path / "named.db").is_file()


def test_a_name_in_the_call_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_DB", str(tmp_path / "other.db"))
    monkeypatch.setenv("HOLDFAST_TENANT", "other")
    with holdfast.open(tmp_path / "named.db", tenant="acme") as store:
        assert store.tenant == "acme"
    assert [path.name for path in tmp_path.glob("*.db")] == ["named.db"]


def test_an_empty_name_in_the_call_is_not_replaced_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that computes an empty name has a mistake in it; another database is no help."""
    monkeypatch.setenv("HOLDFAST_DB", "ram:")
    monkeypatch.setenv("HOLDFAST_TENANT", "acme")
    with pytest.raises(errors.Misconfigured, match="name a database"):
        holdfast.open("")
    with pytest.raises(errors.Invalid, match="tenant must not be empty"):
        holdfast.open("ram:", tenant="")


def test_the_tenant_is_the_named_one_or_the_environments_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast.open("ram:") as store:
        assert store.tenant == "default"
    monkeypatch.setenv("HOLDFAST_TENANT", "acme")
    with holdfast.open("ram:") as store:
        assert store.tenant == "acme"
    with holdfast.open("ram:", tenant="globex") as store:
        assert store.tenant == "globex"


def test_a_setting_counts_at_the_moment_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.database() is None
    monkeypatch.setenv("HOLDFAST_DB", "ram:")
    assert config.database() == "ram:"


def test_a_bad_tenant_in_the_environment_is_refused_before_anything_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_TENANT", "x" * 513)
    with pytest.raises(errors.Invalid, match="tenant takes 513 bytes"):
        holdfast.open(tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("named", "loaded"), [("auto", True), (" Auto\n", True), ("NONE ", False), (" ", False)])
def test_the_environment_names_the_reranker(monkeypatch: pytest.MonkeyPatch, named: str, *, loaded: bool) -> None:
    monkeypatch.setenv("HOLDFAST_RERANKER", named)
    with holdfast.open("ram:", embedder="none") as store:
        assert (store.wiring.reranker is not None) is loaded
    with holdfast.open("ram:", reranker="none") as store:
        assert store.wiring.reranker is None


def test_a_reranker_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_RERANKER", "zebra")
    with pytest.raises(errors.Misconfigured, match="zebra"):
        holdfast.open("ram:")
