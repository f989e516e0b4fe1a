"""Holdfast under the frameworks that agents are written in: one file or folder for each, each an optional extra.

An adapter translates a framework's own interface into threads, files and memories, so that what the framework keeps is
seen by the command, by recall and by every other adapter. Nothing here is imported by the rest of the package, and
importing one adapter needs its framework alone. Deliberately absent: rules of our own, and names to import from here.
"""
