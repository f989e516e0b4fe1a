"""Durable steps: what an agent does in the world, recorded before and after, so that a crash never repeats it.

A run is a record with a journal (its stream); a step is an intent in that journal, committed before the function runs,
and a completion, committed with the log entry and the state change it brings before its result is returned. Start with
``run.py``, then ``journal.py``. Deliberately absent: a queue or broker of our own (a lease is a record like any other),
pickled functions or results, and any attempt to make the outside world transactional; a probe checks it instead.
"""
