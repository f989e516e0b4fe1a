"""Any server that speaks the ``/v1/embeddings`` of OpenAI, over the standard library's HTTP.

Hosted services, gateways and local servers (Ollama, vLLM, llama.cpp, LM Studio and others) speak it. Deliberately
absent: the vendor's client with its dependencies, the environment (key and address are passed in), and redirects: a
request that carries a key goes to the address that was given, and nowhere else. The key is in no error, log or repr.
"""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast import atfork
from holdfast.clock import Clock, SystemClock, sleep, to_micros
from holdfast.errors import Invalid, Misconfigured, Unavailable
from holdfast.providers.address import is_loopback

if TYPE_CHECKING:
    from holdfast.providers.embedding import Vectors

BASE_URL = "https://api.openai.com/v1"
_LONGEST_WAIT = 20.0  # seconds; if a server asks for more, the caller retries later
_MAX_ANSWER = 256 * 1024 * 1024
_PASSING = frozenset({408, 409, 425, 429}) | frozenset(range(500, 600))

_log = logging.getLogger(__name__)


class OpenAIEmbedder:
    """One model of one server. Making it asks nothing; the first text does.

    The name that is recorded is the model's (and the asked dimension), not the server's: moving to another server with
    the same model keeps the vectors. ``batch`` is how many texts go into a request; some servers take 32 and no more.
    ``retries`` counts what is tried again at once, waiting as long as the server asks, if that is not too long.
    """

    local = False

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dimensions: int | None = None,
        timeout: float = 10.0,
        batch: int = 128,
        retries: int = 2,
        clock: Clock | None = None,
    ) -> None:
        if not model.strip():
            raise Misconfigured('Which model? Write "openai:MODEL", such as "openai:text-embedding-3-small".')
        if timeout <= 0 or batch < 1 or retries < 0:
            raise Misconfigured("timeout and batch must be above zero, and retries not below it.")
        self.model = model.strip()
        self.name = f"openai:{self.model}" + (f"/{dimensions}" if dimensions else "")
        self._asked = dimensions
        self._dimension = dimensions
        self._batch = batch
        self._line = _EmbeddingsConnection(
            _address(base_url or BASE_URL), _key(api_key), timeout, retries, clock or SystemClock()
        )
        self._lock = atfork.lock()

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.model!r}, base_url={self._line.url.removesuffix('/embeddings')!r})"

    @property
    def dimension(self) -> int:
        """How long this model's vectors are. Where nobody said so, the first answer does."""
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        rows: list[Any] = []
        for start in range(0, len(texts), self._batch):
            part = list(texts[start : start + self._batch])
            wanted: dict[str, Any] = {"model": self.model, "input": part, "encoding_format": "float"}
            if self._asked:
                wanted["dimensions"] = self._asked
            rows += _rows(self._line.ask(wanted), len(part), self._line.host)
        if not rows:
            return numpy.zeros((0, self.dimension), dtype=numpy.float32)
        try:
            vectors: Vectors = numpy.array(rows, dtype=numpy.float32)
            width = vectors.shape[1]
        except (ValueError, TypeError, OverflowError, IndexError) as error:
            raise Unavailable(f"{self._line.host} answered with something that is not rows of numbers.") from error
        with self._lock:
            self._dimension = self._dimension or width
        return vectors


