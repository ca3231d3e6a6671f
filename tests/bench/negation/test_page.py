from dataclasses import replace

import pytest

from surelabel.bench.negation.page import (
    independence_conclusions,
    negation_conclusions,
    negation_paragraphs,
)
from surelabel.bench.negation.plan import QUERY, ROW_TITLES
from surelabel.bench.negation.ranking_metrics import NEGATION_METRICS
from surelabel.metrics import ConfidenceInterval


def with_differences(encoder, difference):
    """Return results in which all differences from the calibrated query are the same."""
    rows = tuple(
        row
        if row.key == QUERY
        else replace(row, differences=dict.fromkeys(NEGATION_METRICS, difference))
        for row in encoder.rows
    )
    return replace(encoder, rows=rows)


@pytest.mark.parametrize(
    ("value", "low", "high", "relation"),
    [
        (-0.02, -0.03, -0.01, "higher than in"),
        (0.02, 0.01, 0.03, "lower than in"),
        (0.02, -0.01, 0.03, "not significantly different from that of"),
    ],
)
def test_conclusions_follow_from_the_intervals(results, value, low, high, relation):
    encoder = with_differences(results.encoders[0], ConfidenceInterval(value, low, high))
    *comparisons, _ = negation_conclusions(encoder)
    assert len(comparisons) == len(NEGATION_METRICS)
    for sentence in comparisons:
        assert f"{relation} rows 2, 3, 4, 5, 6, 7 and 8." in sentence


def test_probabilities_are_called_wrong_only_if_the_interval_excludes_0(results):
    encoder = results.encoders[0]
    pairs = tuple(
        replace(pair, signed_error=ConfidenceInterval(value, value - 0.01, value + 0.01))
        for pair, value in zip(encoder.pairs, (-0.02, 0.005), strict=True)
    )
    *_, first, second = independence_conclusions(replace(encoder, pairs=pairs))
    assert "P(a) P(b) is too low" in first
    assert "P(a) P(b) is not significantly biased" in second


def test_lengths_with_the_same_error_are_in_one_sentence(results):
    first = results.encoders[0].conjunctions[0]
    conjunctions = tuple(
        replace(
            first,
            length=length,
            with_unwanted=False,
            relevance_rate=0.1,
            difference=ConfidenceInterval(value, value - 0.01, value + 0.01),
            ratio=ConfidenceInterval(ratio, ratio, ratio),
        )
        for length, value, ratio in [(1, 0.005, 1.01), (2, -0.02, 0.31), (3, -0.03, 0.09)]
    )
    encoder = replace(results.encoders[0], conjunctions=conjunctions, pairs=())
    assert list(independence_conclusions(encoder)) == [
        "**tiny-vit**, only wanted labels: the mean probability is not significantly biased with 1 "
        "literal (ratio 1.01). The mean probability is too low with 2 and 3 literals (ratios 0.31 "
        "and 0.09)."
    ]


def test_the_page_states_queries_images_seed_and_selected_settings(results):
    page = "\n\n".join(negation_paragraphs(results))
    assert "100 validation and 150 test images with 80 labels" in page
    assert f"There are {results.n_queries[1]} queries on the test images" in page
    assert "10 resamples and seed 0" in " ".join(page.split())
    for selected in results.encoders[0].selected.values():
        assert selected.setting.description in page
    for number, title in enumerate(ROW_TITLES.values(), start=1):
        assert page.count(f"| {number}. {title} |") >= 1
    assert "nan" not in page
    assert '"without", "no", "not" and "but"' in page


def test_lines_of_prose_have_at_most_120_characters(results):
    page = "\n\n".join(negation_paragraphs(results))
    assert all(len(line) <= 120 for line in page.splitlines() if not line.startswith("|"))
    assert not any(line.strip().startswith("%") for line in page.splitlines())


def test_words_of_the_training_texts_are_not_mentioned(results):
    trained = replace(results.encoders[0], untrained_words=())
    page = "\n\n".join(negation_paragraphs(replace(results, encoders=(trained,))))
    assert "no trained tokens for exclusion" not in page
