"""Render the HTML page of a paired comparison of two models."""

from collections.abc import Sequence

from surelabel.evaluation import Comparison
from surelabel.markup import (
    Markup,
    join_markup,
    markup_element,
    markup_header_cells,
    markup_table_region,
)
from surelabel.report.comparison_tables import (
    ComparisonTable,
    comparison_label_rows,
    comparison_metric_rows,
    comparison_sentences,
    label_difference_sentences,
)
from surelabel.report.page_layout import (
    render_page_layout,
    render_page_plot_grid,
    render_page_section,
)
from surelabel.report.plot_style import Plot

METRIC_NOTE = (
    "If the interval of B − A excludes 0, the last column names the better model. If A and B "
    "are equally good, each interval excludes 0 with a probability of about 5 %."
)
LABEL_NOTE = "An asterisk marks a significant difference, at a false discovery rate of 5 %."


def render_comparison_page(comparison: Comparison, plots: Sequence[Plot]) -> str:
    """Return the HTML page of a comparison.

    Args:
        comparison: Comparison to report.
        plots: Plots of the differences of each label.
    """
    header = join_markup(
        *(markup_element("p", sentence) for sentence in comparison_sentences(comparison))
    )
    metrics = render_page_section(
        "metrics",
        "Metrics",
        markup_element("p", METRIC_NOTE, class_="soft"),
        _render_table("Metrics", comparison_metric_rows(comparison), class_="wide"),
    )
    labels = render_page_section(
        "labels",
        "Labels",
        *(markup_element("p", text) for text in label_difference_sentences(comparison)),
        render_page_plot_grid(plots),
        markup_element("p", LABEL_NOTE, class_="soft"),
        _render_table("Labels", comparison_label_rows(comparison), class_="scroll"),
    )
    sections = {("metrics", "Metrics"): metrics, ("labels", "Labels"): labels}
    return render_page_layout("Comparison report", header, sections)


def _render_table(title: str, table: ComparisonTable, *, class_: str) -> Markup:
    header, rows = table
    body = [
        markup_element(
            "tr",
            markup_element("th", row[0], scope="row", class_="name"),
            *(markup_element("td", cell) for cell in row[1:]),
        )
        for row in rows
    ]
    return markup_table_region(title, markup_header_cells(header), body, class_=class_)
