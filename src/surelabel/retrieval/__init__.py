"""Searching pictures by several wanted and unwanted labels at once, exactly."""

from surelabel.retrieval.index import Hit, Index
from surelabel.retrieval.query import Query, parse

__all__ = ["Hit", "Index", "Query", "parse"]