class _EmbeddingsConnection:
    """The way to one address: request, answer, and what is tried again."""

    def __init__(self, url: str, key: str | None, timeout: float, retries: int, clock: Clock) -> None:
        self.url = url
        self.host = urllib.parse.urlsplit(url).netloc
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._clock = clock
        near = [urllib.request.ProxyHandler({})] if is_loopback(url) else []  # no proxy leads to this machine
        self._opener = urllib.request.build_opener(_StayHere(), *near)

    def ask(self, wanted: dict[str, Any]) -> Any:
        body = json.dumps(wanted, ensure_ascii=True).encode("ascii")
        for attempt in range(self._retries + 1):
            try:
                return self._once(body)
            except Unavailable as error:
                asked = error.facts.get("retry_after")
                wait = min(0.5 * 2**attempt, 8.0) if asked is None else asked
                if attempt == self._retries or wait > _LONGEST_WAIT:
                    raise
                _log.debug("%s: %s; trying again in %.1f s", self.host, error, wait)
                sleep(self._clock, wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _once(self, body: bytes) -> Any:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "holdfast"}
        request = urllib.request.Request(self.url, data=body, headers=headers, method="POST")
        if self._key:
            request.add_unredirected_header("Authorization", f"Bearer {self._key}")
        with self._failures():
            with self._opener.open(request, timeout=self._timeout) as answer:
                text = self._read(answer)
            return json.loads(text)

    def _read(self, answer: Any) -> bytes:
        """The whole body, within the time allowed: a server that sends a byte now and then must not hold us up."""
        deadline = time.monotonic() + self._timeout
        parts: list[bytes] = []
        size = 0
        while part := answer.read1(1 << 16):
            parts.append(part)
            size += len(part)
            if size > _MAX_ANSWER:
                raise Unavailable(f"{self.host} answered with more than {_MAX_ANSWER} bytes.")
            if time.monotonic() > deadline:
                raise TimeoutError
        expected = answer.headers.get("Content-Length")
        if expected is not None and expected.isdigit() and size < int(expected):
            raise http.client.IncompleteRead(b"", int(expected) - size)
        return b"".join(parts)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Say what went wrong in our own words. The causes are left out: they may hold the request, and it the key."""
        try:
            yield
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(error) from None
        except TimeoutError:
            raise Unavailable(f"{self.host} did not answer within {self._timeout:g} s.") from None
        except urllib.error.URLError as error:
            reason = error.reason
            if isinstance(reason, TimeoutError):
                raise Unavailable(f"{self.host} did not answer within {self._timeout:g} s.") from None
            raise Unavailable(f"{self.host} cannot be reached: {self._clean(str(reason))}") from None
        except json.JSONDecodeError:
            raise Unavailable(f"{self.host} answered with something that is not JSON, or with a part of it.") from None
        except (OSError, http.client.HTTPException, UnicodeDecodeError, RecursionError) as error:
            raise Unavailable(f"The answer of {self.host} broke off ({type(error).__name__}).") from None

    def _refused(self, error: urllib.error.HTTPError) -> Unavailable | Misconfigured | Invalid:
        status, said = error.code, self._said(error)
        if status in _PASSING:
            facts = {"status": status, "retry_after": self._retry_after(error)}
            return Unavailable(f"{self.host} answered {status}{said}", **facts)
        if status in {400, 413, 422}:
            return Invalid(f"{self.host} refused the texts with {status}{said}", status=status)
        if status in {401, 403}:
            return Misconfigured(f"{self.host} does not accept the key ({status}){said}", status=status)
        if 300 <= status < 400:
            return Misconfigured(f"{self.host} sends elsewhere ({status}). Give the final address.", status=status)
        return Misconfigured(f"{self.host} answered {status}; check model and address{said}", status=status)

    def _said(self, error: urllib.error.HTTPError) -> str:
        """The server's own words, short, on one line and without the key."""
        try:
            answer = json.loads(error.read(10_000))
            inner = answer.get("error", answer)
            words = inner if isinstance(inner, str) else inner.get("message")
        except (ValueError, AttributeError, OSError, http.client.HTTPException, RecursionError):
            return "."
        return f": {self._clean(words)[:200]}" if isinstance(words, str) and words.strip() else "."

    def _clean(self, words: str) -> str:
        words = " ".join(words.split())
        return words.replace(self._key, "[key]") if self._key else words

    def _retry_after(self, error: urllib.error.HTTPError) -> float | None:
        """Seconds to wait, from a number or a date. What cannot be read is as good as absent."""
        value = (error.headers.get("Retry-After") or "").strip()
        try:
            if value.isascii() and value.replace(".", "", 1).isdigit():
                return float(value)
            moment = email.utils.parsedate_to_datetime(value)
            return max(0.0, (to_micros(moment) - self._clock.now()) / 1_000_000)
        except (ValueError, TypeError, Invalid):
            return None


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, so that neither key nor texts go to an address that nobody gave."""

    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None


def _rows(answer: Any, count: int, host: str) -> list[Any]:
    """The vectors in the order of the texts; servers may answer in any order and number them."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "embedding" in item for item in items):
        raise Unavailable(f"{host} answered without embeddings.")
    if len(items) != count:
        raise Unavailable(f"{host} was given {count} texts and answered with {len(items)} vectors.")
    places = [item.get("index", at) for at, item in enumerate(items)]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
        raise Unavailable(f"{host} numbered its vectors so that they cannot be matched with the texts.")
    rows: list[Any] = [None] * count
    for place, item in zip(places, items, strict=True):
        rows[place] = item["embedding"]
    return rows


def _address(base_url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(base_url.strip())
        fine = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise Misconfigured("The address of an embedding server looks like https://HOST/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Misconfigured("The address of an embedding server holds no user, password, query or fragment.")
    path = parts.path.rstrip("/") or "/v1"
    return f"{parts.scheme}://{parts.netloc}{path.removesuffix('/embeddings')}/embeddings"


def _key(api_key: str | None) -> str | None:
    if api_key is not None and (not api_key.isascii() or not api_key.isprintable() or " " in api_key):
        raise Misconfigured("The key for the embedding server holds characters that no key has, such as a line break.")
    return api_key or None
