"""What a thread, its log, its state and its checkpoints mean.

Deliberately absent: SQL and bytes on disk (``engine``), steps, memories, and anything that calls a model.
"""
