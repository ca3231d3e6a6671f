"""Pictures and tables of a run, for people."""

from surelabel.report.gallery import Search
from surelabel.report.queries import Answer, Retrieval, retrieval_of
from surelabel.report.writing import check_place, report

__all__ = ["Answer", "Retrieval", "Search", "check_place", "report", "retrieval_of"]
