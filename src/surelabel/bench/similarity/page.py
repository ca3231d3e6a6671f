"""Write the Markdown of the comparison of similarity methods."""

from collections.abc import Callable, Iterator, Sequence

from surelabel.bench.class_group_metrics import BASE, HARMONIC, NEW
from surelabel.bench.markdown_page import bold_if, markdown_list, markdown_table_of_rows
from surelabel.bench.metric_cells import interval_cell, metric_mean_cell, percent_text
from surelabel.bench.rows import RowDifference, intervals_exclude_zero
from surelabel.bench.similarity.plan import (
    CONTRASTIVE,
    DETACHED,
    SIGMOID,
    VACSR,
    ZERO_SHOT,
)
from surelabel.bench.similarity.results import (
    ABLATION,
    DIRECTIONS,
    LOSSES,
    MAIN,
    NOISE,
    SENSITIVITY,
    SimilarityResults,
    SimilarityRow,
    TaggerRow,
)

QUANTITIES = ("uncertainty", "minus_score", "minus_margin")
SimilarityCell = Callable[[SimilarityRow], str]
INTRODUCTION = (
    "The training data are {train:,} captions of {images:,} images, and the test data are {test:,} "
    "captions of {test_images:,} images. The image and text features of {dataset} are frozen. "
    "Projections and similarity networks are trained for {epochs} epochs with batches of {batch} "
    "captions. A caption is relevant for an image if all objects that the caption mentions are in "
    "the image. In the test data, {relevant:,} pairs of an image and a caption of another image "
    "are relevant. In training, such pairs are negatives."
)
SELECTION = (
    "For each method and loss, the learning rate with the highest mAP@R on {validation:,} "
    "validation images is selected from {rates}."
)
VALUES = (
    "Values are means over both retrieval directions and over all seeds ± standard deviation over "
    "seeds, in percent. R@1 (own) and RSUM count only own captions and images as relevant. R@1, "
    "R-Precision and mAP@R count all relevant captions and images."
)
DIFFERENCES = (
    "Differences are in percentage points, with the paired 95 % intervals over seeds and over test "
    "images. **Bold**: both intervals exclude 0. Because the tables contain many differences, some "
    "intervals are expected to exclude 0 by chance."
)
UNCERTAINTY = (
    "The table shows the AUROC of the errors at rank 1 (higher is better) and the area under the "
    "risk-coverage curve (AURC, lower is better). The columns *bins* show the Pearson correlation "
    "of R@1 with the bin index, for ten bins of equal size in ascending order of the quantity. The "
    "quantities are the uncertainty, and two baselines: minus the score, and minus the margin of "
    "the first over the second item."
)
RANKING = (
    "The table shows the Pearson correlation of mAP@R with the bin index, for ten bins in "
    "ascending order of a quantity. The quantity is the mean uncertainty or the negative mean "
    "score of the first K items."
)
FALSE_NEGATIVES = (
    "A relevant pair of an image and a caption of another image is missed if its rank exceeds the "
    "number of relevant items. The AUROC compares all relevant pairs of an image and a caption of "
    "another image with irrelevant pairs."
)
TAGGERS = (
    "The table shows methods that predict labels, before calibration and with {shots} positive "
    "images per base label, as in the comparison `prompts`. The columns are mAP and ECE of base "
    "labels and of new labels, the harmonic mean of mAP, and the balanced accuracy in other "
    "domains."
)


