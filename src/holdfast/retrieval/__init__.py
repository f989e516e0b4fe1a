"""Finding again: what is known, as arrays that a query is held against, and the stages that rank what it touches.

Everything here is derived from ground and can be made again. Deliberately absent: what a memory means (``memory``), how
a text becomes a vector (``providers``), and where the documents come from (passed in).
"""
