"""The demonstration: agents that are killed in the middle of things, each a process of its own, and what is measured.

``command`` runs it, ``script`` has its words, ``claims`` what it measured. Deliberately absent: anything but the public
interface of the package; the agents use what every program has.
"""
