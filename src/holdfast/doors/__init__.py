"""The doors: where people and programs come in.

A door parses what it is given, calls the store, and shows what came back in its own form. Deliberately absent: rules.
What one door could decide and another forget belongs to a room below.
"""
