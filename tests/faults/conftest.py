"""One real Postgres for all tests of faults, and a fresh database of it for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.testing.postgres import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server. It writes to the disk as in earnest; tests may stop and kill it."""
    with Server() as server:
        yield server


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """The URL of a database that already has the tables."""
    url = server.clone()
    yield url
    server.start()
    server.drop(url)