def similarity_paragraphs(results: SimilarityResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs about one dataset."""
    plan = results.plan
    train, test = results.n_captions
    yield f"## {results.dataset}"
    yield INTRODUCTION.format(
        train=train,
        images=plan.images,
        test=test,
        test_images=plan.test,
        dataset=results.dataset,
        epochs=plan.epochs,
        batch=plan.batch_size,
        relevant=results.n_relevant,
    )
    if len(plan.learning_rates) > 1:
        rates = " and ".join(f"{rate:g}" for rate in plan.learning_rates)
        yield SELECTION.format(rates=rates, validation=plan.validation)
    yield markdown_list(similarity_conclusions(results))
    yield f"{VALUES} {DIFFERENCES}"
    for heading, table in (
        ("Methods and losses", MAIN),
        ("Noisy correspondence", NOISE),
        ("Parts of VACSR", ABLATION),
        ("Losses with a fixed scale", LOSSES),
    ):
        yield f"### {heading}"
        yield markdown_table_of_rows(results.tables[table], _retrieval_columns(table))
    yield "### Sensitivity of VACSR (one seed)"
    yield markdown_table_of_rows(results.tables[SENSITIVITY], _sensitivity_columns())
    rows = [row for row in results.tables[MAIN] if _has_uncertainty(row)]
    yield "### Uncertainty and errors"
    yield UNCERTAINTY
    yield markdown_table_of_rows(_uncertainty_lines(rows), _uncertainty_columns())
    yield RANKING
    yield markdown_table_of_rows(_ranking_rows(rows), _ranking_columns())
    yield "### False negatives"
    yield FALSE_NEGATIVES
    yield markdown_table_of_rows(results.tables[MAIN], _false_negative_columns())
    yield "### Other domains: mAP@R"
    yield markdown_table_of_rows(results.tables[MAIN], _domain_columns(results))
    yield "### Base and new labels"
    yield TAGGERS.format(shots=plan.tagger_shots)
    yield markdown_table_of_rows(results.taggers, _tagger_columns(results))
    yield "### Cost"
    yield markdown_table_of_rows(results.tables[MAIN], _cost_columns(results))


def similarity_conclusions(results: SimilarityResults) -> Iterator[str]:
    """Iterate over the conclusions, each of which follows from the tables."""
    for row in results.tables[NOISE]:
        if row.setting.without_noise not in (VACSR, DETACHED):
            continue
        for reference in (SIGMOID, CONTRASTIVE):
            yield _difference_sentence(row, reference.title)
    for title in (VACSR.title, DETACHED.title):
        row = next(row for row in results.tables[MAIN] if row.title == title)
        yield _uncertainty_sentence(row)


def _difference_is_significant(difference: RowDifference, row: SimilarityRow) -> bool:
    """Return whether the interval over images and, with several seeds, over seeds excludes 0."""
    if len(row.metrics["rsum"]) == 1:
        return intervals_exclude_zero(difference.over_images)
    return difference.excludes_zero


def _difference_text(difference: RowDifference, row: SimilarityRow) -> str:
    """Return a difference with its intervals, or only the interval over images for one seed."""
    intervals = [difference.over_seeds, difference.over_images]
    used = intervals[1:] if len(row.metrics["rsum"]) == 1 else intervals
    return interval_cell(difference.value, *used, format_value=_points)


def _difference_sentence(row: SimilarityRow, reference: str) -> str:
    """Return a sentence on the mAP@R of a row, compared with another loss with the same noise."""
    difference = row.differences[reference]["relevant_map_at_r"]
    verb = "does not differ significantly from"
    if _difference_is_significant(difference, row):
        verb = "is higher than" if difference.value > 0 else "is lower than"
    gap = _difference_text(difference, row)
    noise = f"{row.setting.noise:.0%} noisy captions".replace("%", " %")
    return (
        f"With {noise}, the mAP@R of {row.title} {verb} that of the {reference}; the difference is "
        f"{gap} points."
    )


def _uncertainty_sentence(row: SimilarityRow) -> str:
    """Return a sentence on the AUROC of errors by the uncertainty and by both baselines."""
    texts = []
    for direction in DIRECTIONS:
        values = [
            percent_text(row.mean(f"{direction}_{quantity}_auroc")) for quantity in QUANTITIES
        ]
        texts.append(
            f"{values[0]} % for the uncertainty, {values[1]} % for minus the score and "
            f"{values[2]} % for minus the margin ({direction.replace('_', ' ')})"
        )
    return f"For errors at rank 1 of {row.title}, the AUROC is {'; '.join(texts)}."


def _points(value: float) -> str:
    return percent_text(value, "+.1f")


def _percent_cell(metric: str) -> SimilarityCell:
    return lambda row: metric_mean_cell(row, metric)


def _plain_cell(metric: str, spec: str) -> Callable[[SimilarityRow], str]:
    return lambda row: metric_mean_cell(row, metric, lambda value: format(value, spec))


def _difference_cell(reference: str, metric: str = "relevant_map_at_r") -> SimilarityCell:
    def cell(row: SimilarityRow) -> str:
        if reference not in row.differences:
            return "–"
        difference = row.differences[reference][metric]
        text = _difference_text(difference, row)
        return bold_if(_difference_is_significant(difference, row), text)

    return cell


def _retrieval_columns(table: str) -> dict[str, SimilarityCell]:
    columns: dict[str, SimilarityCell] = {"row": lambda row: row.title}
    if table == NOISE:
        columns["noise"] = lambda row: f"{row.setting.noise:.0%}".replace("%", " %")
    columns |= {
        "R@1 (own)": _percent_cell("recall_at_1"),
        "R@1": _percent_cell("relevant_recall_at_1"),
        "R-Precision": _percent_cell("relevant_r_precision"),
        "mAP@R": _percent_cell("relevant_map_at_r"),
        "mAP@R − sigmoid": _difference_cell(SIGMOID.title),
        "mAP@R − contrastive": _difference_cell(CONTRASTIVE.title),
    }
    if table == MAIN:
        columns["R-Precision − sigmoid"] = _difference_cell(SIGMOID.title, "relevant_r_precision")
        columns["R-Precision − contrastive"] = _difference_cell(
            CONTRASTIVE.title, "relevant_r_precision"
        )
        columns["RSUM"] = _plain_cell("rsum", ".1f")
    columns["seeds"] = lambda row: str(len(row.metrics["rsum"]))
    columns["learning rate"] = lambda row: f"{row.learning_rate:g}" if row.learning_rate else "–"
    columns["noise inflation"] = _plain_cell("noise_inflation", ".1f")
    return columns


def _sensitivity_columns() -> dict[str, SimilarityCell]:
    def first_seed(metric: str) -> SimilarityCell:
        return lambda row: percent_text(row.metrics[metric][0])

    return {
        "row": lambda row: row.title,
        "R@1 (own)": first_seed("recall_at_1"),
        "R-Precision": first_seed("relevant_r_precision"),
        "mAP@R": first_seed("relevant_map_at_r"),
        "AUROC of errors, image to caption": first_seed("image_to_caption_uncertainty_auroc"),
        "noise inflation": lambda row: f"{row.metrics['noise_inflation'][0]:.0f}",
    }


def _has_uncertainty(row: SimilarityRow) -> bool:
    return "image_to_caption_uncertainty_auroc" in row.metrics


def _uncertainty_lines(rows: Sequence[SimilarityRow]) -> list[tuple[SimilarityRow, str]]:
    """Return row and direction of each line of the table of errors at rank 1."""
    return [(row, direction) for row in rows for direction in DIRECTIONS]


def _uncertainty_columns() -> dict[str, Callable[[tuple[SimilarityRow, str]], str]]:
    def cell(
        quantity: str, statistic: str, format_value: Callable[[float], str]
    ) -> Callable[[tuple[SimilarityRow, str]], str]:
        def text(line: tuple[SimilarityRow, str]) -> str:
            row, direction = line
            return metric_mean_cell(row, f"{direction}_{quantity}_{statistic}", format_value)

        return text

    columns: dict[str, Callable[[tuple[SimilarityRow, str]], str]] = {
        "row": lambda line: line[0].title,
        "direction": lambda line: line[1].replace("_", " "),
    }
    for statistic, title, format_value in (
        ("auroc", "AUROC", percent_text),
        ("area", "AURC", percent_text),
        ("bin_pearson", "bins", "{:.2f}".format),
    ):
        for quantity in QUANTITIES:
            name = quantity.replace("_", " ")
            columns[f"{title}, {name}"] = cell(quantity, statistic, format_value)
    return columns


def _ranking_rows(rows: Sequence[SimilarityRow]) -> list[tuple[SimilarityRow, str, str]]:
    """Return row, direction and quantity of each line of the table of the first K items."""
    return [
        (row, direction, quantity)
        for row in rows
        for direction in DIRECTIONS
        for quantity in ("uncertainty", "minus_score")
    ]


def _ranking_columns() -> dict[str, Callable[[tuple[SimilarityRow, str, str]], str]]:
    def value_at(k: int) -> Callable[[tuple[SimilarityRow, str, str]], str]:
        def cell(line: tuple[SimilarityRow, str, str]) -> str:
            row, direction, quantity = line
            return f"{row.mean(f'{direction}_{quantity}_top_{k}_bin_pearson'):.2f}"

        return cell

    columns: dict[str, Callable[[tuple[SimilarityRow, str, str]], str]] = {
        "row": lambda line: line[0].title,
        "direction": lambda line: line[1].replace("_", " "),
        "quantity": lambda line: line[2].replace("_", " "),
    }
    return columns | {f"K = {k}": value_at(k) for k in range(1, 11)}


def _false_negative_columns() -> dict[str, SimilarityCell]:
    def uncertainty(row: SimilarityRow) -> str:
        key = "false_negative_auroc_uncertainty"
        return metric_mean_cell(row, key) if key in row.metrics else "–"

    return {
        "row": lambda row: row.title,
        "missed, image to caption": _percent_cell("image_to_caption_missed_false_negatives"),
        "missed, caption to image": _percent_cell("caption_to_image_missed_false_negatives"),
        "AUROC, score": _percent_cell("false_negative_auroc_score"),
        "AUROC, margin": _percent_cell("false_negative_auroc_margin"),
        "AUROC, uncertainty": uncertainty,
    }


def _domain_columns(results: SimilarityResults) -> dict[str, SimilarityCell]:
    columns: dict[str, SimilarityCell] = {
        "row": lambda row: row.title,
        "photo": _percent_cell("relevant_map_at_r"),
    }
    for domain in results.plan.domains:
        columns[domain] = _percent_cell(f"{domain}_relevant_map_at_r")
    return columns


def _tagger_columns(results: SimilarityResults) -> dict[str, Callable[[TaggerRow], str]]:
    def cell(metric: str) -> Callable[[TaggerRow], str]:
        return lambda row: metric_mean_cell(row, metric)

    columns: dict[str, Callable[[TaggerRow], str]] = {"method": lambda row: f"`{row.title}`"}
    for group in (BASE, NEW, HARMONIC):
        columns[f"mAP, {group}"] = cell(f"raw_{group}_mean_average_precision")
    for group in (BASE, NEW):
        columns[f"ECE, {group}"] = cell(f"raw_{group}_ece")
    for domain in results.plan.domains:
        for group in (BASE, NEW):
            key = f"raw_{domain}_{group}_balanced_accuracy"
            columns[f"balanced accuracy, {domain}, {group}"] = cell(key)
    return columns


def _cost_columns(results: SimilarityResults) -> dict[str, SimilarityCell]:
    n_steps = results.plan.epochs * -(-results.n_captions[0] // results.plan.batch_size)

    def step(row: SimilarityRow) -> str:
        if row.setting.method == ZERO_SHOT:
            return "–"
        return f"{1000 * row.mean('fit_seconds') / n_steps:.1f}"

    return {
        "row": lambda row: row.title,
        "trained parameters": lambda row: f"{row.mean('parameters'):,.0f}",
        "processor time per step, ms": step,
        "processor time of the evaluation, s": _plain_cell("evaluation_seconds", ".1f"),
    }
