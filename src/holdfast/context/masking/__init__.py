"""Observation masking: a long tool output becomes a short stand-in that still says what went wrong and where.

``mask`` is a pure function of a text and a counter of tokens: no model, no clock, no file. The full text stays in the
log, and the stand-in says how to fetch it. Deliberately absent: which observations are masked and when; the builder of
a context decides.
"""

from __future__ import annotations

from holdfast.context.masking.masked import LIMIT, SHORT, Masked, least, mask

__all__ = ["LIMIT", "SHORT", "Masked", "least", "mask"]
