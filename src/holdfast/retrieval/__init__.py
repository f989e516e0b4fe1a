"""Finding what is known: arrays that a query is compared with, and the stages that rank what it finds.

Everything is derived from stored data and can be rebuilt. Deliberately absent: what a memory means (``memory``), how
a text becomes a vector (``providers``), and where the documents come from (passed in).
"""
