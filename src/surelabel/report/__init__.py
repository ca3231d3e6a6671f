"""Pictures and tables of a run, for people."""

from surelabel.report.gallery import Search
from surelabel.report.writing import check_place, report

__all__ = ["Search", "check_place", "report"]
