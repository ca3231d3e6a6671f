"""Pictures and tables of a run, for people."""

from surelabel.report.gallery import Search
from surelabel.report.queries import Answer, Retrieval, retrieval_of
from surelabel.report.region_sheet import region_sheet
from surelabel.report.unseen import Unseen
from surelabel.report.writing import check_place, report

__all__ = [
    "Answer",
    "Retrieval",
    "Search",
    "Unseen",
    "check_place",
    "region_sheet",
    "report",
    "retrieval_of",
]
