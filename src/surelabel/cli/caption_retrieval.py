"""Format metrics of retrieval between images and captions as text tables and as JSON."""

from typing import TYPE_CHECKING, Any

from surelabel.cli.terminal_text import format_terminal_table

if TYPE_CHECKING:
    from surelabel.evaluation import PairEvaluation


def caption_retrieval_as_json(evaluation: "PairEvaluation") -> dict[str, Any]:
    """Return all metrics of an evaluation for ``--json``."""
    return evaluation.as_dict()


def caption_retrieval_as_text(evaluation: "PairEvaluation") -> str:
    """Return the numbers of images and captions, and tables of retrieval and of error prediction.

    The first table contains R@k, median rank, R-Precision and mAP@R of both directions with their
    intervals. The second table contains the prediction of errors at rank 1 by the uncertainty, if
    available, and by two null baselines: minus the score and minus the margin.
    """
    from surelabel.report.caption_retrieval_table import (
        ERROR_HEADER,
        RETRIEVAL_HEADER,
        caption_retrieval_error_rows,
        caption_retrieval_rows,
        describe_caption_retrieval,
    )

    return "\n".join(
        [
            *describe_caption_retrieval(evaluation),
            "",
            format_terminal_table(RETRIEVAL_HEADER, caption_retrieval_rows(evaluation)),
            "",
            "Prediction of errors at rank 1:",
            format_terminal_table(ERROR_HEADER, caption_retrieval_error_rows(evaluation)),
        ]
    )
