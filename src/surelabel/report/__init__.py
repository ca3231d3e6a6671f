"""Pictures and tables of a run, for people."""

from surelabel.report.gallery import Search
from surelabel.report.writing import report

__all__ = ["Search", "report"]
