"""CrewAI without its telemetry, its traces and its questions, with a folder of its own for what it keeps itself.

And a store on every engine.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator

import pytest

import holdfast

_HOME = tempfile.mkdtemp(prefix="holdfast-crewai-")
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_TRACKING="true",
    CREWAI_TRACING_ENABLED="false",
    CREWAI_TESTING="true",
    OTEL_SDK_DISABLED="true",
    HOME=_HOME,
    XDG_DATA_HOME=_HOME,
    PYTHONSAFEPATH="1",  # a script that is called crewai.py must not be taken for the package
)


def pytest_configure(config: pytest.Config) -> None:
    """What the framework and what it brings warn of is theirs to mend."""
    for line in (
        "ignore:Cannot set an attribute on .crewai:ImportWarning",
        "ignore:.*utcnow:DeprecationWarning",
        "ignore::pydantic.warnings.PydanticDeprecatedSince20",
        "ignore::pydantic.warnings.PydanticDeprecatedSince211",
        "ignore:.*:DeprecationWarning:(crewai|chromadb|opentelemetry|websockets|litellm).*",
    ):
        config.addinivalue_line("filterwarnings", line)


def pytest_unconfigure() -> None:
    shutil.rmtree(_HOME, ignore_errors=True)


def embedding(text: str, size: int = 32) -> list[float]:
    """A vector that depends on the words of a text alone: texts that share words are near."""
    vector = [0.0] * size
    for word in text.lower().replace(".", " ").replace("?", " ").split():
        vector[int(hashlib.blake2b(word.encode(), digest_size=4).hexdigest(), 16) % size] += 1.0
    length = math.sqrt(sum(one * one for one in vector)) or 1.0
    return [one / length for one in vector]


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, opened: Callable[[str], holdfast.Store]) -> holdfast.Store:
    return opened(request.param)


@pytest.fixture
def embed() -> Callable[[list[str]], list[list[float]]]:
    """An embedder as CrewAI takes one: many texts in, many vectors out."""
    return lambda texts: [embedding(text) for text in texts]


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """What a test installs into the process does not reach the next."""
    from holdfast.adapters.crewai import uninstall  # noqa: PLC0415

    yield
    uninstall()
