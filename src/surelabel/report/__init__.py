"""Write reports as HTML, Markdown, PNG and JSON, and render image galleries and heat maps."""

from surelabel.report.gallery_images import (
    GalleryImage,
    GalleryLabel,
    gallery_image_of_hit,
    gallery_image_of_skipped,
    gallery_image_of_tags,
)
from surelabel.report.gallery_page import MAX_GALLERY_IMAGES, write_gallery_page
from surelabel.report.heat_map_sheet import HeatMapLabel, render_heat_map_sheet
from surelabel.report.image_gallery import QueryHits
from surelabel.report.label_audit import check_audit_folder, write_audit_report
from surelabel.report.report_files import (
    check_report_folder,
    report,
    report_captions,
    report_comparison,
)
from surelabel.report.search_results import QueryRanking, RetrievalResults, summarize_search_results
from surelabel.report.unseen_classes import UnseenClasses

__all__ = [
    "MAX_GALLERY_IMAGES",
    "GalleryImage",
    "GalleryLabel",
    "HeatMapLabel",
    "QueryHits",
    "QueryRanking",
    "RetrievalResults",
    "UnseenClasses",
    "check_audit_folder",
    "check_report_folder",
    "gallery_image_of_hit",
    "gallery_image_of_skipped",
    "gallery_image_of_tags",
    "render_heat_map_sheet",
    "report",
    "report_captions",
    "report_comparison",
    "summarize_search_results",
    "write_audit_report",
    "write_gallery_page",
]
