"""Language models: one protocol, any vendor behind it.

``model`` defines what a model is and what it answers with, and ``choose`` makes one by name. ``vendor``
retries and limits the time; behind it ``request`` makes one request through pydantic-ai, ``translation`` turns
messages into its own and back, and ``blocking`` waits for its coroutines. ``function`` wraps the caller's own
function, ``local`` a small model on this machine, ``shape`` reads answers as values. Nothing is imported here, so that
a store without a model pays for none. Deliberately absent: tools that run, conversations, budgets and the environment.
"""
