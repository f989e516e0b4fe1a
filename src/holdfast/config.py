"""Settings from outside. This is the only reader of the environment.

Deliberately absent: anything read at import. A variable is read when it is needed.
"""

from __future__ import annotations

import os

DATABASE_VARIABLE = "HOLDFAST_DB"
REPLICA_VARIABLE = "HOLDFAST_REPLICA"
TENANT_VARIABLE = "HOLDFAST_TENANT"
EMBEDDER_VARIABLE = "HOLDFAST_EMBEDDER"
RERANKER_VARIABLE = "HOLDFAST_RERANKER"
MODEL_VARIABLE = "HOLDFAST_MODEL"
VENDOR_MODELS = {
    "ANTHROPIC_API_KEY": "anthropic:claude-haiku-4-5",
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "GOOGLE_API_KEY": "google:gemini-flash-latest",
    "GEMINI_API_KEY": "google:gemini-flash-latest",
    "MISTRAL_API_KEY": "mistral:mistral-small-latest",
}
"""What a vendor's key stands for where no model is named: a small, quick model of that vendor."""
DEFAULT_TENANT = "default"


def database() -> str | None:
    """The database to open when none is named."""
    return os.environ.get(DATABASE_VARIABLE) or None


def replica(url: object) -> str | None:
    """The replica to read from when none is named. It belongs to ``HOLDFAST_DB``, and to no other database."""
    return os.environ.get(REPLICA_VARIABLE) or None if url == database() else None


def tenant() -> str:
    """The tenant to work in when none is named."""
    return os.environ.get(TENANT_VARIABLE) or DEFAULT_TENANT


def endpoint() -> dict[str, str]:
    """The key and the address of an embedding endpoint, where they are set."""
    named = {"api_key": os.environ.get("OPENAI_API_KEY"), "base_url": os.environ.get("OPENAI_BASE_URL")}
    return {name: value for name, value in named.items() if value}


def embedder() -> str | None:
    """The embedder to use when none is named."""
    return os.environ.get(EMBEDDER_VARIABLE) or None


def reranker() -> str | None:
    """The reranker to use when none is named."""
    return os.environ.get(RERANKER_VARIABLE) or None


def model() -> tuple[str, str] | None:
    """The model that the command uses when none is named, and the variable that says so: ours, or a vendor's key."""
    if named := os.environ.get(MODEL_VARIABLE):
        return named, MODEL_VARIABLE
    return next(((name, key) for key, name in VENDOR_MODELS.items() if os.environ.get(key)), None)
