"""The SDK would send traces to a server; here it keeps them to itself."""

from __future__ import annotations

import agents

agents.set_tracing_disabled(True)
