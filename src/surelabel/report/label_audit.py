"""Write the report of a label audit: HTML, Markdown, a CSV file to correct, and JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

from surelabel.counts import format_count
from surelabel.data import write_label_corrections
from surelabel.errors import DataError
from surelabel.evaluation import ERROR_KINDS, MISSING_POSITIVE
from surelabel.files import atomic_folder
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.progress import Progress
from surelabel.recognizer import LabelAudit, SuspectedError
from surelabel.report.gallery_images import GalleryImage, GalleryLabel
from surelabel.report.gallery_page import render_gallery_cards
from surelabel.report.image_paths import common_image_folder, render_image_folder
from surelabel.report.json_values import strict_json_value
from surelabel.report.markdown_page import markdown_of_page
from surelabel.report.metric_descriptions import format_described_probability
from surelabel.report.page_layout import render_page_layout, render_page_section
from surelabel.storage.image_paths import absolute_image_path

PAGE, MARKDOWN, CORRECTIONS, AUDIT = "index.html", "report.md", "corrections.csv", "audit.json"
FORMAT = "surelabel-audit-1"
MAX_SHOWN_ERRORS = 300  # of each kind on the page, which is at most about 10 MB
KIND_TITLES = {"missing positive": "Missing positives", "wrong positive": "Wrong positives"}
NOTE = (
    "Each target below is more likely wrong than correct, according to models that were not fitted "
    "on the image of the target. Models also make errors, so check each target. In each section, "
    "targets are sorted by the probability of the opposite target, highest first."
)


def write_audit_report(
    audit: LabelAudit, folder: str | Path, *, progress: Progress | None = None
) -> Path:
    """Write the report of an audit: a page with images, Markdown, a CSV file to correct, and JSON.

    ``index.html`` needs no other file and no network, and shows at most 300 targets of each kind.
    ``report.md`` contains the same text and tables without images. ``corrections.csv`` contains all
    suspected errors. Fill its column ``corrected``, and pass the file to ``correct_labels``.
    ``audit.json`` contains all results.

    Args:
        audit: Result of the audit.
        folder: Folder of the report, which must be new or empty.
        progress: Function called with the number of finished thumbnails and their total number,
            separately for each kind of error.

    Returns:
        Path of ``index.html``.

    Raises:
        DataError: If the path is a file, if the folder is not empty, or if it cannot be written.
    """
    check_audit_folder(folder)
    suspected = [error for kind in ERROR_KINDS for error in audit.suspected(kind)]
    page = _render_audit_page(audit, progress)
    text = json.dumps(strict_json_value({"format": FORMAT, **audit.as_dict()}), indent=1)
    path = Path(folder)
    with atomic_folder(path.resolve()) as new:
        write_label_corrections(
            new / CORRECTIONS,
            (_correction_row(error, has_images=audit.has_images) for error in suspected),
        )
        for name, content in ((AUDIT, text), (PAGE, page), (MARKDOWN, markdown_of_page(page))):
            # a file name may contain bytes that are not Unicode; these are written as escapes
            (new / name).write_text(content, encoding="utf-8", errors="backslashreplace")
    return path / PAGE


def check_audit_folder(folder: str | Path) -> None:
    """Check that a folder is new or empty, so that no filled corrections are lost.

    Raises:
        DataError: If the path is a file, or if the folder contains files.
    """
    path = Path(folder)
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise DataError(
            f"The folder of an audit must be new or empty, because a new audit would replace "
            f"{CORRECTIONS}; got {path}. Give another folder."
        )


def _correction_row(
    error: SuspectedError, *, has_images: bool
) -> tuple[str, str, int, float, float]:
    path = absolute_image_path(error.path) if has_images else error.path
    target = 0 if error.kind == MISSING_POSITIVE else 1
    return path, error.label, target, error.probability, error.error_probability


def _render_audit_page(audit: LabelAudit, progress: Progress | None) -> str:
    counts = [
        f"{format_count(len(audit.suspected(kind)), f'suspected {kind}')}" for kind in ERROR_KINDS
    ]
    header = join_markup(
        markup_element(
            "p",
            f"{format_count(len(audit.paths), audit.noun)}, "
            f"{format_count(len(audit.names), 'label')}: {' and '.join(counts)}.",
        ),
        markup_element("p", f"Probabilities: {audit.description}.", class_="soft"),
        markup_element("p", NOTE),
        markup_element(
            "p",
            "To correct targets, enter 1, 0 or unknown in the column “corrected” of ",
            markup_element("code", CORRECTIONS),
            ". Then pass this file to surelabel fit with ",
            markup_element("code", f"--corrections {CORRECTIONS}"),
            ". An empty cell does not change the target.",
        ),
    )
    sections = {("labels", "Labels"): _render_audit_labels(audit)}
    for kind in ERROR_KINDS:
        anchor = kind.replace(" ", "-")
        sections[anchor, KIND_TITLES[kind]] = _render_audit_kind(audit, kind, anchor, progress)
    return render_page_layout("Label audit", header, sections)


def _render_audit_labels(audit: LabelAudit) -> Markup:
    """Return a table of the labels with suspected errors."""
    titles = ("label", "positives", "negatives", "missing positives", "wrong positives")
    rows = [
        markup_element(
            "tr",
            markup_element("th", str(row["label"]), scope="row", class_="name"),
            *(markup_element("td", f"{row[title]:,}") for title in titles[1:]),
        )
        for row in audit.label_rows()
        if row["missing positives"] or row["wrong positives"]
    ]
    if not rows:
        return Markup("")
    table = markup_table_region("Labels", markup_header_cells(titles), rows, class_="scroll")
    return render_page_section("labels", "Suspected errors by label", table)


def _render_audit_kind(
    audit: LabelAudit, kind: str, anchor: str, progress: Progress | None
) -> Markup:
    errors = audit.suspected(kind)
    if not errors:
        return Markup("")
    shown = errors[:MAX_SHOWN_ERRORS]
    annotated = "negative" if kind == MISSING_POSITIVE else "positive"
    sentence = f"Suspected errors: {format_count(len(errors), 'target')} annotated as {annotated}"
    if len(shown) < len(errors):
        sentence += (
            f". The page shows the first {len(shown):,} targets; {CORRECTIONS} contains all targets"
        )
    note = markup_element("p", f"{sentence}.", class_="soft")
    content = (
        _render_audit_images(shown, annotated, progress)
        if audit.has_images
        else _render_audit_rows(shown)
    )
    return render_page_section(anchor, KIND_TITLES[kind], note, content)


def _render_audit_images(
    errors: Sequence[SuspectedError], annotated: str, progress: Progress | None
) -> Markup:
    """Return cards with the image, the label and the probabilities of each target."""
    folder = common_image_folder(absolute_image_path(error.path) for error in errors)
    images = [
        GalleryImage(
            error.path,
            [
                GalleryLabel("annotated", annotated),
                GalleryLabel(
                    "probability",
                    format_described_probability(error.probability),
                    error.probability,
                ),
                GalleryLabel(
                    "probability of an error",
                    format_described_probability(error.error_probability),
                ),
            ],
            title=error.label,
        )
        for error in errors
    ]
    return join_markup(
        render_image_folder(folder), render_gallery_cards(images, folder, progress=progress)
    )


def _render_audit_rows(errors: Sequence[SuspectedError]) -> Markup:
    """Return a table of targets of vectors or scores, which have no images."""
    rows = [
        markup_element(
            "tr",
            markup_element("th", error.path, scope="row", class_="name"),
            markup_element("td", error.label),
            markup_element("td", format_described_probability(error.probability)),
            markup_element("td", format_described_probability(error.error_probability)),
        )
        for error in errors
    ]
    header = markup_header_cells(("row", "label", "probability", "probability of an error"))
    return markup_table_region("Targets", header, rows, class_="scroll")
