"""Language models: one protocol, any vendor behind it.

``model`` says what a model is and what it answers with, and ``choose`` makes one from what a caller names. ``vendor``
tries again and keeps the time; behind it ``request`` makes one request through pydantic-ai, ``translation`` turns
messages into its own and back, and ``blocking`` waits for its coroutines. ``function`` takes a function of the
caller's, ``local`` a small model on this machine, ``shape`` reads answers as values. Nothing is imported here, so that
a store without a model pays for none. Deliberately absent: tools that run, conversations, budgets and the environment.
"""
