"""From files to features, and from names to vectors: computed once, then kept on disk."""

from surelabel.encoding.arrays import ready_made
from surelabel.encoding.pictures import Encoded, Progress, encode
from surelabel.encoding.texts import remembering

__all__ = ["Encoded", "Progress", "encode", "ready_made", "remembering"]
