"""What an agent knows: the handle ``Memories``, wired of the room that keeps memories and the room that finds them.

``handle`` is what callers use, ``library`` keeps the indexes of a store, ``ground`` turns logs and books into
documents. Deliberately absent: rules of either room.
"""

from holdfast.memories.handle import Memories

__all__ = ["Memories"]
