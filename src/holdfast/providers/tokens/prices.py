"""How many tokens a model reads for some money, by the price list of genai-prices, which comes with ``holdfast[llm]``.

Deliberately absent: a list of our own, what output costs, and discounts for what a provider's cache has already.
"""

from __future__ import annotations

from holdfast.errors import Misconfigured, Unsupported

_SAMPLE = 1_000
_MUCH = 10**9


def affordable(dollars: float, model: str | None) -> int:
    """How many tokens of input a model reads for so many dollars: as many as you like, if it runs on this machine.

    Prices may rise with the length of the input.
    """
    if model is not None and model.partition(":")[0] == "local":
        return _MUCH
    tokens = int(dollars / _price(model, _SAMPLE) * _SAMPLE)
    price = _price(model, tokens) if tokens else 0.0
    tokens = tokens if price <= dollars else int(dollars / price * tokens)
    if not tokens:
        raise Misconfigured(f"${dollars:g} does not buy a single token of {model}; raise max_context")
    return tokens


def _price(model: str | None, tokens: int) -> float:
    try:
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - only a cap in money needs prices
    except ImportError as error:
        raise Unsupported(
            'a cap in money needs genai-prices: pip install "holdfast[llm]", or give a number of tokens', extra="llm"
        ) from error
    vendor, _, name = (model or "").rpartition(":")
    try:
        found = calc_price(Usage(input_tokens=tokens), model_ref=name, provider_id=vendor or None)
    except LookupError:
        found = None
    if found is None or found.input_price is None or found.input_price <= 0:
        whose = f"the price of {model} is not known" if model else "no model is named, so there is no price"
        raise Misconfigured(f"{whose}; name a model with a known price, or give max_context as a number of tokens")
    return float(found.input_price)
