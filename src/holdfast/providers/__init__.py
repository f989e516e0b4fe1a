"""The room of providers: what turns text into vectors, each vendor in a file of its own, all behind one protocol.

``embedding`` defines what an embedder promises and checks that it keeps it, ``choose`` makes one by name,
and the other files are one vendor each. Nothing is imported here, so that a store without an embedder pays for none.
Deliberately absent: stored vectors, indexes and retries of what is pending (the caller keeps those), and downloads: a
model is in an installed package, in a folder that the caller names, or behind an address that the caller gives.
"""
