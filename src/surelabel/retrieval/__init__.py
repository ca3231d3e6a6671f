"""Searching pictures by several wanted and unwanted labels at once, exactly."""

from surelabel.retrieval.index import Hit, Index
from surelabel.retrieval.query import Query, parse
from surelabel.retrieval.status import Status

__all__ = ["Hit", "Index", "Query", "Status", "parse"]
