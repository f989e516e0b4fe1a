"""What AutoGen itself warns of is its own to mend."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "ignore:.*:DeprecationWarning:(autogen_core|autogen_agentchat|autogen_ext|google).*",
        "ignore::pydantic.warnings.PydanticDeprecatedSince211",
    ):
        config.addinivalue_line("filterwarnings", line)
