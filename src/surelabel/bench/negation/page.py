"""Write the Markdown of the comparison of queries with an excluded label."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from textwrap import fill

from surelabel.bench.markdown_page import bold_if, markdown_list, markdown_table_of_rows
from surelabel.bench.metric_cells import interval_cell, percent_text
from surelabel.bench.negation.independence import ConjunctionCalibration, PairCalibration
from surelabel.bench.negation.plan import (
    NEGATION_WORDS,
    OPTIMIZED,
    QUERY,
    ROW_TITLES,
    TUNED,
    WANTED,
)
from surelabel.bench.negation.ranking_metrics import AP, P_AT_5, P_AT_10, VIOLATIONS
from surelabel.bench.negation.results import EncoderResults, NegationResults, NegationRow
from surelabel.bench.rows import intervals_exclude_zero
from surelabel.metrics import ConfidenceInterval
from surelabel.report.metric_descriptions import UNDEFINED

WIDTH = 120  # characters of a line of prose
PERCENT = "\0%"  # percent sign that is not at the start of a line
METRIC_TITLES = {
    AP: "AP",
    P_AT_5: "P@5",
    P_AT_10: "P@10",
    VIOLATIONS: "violations@10",
}
INTRODUCTION = (
    "This page compares eight scores for the query `a & !b`, which selects images with label a and "
    "without label b. `surelabel bench negation` writes this page."
)
COMMAND = """```sh
surelabel bench negation           # both embedded encoders; about 20 minutes, resumable
surelabel bench negation --quick   # bundled images and one encoder; less than a minute
```"""
IMAGES = (
    "**Images**: {dataset}, {validation:,} validation and {test:,} test images with {labels} "
    "labels. The images are generated, so the results do not apply to photographs."
)
QUERIES = (
    "**Queries**: each query is an ordered pair (a, b) of labels. A pair is used if it has at "
    "least {min_relevant} relevant images (a positive, b negative) and at least {min_both} images "
    "with both labels. There are {queries} queries on the test images, each with {least} to {most} "
    "relevant images (median {median}). There are {validation} queries on the validation images. "
    "On average, {share} % of the test images with label a also have label b. {small} test queries "
    "have fewer than 10 relevant images."
)
METRICS = (
    "**Metrics** are means over the test queries: the average precision (AP), the precision at 5 "
    "and at 10 (P@5, P@10), and violations@10. The metric violations@10 is the fraction of the "
    "first 10 hits in which the excluded label b is positive."
)
INTERVALS = (
    "**Intervals** are 95 % bootstrap intervals over the test images, with {resamples:,} resamples "
    "and seed {seed}. Queries are not resampled, because they share labels and images and are "
    "therefore dependent. The intervals hold only for the labels of this dataset. Differences from "
    "row 1 are computed on the same resamples. If a resample contains no relevant image for a "
    "query, the query is excluded from this resample ({undefined:.2f} of {queries} queries on "
    "average). On the original images, all metrics are defined."
)
SELECTION = (
    "**Selection**: for rows {rows}, the settings with the highest mean AP on the validation "
    "queries are selected. Rows 1 to 5 have no settings to select. The calibrator of rows 1 and 4 "
    "is fitted on the validation images. Test images are used only to compute the metrics."
)
ROWS_HEADING = "Each row computes one of the following scores for an image with feature vector x:"
ROW_DESCRIPTIONS = (
    "log p_a + log(1 - p_b), where p_a and p_b are probabilities of the zero-shot recognizer after "
    "`Recognizer.calibrate` on the validation images. {calibrations}",
    "the score of row 1 with the calibrator that the package contains. No image of this "
    "comparison is used to fit this calibrator.",
    "the score of row 1 with p_c = sigmoid(s_c) for each label c. The uncalibrated zero-shot score "
    "is s_c = τ · cos(x, t_c) - r(x). Here, τ is the scale of the encoder and t_c is the "
    "text vector of c. The reference term r(x) is the logarithm of the mean of exp(τ · cos(x, t)) "
    "over the text vectors t of the reference list.",
    "log p_a of row 1, without b.",
    "cos(x, t_a), without b and without the reference term.",
    "the cosine of x and the text vector of one sentence, such as {sentence}.",
    "the cosine of x and the normalized vector t_a - w · t_b.",
    "the cosine of x and an embedding e that is optimized by gradient descent. The loss is "
    "- mean cos(e, p) + v · mean cos(e, n) + u/2 · |e - e_0|². Here, p are the text vectors of a, "
    "n are the text vectors of b, and e_0 is the initial embedding.",
)
REFERENCE_NOTE = (
    "In rows {rows}, a selected setting determines whether r(x) / τ is subtracted from the cosine. "
    "Without this setting, only rows 1 to 4 would contain r(x), so these rows would differ from "
    "the other rows in more than the query."
)
OPTIMIZATION_NOTE = (
    "Row {row} follows the idea of DEO (Lee et al., 2026, arXiv:2603.09185). The loss, the "
    "optimizer, the number of steps and the weights were chosen for this comparison. No language "
    "model is used, because the wanted label and the excluded label are given. Row {row} does not "
    "reproduce the paper, so its values neither confirm nor contradict the published results. With "
    "this loss, the embedding remains in the span of the initial embedding and the text vectors of "
    "a and b. The embedding of row {arithmetic} is also in the span of the text vectors of a and b."
)
UNTRAINED = (
    "The training texts of {encoders} do not contain the words {words}. The row *sentence* "
    "therefore evaluates text encoders with no trained tokens for exclusion. The results of this "
    "row do not apply to text encoders that were trained with these words."
)
RESULTS_NOTE = (
    "Values are in percent and differences in percentage points. A difference is **bold** if its "
    "interval excludes 0. Higher values of AP, P@5 and P@10 are better, and lower values of "
    "violations@10 are better. Because the tables contain many differences, some intervals are "
    "expected to exclude 0 by chance."
)
INDEPENDENCE = (
    "The probability of a conjunction is the product of the probabilities of its literals. The "
    "probability of a literal is p for a wanted label and 1 - p for an unwanted label. The product "
    "is correct under two assumptions. First, the labels are independent given the log-odds of the "
    "recognizer. Second, each probability is calibrated given the log-odds of all labels. The "
    "tables show the joint error of both assumptions for the recognizer of row 1 on the test "
    "images. The rows with one literal contain no product, so their error comes only from "
    "calibration."
)
CONJUNCTIONS = (
    "Conjunctions are sampled from validation images. Wanted labels are sampled from the labels of "
    "an image. Unwanted labels are sampled with probability proportional to their co-occurrence "
    "with the first wanted label. Combinations of labels that co-occur are therefore sampled more "
    "often than other combinations. Repeated conjunctions are removed. *Unfulfilled* conjunctions "
    "have no relevant test image. The relevance rate is the fraction of (conjunction, test image) "
    "pairs in which the image is relevant. Mean probability, relevance rate, their difference and "
    "the ECE are in percent. The expected calibration error (ECE) is computed with 15 bins over "
    "all pairs, with the noise floor in brackets. The ratio is the mean probability divided by the "
    "relevance rate, and is undefined if no image is relevant."
)
PAIRS = (
    "For each unordered pair of labels, the mean of P(a) P(b) over test images is compared with "
    "the observed share of images with both labels. Values are means over pairs of labels, in "
    "percent of the images. The noise floor, in brackets, is the absolute error for targets that "
    "are sampled from P(a) P(b). *Frequent* pairs have at least {count} validation images with "
    "both labels."
)


def negation_paragraphs(results: NegationResults) -> Iterator[str]:
    """Iterate over the Markdown paragraphs of the page."""
    yield "# Queries with an excluded label"
    yield _wrapped(INTRODUCTION)
    yield COMMAND
    yield "## Setup"
    yield _bullets(_setup(results))
    yield ROWS_HEADING
    yield "\n".join(
        _wrapped(f"{number}. **{title}**: {text}", indent="   ")
        for number, (title, text) in enumerate(
            zip(ROW_TITLES.values(), _negation_row_descriptions(results), strict=True), start=1
        )
    )
    yield _wrapped(REFERENCE_NOTE.format(rows=_row_numbers()))
    yield _wrapped(
        OPTIMIZATION_NOTE.format(row=_number(OPTIMIZED), arithmetic=_number(OPTIMIZED) - 1)
    )
    words = _untrained_words(results)
    if words:
        yield _wrapped(words)
    yield "## Results"
    yield _bullets(
        sentence for encoder in results.encoders for sentence in negation_conclusions(encoder)
    )
    yield _wrapped(RESULTS_NOTE)
    for encoder in results.encoders:
        yield f"### {encoder.name}"
        yield markdown_table_of_rows(encoder.rows, _metric_columns())
        yield f"The next table shows the differences from row {_number(QUERY)}:"
        yield markdown_table_of_rows(
            [row for row in encoder.rows if row.differences], _difference_columns()
        )
    yield "## Selected settings"
    yield _wrapped(_validation_note(results))
    yield markdown_table_of_rows(_setting_lines(results), _setting_columns())
    yield "## Error from treating labels as independent"
    yield _wrapped(INDEPENDENCE)
    yield _bullets(
        sentence for encoder in results.encoders for sentence in independence_conclusions(encoder)
    )
    yield "### Conjunctions"
    yield _wrapped(CONJUNCTIONS)
    yield markdown_table_of_rows(
        [(encoder.name, row) for encoder in results.encoders for row in encoder.conjunctions],
        _conjunction_columns(),
    )
    yield "### Pairs of labels"
    yield _wrapped(PAIRS.format(count=results.plan.min_pair_images))
    yield markdown_table_of_rows(
        [(encoder.name, row) for encoder in results.encoders for row in encoder.pairs],
        _pair_columns(),
    )


def negation_conclusions(encoder: EncoderResults) -> Iterator[str]:
    """Iterate over sentences that compare the metrics of the rows of an encoder."""
    query = next(row for row in encoder.rows if row.key == QUERY)
    others = [row for row in encoder.rows if row.key != QUERY]
    for metric in METRIC_TITLES:
        value = interval_cell(query.metrics[metric].value, query.metrics[metric])
        groups = {
            "higher than in": [r for r in others if r.differences[metric].high < 0],
            "lower than in": [r for r in others if r.differences[metric].low > 0],
            "not significantly different from that of": [
                r for r in others if not intervals_exclude_zero(r.differences[metric])
            ],
        }
        relations = [f"{relation} {_rows_text(rows)}" for relation, rows in groups.items() if rows]
        yield (
            f"**{encoder.name}**: the {METRIC_TITLES[metric]} of row {_number(QUERY)} is {value} "
            f"%. This value is {_clauses(relations)}."
        )
    wanted = next(row for row in encoder.rows if row.key == WANTED)
    yield (
        f"**{encoder.name}**: without b in the query (row {_number(WANTED)}), "
        f"{percent_text(wanted.metrics[VIOLATIONS].value)} % of the first 10 hits violate the "
        f"exclusion. With b (row {_number(QUERY)}), "
        f"{percent_text(query.metrics[VIOLATIONS].value)} % of these hits violate the exclusion."
    )


def independence_conclusions(encoder: EncoderResults) -> Iterator[str]:
    """Iterate over sentences on the errors of formula probabilities, which follow from the tables.

    A probability is called too low or too high if the interval of its difference excludes 0.
    """
    for with_unwanted in (False, True):
        rows = [row for row in encoder.conjunctions if row.with_unwanted == with_unwanted]
        groups: dict[str, list[ConjunctionCalibration]] = {}
        for row in rows:
            if row.relevance_rate > 0:
                groups.setdefault(_direction(row.difference), []).append(row)
        kind = "with unwanted labels" if with_unwanted else "only wanted labels"
        sentences = [
            f"mean probability is {direction} with {_literals_text(of_direction)}."
            for direction, of_direction in groups.items()
        ]
        if sentences:
            yield f"**{encoder.name}**, {kind}: the {' The '.join(sentences)}"
    for pair in encoder.pairs:
        error = interval_cell(pair.signed_error.value, pair.signed_error, format_value=_share)
        kind = "frequent pairs" if pair.is_frequent else "all pairs"
        yield (
            f"**{encoder.name}**, {kind}: P(a) P(b) is {_direction(pair.signed_error)}, with a "
            f"mean signed error of {error} points and an observed share of "
            f"{percent_text(pair.observed_share, '.2f')} %."
        )


def _setup(results: NegationResults) -> Iterator[str]:
    plan, (validation, test) = results.plan, results.n_images
    n_validation, n_queries = results.n_queries
    least, median, most = results.relevant
    yield IMAGES.format(
        dataset=results.dataset, validation=validation, test=test, labels=results.n_labels
    )
    yield QUERIES.format(
        min_relevant=plan.min_relevant,
        min_both=plan.min_both,
        queries=n_queries,
        validation=n_validation,
        least=least,
        median=median,
        most=most,
        share=percent_text(results.excluded_share),
        small=results.n_small or "No",
    )
    yield METRICS
    undefined = max(row.undefined for encoder in results.encoders for row in encoder.rows)
    yield INTERVALS.format(
        resamples=plan.resamples, seed=results.seed, undefined=undefined, queries=n_queries
    )
    yield SELECTION.format(rows=_row_numbers())


def _negation_row_descriptions(results: NegationResults) -> list[str]:
    calibrations = " ".join(
        f"The recognizer of {encoder.name} is calibrated with {encoder.calibrated_on}."
        for encoder in results.encoders
    )
    sentence = f'"{results.encoders[0].selected[TUNED[0]].setting.template}"'
    return [text.format(calibrations=calibrations, sentence=sentence) for text in ROW_DESCRIPTIONS]


def _untrained_words(results: NegationResults) -> str:
    """Return the note on untrained words, or an empty string if all words are trained."""
    words = [w for w in NEGATION_WORDS if all(w in e.untrained_words for e in results.encoders)]
    if not words:
        return ""
    encoders = " and ".join(encoder.name for encoder in results.encoders)
    return UNTRAINED.format(encoders=encoders, words=_joined([f'"{word}"' for word in words]))


def _validation_note(results: NegationResults) -> str:
    counts = {row: results.encoders[0].selected[row].n_candidates for row in TUNED}
    text = _joined([f"{count} settings of row {_number(row)}" for row, count in counts.items()])
    fixed = " ".join(
        f"With {encoder.name}, the mean AP on the validation queries is "
        f"{_joined([percent_text(value) for value in encoder.validation_ap.values()])} % "
        f"for rows {_joined([str(_number(row)) for row in encoder.validation_ap])}."
        for encoder in results.encoders
    )
    plan = results.plan
    return (
        f"The selection compares {text}. The counts include each setting with and without the "
        f"reference term. Row 7 compares the weights w = {_values(plan.weights)}. "
        f"Row 8 compares {_values(plan.steps)} steps, the "
        f"weights v = {_values(plan.negative_weights)} and u = {_values(plan.start_weights)}, and "
        "two initial embeddings. The initial embedding is the text vector of label a or of the "
        f"sentence of row 6. {fixed} These rows have no settings to select. Rows 1 and 4 are left "
        "out, because their calibrator was fitted on the validation images."
    )


def _setting_lines(results: NegationResults) -> list[tuple[EncoderResults, str]]:
    return [(encoder, row) for encoder in results.encoders for row in encoder.selected]


def _setting_columns() -> dict[str, Callable[[tuple[EncoderResults, str]], str]]:
    return {
        "encoder": lambda line: line[0].name,
        "row": lambda line: _row_title(line[1]),
        "settings": lambda line: line[0].selected[line[1]].setting.description,
        "AP on validation queries": lambda line: percent_text(
            line[0].selected[line[1]].validation_ap
        ),
    }


def _metric_columns() -> dict[str, Callable[[NegationRow], str]]:
    def cell(metric: str) -> Callable[[NegationRow], str]:
        return lambda row: interval_cell(row.metrics[metric].value, row.metrics[metric])

    columns: dict[str, Callable[[NegationRow], str]] = {"row": lambda row: _row_title(row.key)}
    return columns | {title: cell(metric) for metric, title in METRIC_TITLES.items()}


def _difference_columns() -> dict[str, Callable[[NegationRow], str]]:
    def cell(metric: str) -> Callable[[NegationRow], str]:
        def text(row: NegationRow) -> str:
            difference = row.differences[metric]
            value = interval_cell(difference.value, difference, format_value=_points_of_negation)
            return bold_if(intervals_exclude_zero(difference), value)

        return text

    columns: dict[str, Callable[[NegationRow], str]] = {"row": lambda row: _row_title(row.key)}
    return columns | {title: cell(metric) for metric, title in METRIC_TITLES.items()}


def _conjunction_columns() -> dict[str, Callable[[tuple[str, ConjunctionCalibration]], str]]:
    return {
        "encoder": lambda line: line[0],
        "literals": lambda line: str(line[1].length),
        "kind": lambda line: "with unwanted" if line[1].with_unwanted else "only wanted",
        "conjunctions": lambda line: str(line[1].n_queries),
        "unfulfilled": lambda line: str(line[1].n_unfulfilled),
        "mean probability": lambda line: _small(line[1].mean_probability),
        "relevance rate": lambda line: _small(line[1].relevance_rate),
        "difference": lambda line: interval_cell(
            line[1].difference.value, line[1].difference, format_value=_share
        ),
        "ratio": lambda line: _ratio_cell(line[1].ratio),
        "ECE": lambda line: f"{_small(line[1].ece)} [{_small(line[1].ece_noise_floor)}]",
    }


def _pair_columns() -> dict[str, Callable[[tuple[str, PairCalibration]], str]]:
    return {
        "encoder": lambda line: line[0],
        "pairs": lambda line: "frequent" if line[1].is_frequent else "all",
        "number": lambda line: f"{line[1].n_pairs:,}",
        "mean P(a) P(b)": lambda line: _small(line[1].expected_share),
        "observed share": lambda line: _small(line[1].observed_share),
        "signed error": lambda line: interval_cell(
            line[1].signed_error.value, line[1].signed_error, format_value=_share
        ),
        "absolute error": lambda line: (
            f"{_small(line[1].absolute_error)} [{_small(line[1].absolute_error_noise_floor)}]"
        ),
    }


def _direction(difference: ConfidenceInterval) -> str:
    """Return whether a mean probability is significantly too low or too high."""
    if not intervals_exclude_zero(difference):
        return "not significantly biased"
    return "too high" if difference.value > 0 else "too low"


def _ratio_cell(ratio: ConfidenceInterval) -> str:
    if isnan(ratio.value):
        return UNDEFINED
    return interval_cell(ratio.value, ratio, format_value=lambda value: f"{value:.2f}")


def _row_title(row: str) -> str:
    return f"{_number(row)}. {ROW_TITLES[row]}"


def _number(row: str) -> int:
    """Return the number of a row in the tables, from 1."""
    return list(ROW_TITLES).index(row) + 1


def _row_numbers() -> str:
    return _joined([str(_number(row)) for row in TUNED])


def _rows_text(rows: Sequence[NegationRow]) -> str:
    numbers = [str(_number(row.key)) for row in rows]
    return f"row{'s' if len(rows) > 1 else ''} {_joined(numbers)}"


def _literals_text(rows: Sequence[ConjunctionCalibration]) -> str:
    """Return numbers of literals with their ratios: ``1 and 2 literals (ratios 0.99 and 0.31)``."""
    lengths = _joined([str(row.length) for row in rows])
    ratios = _joined([f"{row.ratio.value:.2f}" for row in rows])
    literals = "literal" if lengths == "1" else "literals"
    return f"{lengths} {literals} ({'ratios' if len(rows) > 1 else 'ratio'} {ratios})"


def _joined(texts: Sequence[str]) -> str:
    """Return texts as a list in a sentence: ``1, 2 and 3``."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _clauses(texts: Sequence[str]) -> str:
    """Return clauses in a sentence, with a comma before ``and``."""
    return ", and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def _values(values: Sequence[float]) -> str:
    """Return compared values as a list, or as a range if there are more than four."""
    if len(values) > 4:
        return f"{values[0]:g} to {values[-1]:g} in steps of {values[1] - values[0]:g}"
    return _joined([f"{value:g}" for value in values])


def _small(value: float) -> str:
    return percent_text(value, ".3g" if value < 0.001 else ".2f")


def _share(value: float) -> str:
    return percent_text(value, "+.3f")


def _points_of_negation(value: float) -> str:
    return percent_text(value, "+.2f")


def _wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph with lines of at most 120 characters."""
    lines = fill(
        text.replace(" %", PERCENT),
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace(PERCENT, " %")


def _bullets(sentences: Iterator[str]) -> str:
    return markdown_list(_wrapped(f"- {text}", indent="  ")[2:] for text in sentences)
