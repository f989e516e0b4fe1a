"""What the tests of the AutoGen adapter share: a store on every engine, and warnings that are AutoGen's own to mend."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import holdfast


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "ignore:.*:DeprecationWarning:(autogen_core|autogen_agentchat|autogen_ext|google).*",
        "ignore::pydantic.warnings.PydanticDeprecatedSince211",
    ):
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, opened: Callable[[str], holdfast.Store]) -> holdfast.Store:
    return opened(request.param)
