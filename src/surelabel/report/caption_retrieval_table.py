"""Format retrieval between images and captions as table rows for a page or a terminal."""

from collections.abc import Sequence

from surelabel.counts import format_count
from surelabel.evaluation import PairDirection, PairEvaluation, RelevanceFileMetrics
from surelabel.report.metric_descriptions import (
    NOT_MEASURED,
    UNDEFINED,
    format_described_metric_value,
)

METRIC_TITLES = {
    "median_rank": "median rank",
    "r_precision": "R-Precision",
    "map_at_r": "mAP@R",
    "ndcg": "nDCG",
}
METRICS_WITH_R = ("r_precision", "map_at_r")  # R is the number of own or of all relevant items
QUANTITY_TITLES = {
    "uncertainty": "uncertainty of the pair",
    "minus_score": "null: minus score",
    "minus_margin": "null: minus margin",
    "score": "score",
    "margin": "score minus highest score",
}
DIRECTION_TITLES = {
    "image_to_caption": "image to caption",
    "caption_to_image": "caption to image",
}
RETRIEVAL_HEADER = ("metric", *DIRECTION_TITLES.values())
RELEVANCE_FILE_HEADER = ("relevance", "direction", "queries", "R@1", "R-Precision", "mAP@R")
ERROR_HEADER = (
    "direction",
    "quantity",
    "AUROC of errors",
    "AURC",
    "risk at 80 %",
    "Spearman",
    "Pearson over bins",
)


def caption_retrieval_metric_title(metric: str) -> str:
    """Return the usual name of a metric of retrieval between images and captions.

    Example:
        >>> caption_retrieval_metric_title("relevant_recall_at_5")
        'R@5, all relevant items'
    """
    name = metric.removeprefix("relevant_")
    title = METRIC_TITLES.get(name, name.replace("recall_at_", "R@"))
    if name != metric:
        return f"{title}, all relevant items"
    return f"{title}, own items" if name in METRICS_WITH_R else title


def caption_retrieval_rows(evaluation: PairEvaluation) -> list[list[str]]:
    """Return a row for each metric: its title, and its value with the interval in both directions.

    Further rows contain the recall of a random ranking, the mean recall over folds, and the rate of
    missed false negatives. Metrics that were not computed are omitted.
    """
    directions = list(evaluation.directions.values())
    rows = [
        [caption_retrieval_metric_title(name), *(_metric_text(d, name) for d in directions)]
        for name in directions[0].values
    ]
    rows += [
        [
            f"{caption_retrieval_metric_title(name)} of a random ranking",
            *(format_described_metric_value(d.chance_recall[name], "%") for d in directions),
        ]
        for name in directions[0].chance_recall
    ]
    folds = evaluation.folds
    if folds is not None:
        rows += [
            [
                f"R@{k}, mean of {folds.n_folds} folds",
                format_described_metric_value(recall, "%"),
                format_described_metric_value(folds.caption_to_image[k], "%"),
            ]
            for k, recall in folds.image_to_caption.items()
        ]
    if evaluation.threshold is not None:
        rows.append(
            [
                "missed false negatives (rank > R)",
                *(_false_negatives_text(d) for d in directions),
            ]
        )
    return rows


def relevance_file_rows(files: Sequence[RelevanceFileMetrics]) -> list[list[str]]:
    """Return the rows of ``RELEVANCE_FILE_HEADER``, one for each file of relevant ids."""
    return [
        [
            file.name,
            DIRECTION_TITLES[file.direction],
            f"{file.n_queries:,}",
            *(
                format_described_metric_value(file.metrics[key], "%")
                for key in ("recall_at_1", "r_precision", "map_at_r")
            ),
        ]
        for file in files
    ]


def caption_retrieval_error_rows(evaluation: PairEvaluation) -> list[list[str]]:
    """Return the rows of ``ERROR_HEADER``, one for each direction and each quantity.

    The values state how well the quantity predicts the errors at rank 1.
    """
    return [
        [
            DIRECTION_TITLES[name],
            QUANTITY_TITLES[quantity],
            _with_interval(prediction.auroc, direction, f"auroc_of_{quantity}"),
            format_described_metric_value(prediction.risk_coverage.area, "%"),
            format_described_metric_value(prediction.risk_at_80, "%"),
            _correlation_text(prediction.spearman),
            NOT_MEASURED
            if prediction.bins is None
            else _correlation_text(prediction.bins.pearson_with_index),
        ]
        for name, direction in evaluation.directions.items()
        for quantity, prediction in direction.error_predictions.items()
    ]


def describe_caption_retrieval(evaluation: PairEvaluation) -> list[str]:
    """Return sentences on the data, the sum of recalls and the false negatives."""
    directions = evaluation.directions
    lines = [
        f"The evaluation contains {format_count(evaluation.n_images, 'image')} and "
        f"{format_count(evaluation.n_captions, 'caption')}. RSUM, the sum of R@1, R@5 and R@10 in "
        f"both directions, is {evaluation.rsum:.1f}."
    ]
    if evaluation.folds is not None:
        lines.append(
            f"The mean RSUM of {evaluation.folds.n_folds} folds is {evaluation.folds.rsum:.1f}."
        )
    if n_left_out := directions["image_to_caption"].n_left_out:
        lines.append(
            f"Images without a caption: {n_left_out:,}. These images are ranked, but are not "
            "queries."
        )
    if evaluation.false_negative_auroc:
        values = ", ".join(
            f"{QUANTITY_TITLES[name]} {format_described_metric_value(value, '%')}"
            for name, value in evaluation.false_negative_auroc.items()
        )
        lines.append(f"AUROC of false negatives against true negatives: {values}.")
    return lines


def _metric_text(direction: PairDirection, metric: str) -> str:
    """Return the value of a metric with its interval, or a median rank without an interval."""
    value = direction.metrics[metric]
    if metric.endswith("median_rank"):
        return f"{value:g}"
    return _with_interval(value, direction, metric)


def _with_interval(value: float, direction: PairDirection, statistic: str) -> str:
    text = format_described_metric_value(value, "%")
    interval = direction.intervals.get(statistic)
    if interval is None or text == UNDEFINED:
        return text
    low, high = (format_described_metric_value(end, "%") for end in (interval.low, interval.high))
    return f"{text} ({low.removesuffix(' %')} to {high.removesuffix(' %')})"


def _correlation_text(value: float) -> str:
    return UNDEFINED if value != value else f"{value:.2f}"


def _false_negatives_text(direction: PairDirection) -> str:
    counts = direction.false_negatives
    if counts is None:
        return NOT_MEASURED
    rate = format_described_metric_value(counts.rate, "%")
    return f"{rate} ({counts.missed_items:,} of {counts.relevant_items:,})"
