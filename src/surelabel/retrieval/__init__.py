"""Search images by combinations of wanted and unwanted labels, with exact results."""

from surelabel.retrieval.hits import Hit, HitList
from surelabel.retrieval.index import Index
from surelabel.retrieval.index_manifest import IndexRecognizer
from surelabel.retrieval.index_status import IndexStatus
from surelabel.retrieval.query import Query, parse
from surelabel.retrieval.sharded_index import ShardedIndex

__all__ = [
    "Hit",
    "HitList",
    "Index",
    "IndexRecognizer",
    "IndexStatus",
    "Query",
    "ShardedIndex",
    "parse",
]
