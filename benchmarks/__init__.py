"""Benchmarks: each beside a baseline in the same run, as ratios, with spread. Never timed tests.

``make bench`` runs them all; ``python -m benchmarks append size`` runs some. Each prints a table and ends with one
line of JSON. Deliberately absent: assertions about time.
"""
