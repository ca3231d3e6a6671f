from dataclasses import replace
from html import escape
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from surelabel.evaluation import evaluate_pair_scores
from surelabel.records.pairs import Pairs
from surelabel.records.relevance import Relevance
from surelabel.report.caption_retrieval import (
    CAPTION_RETRIEVAL_PLOT_NAMES,
    caption_retrieval_plots,
    render_caption_retrieval,
    render_doubtful_queries,
)

N = 20
NASTY = "<b>two</b> ducks & a pond"


@pytest.fixture(scope="module")
def scored():
    """Return pairs, their evaluation with uncertainty, and one without."""
    random = np.random.default_rng(1)
    captions = [f"caption {i}" for i in range(N)]
    captions[3] = NASTY
    grades = np.eye(N) + (random.random((N, N)) < 0.1)
    relevance = Relevance(*np.nonzero(grades), np.ones(np.count_nonzero(grades)))
    pairs = Pairs([f"{i}.png" for i in range(N)], captions, np.arange(N), relevance=relevance)
    scores = np.eye(N) + random.normal(size=(N, N)) / 2
    variances = np.exp(-scores + random.normal(size=scores.shape) / 3)
    variances[3], variances[:, 3] = 50.0, 50.0  # image 3 and caption 3 are the most doubtful
    return (
        pairs,
        evaluate_pair_scores(scores, pairs, variances),
        evaluate_pair_scores(scores, pairs),
    )


def test_the_plots_are_images_and_say_their_numbers_in_words(scored):
    _, evaluation, _ = scored
    plots = caption_retrieval_plots(evaluation)
    assert tuple(plot.name for plot in plots) == CAPTION_RETRIEVAL_PLOT_NAMES
    for plot in plots:
        assert Image.open(BytesIO(plot.png)).size[0] > 600
    bins = evaluation.directions["caption_to_image"].error_predictions["uncertainty"].bins
    expected = f"R@1 is {100 * bins.accuracy[0]:.1f} % in the most certain bin"
    assert expected in plots[0].alt
    assert "in ten bins of increasing uncertainty of the pair" in plots[0].alt
    risk = evaluation.directions["image_to_caption"].error_predictions["uncertainty"].risk_at_80
    assert f"{100 * risk:.1f} % without the most uncertain 20 %" in plots[1].alt


def test_without_an_uncertainty_the_score_takes_its_place(scored):
    *_, evaluation = scored
    plots = caption_retrieval_plots(evaluation)
    assert "in ten bins of increasing minus score" in plots[0].alt


def test_fewer_queries_than_bins_have_no_bars():
    pairs = Pairs(["a.png", "b.png"], ["a", "b"], [0, 1])
    (plot,) = caption_retrieval_plots(evaluate_pair_scores(np.eye(2), pairs))
    assert plot.name == "match_risk_coverage"


def test_the_section_contains_all_metrics_and_the_nulls(scored):
    _, evaluation, _ = scored
    text = render_caption_retrieval(evaluation)
    for title in (
        *("R@1", "median rank", "R-Precision, own items", "mAP@R, own items"),
        *("mAP@R, all relevant items", "nDCG", "AUROC of errors"),
    ):
        assert title in text
    for null in ("null: minus score", "null: minus margin"):
        assert text.count(null) == 2


def test_the_most_doubtful_queries_come_first_and_captions_are_escaped(scored, images):
    pairs, evaluation, _ = scored
    pairs = replace(pairs, paths=images(N))
    text = render_doubtful_queries(evaluation, pairs, n_queries=1)
    before, _, after = text.partition("Most uncertain captions")
    assert f"<code>{Path(pairs.paths[3]).parent}</code>" in before
    assert f"<bdi>{Path(pairs.paths[3]).name}</bdi>" in before
    assert pairs.paths[3] not in text
    caption = pairs.captions[list(pairs.image_rows).index(3)]
    assert f'alt="{escape(caption)}"' in before
    assert before.count("<li ") == 5
    assert f"<p>Own caption: “{escape(caption)}”</p>" in before
    assert "<h4>Caption: “" in after
    assert "uncertainty of the pair 50" in before
    assert "&lt;b&gt;two&lt;/b&gt; ducks &amp; a pond" in after
    assert "<b>two" not in text
    assert after.count("the query") == 5
    direction = evaluation.directions["caption_to_image"]
    position = int(np.flatnonzero(direction.queries == 3)[0])
    n_relevant = int(direction.is_top_item_relevant[position][:5].sum())
    assert after.count("✓ </i>matches the query") == n_relevant


def test_the_grade_of_a_relevant_item_is_stated_if_there_are_grades(scored):
    pairs, evaluation, _ = scored
    assert "An item is relevant if it is an own item, or if its grade is 1 or more." in (
        render_caption_retrieval(evaluation)
    )
    own = evaluate_pair_scores(np.eye(N), replace(pairs, relevance=None))
    assert "its grade" not in render_caption_retrieval(own)
