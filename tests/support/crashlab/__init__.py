"""Faults on purpose: what a store is put through to show that it keeps what it acknowledged.

Each module makes one kind of fault and is imported by name. Deliberately absent: names of its own.
"""
