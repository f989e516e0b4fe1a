"""The patterns of ``examples/patterns`` without Holdfast: compact, idiomatic, on the standard library, for comparison.

Each prints what its namesake prints. Its docstring says after "Lacks:" which guarantees it does not give.
"""
