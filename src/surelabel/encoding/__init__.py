"""From files to features, and from names to vectors: computed once, then kept on disk."""

from surelabel.encoding.arrays import ready_made
from surelabel.encoding.memory import encode_pictures
from surelabel.encoding.parts import ladder_part
from surelabel.encoding.pictures import Encoded, Progress, encode
from surelabel.encoding.texts import remembering
from surelabel.encoding.views import Viewed, encode_views

__all__ = [
    "Encoded",
    "Progress",
    "Viewed",
    "encode",
    "encode_pictures",
    "encode_views",
    "ladder_part",
    "ready_made",
    "remembering",
]
