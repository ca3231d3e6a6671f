"""Exact image search by combinations of wanted and unwanted labels."""

from surelabel.retrieval.index import Hit, Index
from surelabel.retrieval.index_status import IndexStatus
from surelabel.retrieval.query import Query, parse

__all__ = ["Hit", "Index", "IndexStatus", "Query", "parse"]
