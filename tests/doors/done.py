"""How a run of the command ended, for the tests of what it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class Done(NamedTuple):
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        assert not self.out
        error: dict[str, Any] = json.loads(self.err)["error"]
        return error


Call = Callable[..., Done]
