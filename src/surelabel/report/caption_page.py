"""Render the HTML page of a report on retrieval between images and captions."""

from collections.abc import Sequence

from surelabel.evaluation import PairEvaluation
from surelabel.markup import Markup, markup_element
from surelabel.records import PairFeatures, Pairs
from surelabel.report.caption_retrieval import (
    render_caption_retrieval,
    render_caption_retrieval_table,
    render_doubtful_queries,
)
from surelabel.report.caption_retrieval_table import RELEVANCE_FILE_HEADER
from surelabel.report.page_layout import (
    render_page_layout,
    render_page_plot_grid,
    render_page_section,
)
from surelabel.report.plot_style import Plot


def render_caption_page(
    evaluation: PairEvaluation,
    pairs: Pairs | PairFeatures,
    plots: Sequence[Plot],
    *,
    model: str = "",
    relevance_rows: Sequence[Sequence[str]] = (),
) -> str:
    """Return the HTML page of an evaluation on images with captions.

    Args:
        evaluation: Evaluation to report.
        pairs: Images and captions of the evaluation. If they are vectors, the page has no doubtful
            queries.
        plots: Plots of the uncertainty.
        model: Name of the recognizer.
        relevance_rows: Table rows of relevance files, with the columns of
            ``RELEVANCE_FILE_HEADER``.
    """
    relevance = Markup("")
    if relevance_rows:
        table = render_caption_retrieval_table(
            "Relevance files", RELEVANCE_FILE_HEADER, relevance_rows
        )
        relevance = render_page_section("relevance", "Relevance files", table)
    doubtful = Markup("")
    if isinstance(pairs, Pairs):
        doubtful = render_page_section(
            "doubtful", "Most uncertain queries", render_doubtful_queries(evaluation, pairs)
        )
    sections = {
        ("retrieval", "Retrieval"): render_page_section(
            "retrieval",
            "Retrieval between images and captions",
            render_caption_retrieval(evaluation),
        ),
        ("relevance", "Relevance files"): relevance,
        ("uncertainty", "Uncertainty"): render_page_section(
            "uncertainty", "Uncertainty and errors", render_page_plot_grid(plots)
        ),
        ("doubtful", "Most uncertain queries"): doubtful,
    }
    header = markup_element("p", f"Recognizer: {model}" if model else "")
    return render_page_layout("Retrieval report", header, sections)
