"""Evaluation reports as HTML, PNG and JSON, and heat map sheets."""

from surelabel.report.heat_map_sheet import render_heat_map_sheet
from surelabel.report.image_gallery import QueryHits
from surelabel.report.report_files import check_report_folder, report, report_captions
from surelabel.report.search_results import QueryRanking, RetrievalResults, summarize_search_results
from surelabel.report.unseen_classes import UnseenClasses

__all__ = [
    "QueryHits",
    "QueryRanking",
    "RetrievalResults",
    "UnseenClasses",
    "check_report_folder",
    "render_heat_map_sheet",
    "report",
    "report_captions",
    "summarize_search_results",
]
