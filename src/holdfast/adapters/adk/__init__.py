"""Holdfast under Google's Agent Development Kit: its sessions, its memory and its artifacts, in one store.

A session is a thread, an event one entry of its log, and the state of the session is the state of the thread; the state
that sessions share and the artifacts are files. ``register`` lets ADK's own commands find all three by an address such
as ``holdfast:agent.db``. Deliberately absent: registration by import, and anything of ADK outside this folder.
"""

from __future__ import annotations

try:
    import google.adk  # noqa: F401 - asked for here, so that what is missing is named once
except ImportError as error:
    raise ImportError("this adapter needs Google's ADK: pip install 'holdfast[adk]'") from error

from holdfast.adapters.adk.artifacts import HoldfastArtifactService
from holdfast.adapters.adk.memory import HoldfastMemoryService
from holdfast.adapters.adk.service import SCHEMES
from holdfast.adapters.adk.sessions import HoldfastSessionService

__all__ = ["HoldfastArtifactService", "HoldfastMemoryService", "HoldfastSessionService", "register"]


def register() -> None:
    """Let ADK make these services of an address, as in ``adk web --session_service_uri=holdfast:agent.db``.

    Call it in the ``services.py`` beside your agents; a ``services.yaml`` that names the classes does the same.
    """
    from google.adk.cli.service_registry import get_service_registry  # noqa: PLC0415 - brings ADK's whole command

    registry = get_service_registry()
    for scheme in SCHEMES:
        registry.register_session_service(scheme, lambda uri, **given: HoldfastSessionService(uri=uri, **given))
        registry.register_memory_service(scheme, lambda uri, **given: HoldfastMemoryService(uri=uri, **given))
        registry.register_artifact_service(scheme, lambda uri, **given: HoldfastArtifactService(uri=uri, **given))
