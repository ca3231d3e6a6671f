import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from surelabel.errors import InputError, MissingPart, NotFitted
from surelabel.records import Predictions, SkippedImage

NASTY = '<script>alert("1")</script>'


class VisibleText(HTMLParser):
    """Tags and texts of an HTML page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def predictions():
    """Return calibrated predictions of 9 images and 7 labels."""
    logits = np.random.default_rng(0).normal(size=(9, 7)).astype(np.float32)
    paths = [f"/images/{row}.jpg" for row in range(9)]
    skipped = [SkippedImage("/images/x.jpg", "truncated")]
    return Predictions(
        paths, list("abcdefg"), logits / 2, logits, "beta, on 5", "f00", None, skipped
    )


@pytest.fixture
def uncalibrated():
    """Return scores without logits."""
    scores = np.array([[0.25, 1.5, -1.0], [3.0, 2.0, 1.0]], np.float32)
    return Predictions(["a.jpg", "b.jpg"], ["dog", "cat", "tree"], scores)


def test_probabilities_need_something_that_calibrated_them():
    scores = np.zeros((1, 1), np.float32)
    with pytest.raises(NotFitted, match="are uncalibrated"):
        _ = Predictions(["a"], ["x"], scores, scores).probabilities
    assert Predictions(["a"], ["x"], scores, scores, "platt").probabilities == [[0.5]]


def test_one_path_per_row_and_one_name_per_column_are_needed():
    with pytest.raises(InputError, match=r"\(1, 2\); got shape \(1, 1\)"):
        Predictions(["a"], ["x", "y"], np.zeros((1, 1), np.float32))


def test_values_and_kind_of_the_uncertainty_are_given_together_and_in_shape():
    scores = np.zeros((1, 2), np.float32)
    with pytest.raises(InputError, match="together; got uncertainty_kind None with uncertainty"):
        Predictions(["a"], ["x", "y"], scores, uncertainty=scores)
    with pytest.raises(InputError, match="'residual_error' without uncertainty"):
        Predictions(["a"], ["x", "y"], scores, uncertainty_kind="residual_error")
    with pytest.raises(InputError, match=r"bernoulli_variance, .*; got 'entropy'"):
        Predictions(["a"], ["x", "y"], scores, uncertainty=scores, uncertainty_kind="entropy")
    with pytest.raises(InputError, match=r"uncertainty must have axes \(n, c\)"):
        Predictions(
            ["a"], ["x", "y"], scores, uncertainty=scores[:, :1], uncertainty_kind="residual_error"
        )


def test_predictions_with_uncertainty_have_the_same_table_and_name_the_kind(predictions):
    uncertain = replace(
        predictions, uncertainty=predictions.scores**2, uncertainty_kind="residual_error"
    )
    assert "uncertainty='residual_error'" in repr(uncertain)
    assert "uncertainty" not in repr(predictions)
    assert "residual_error" in uncertain._repr_html_()
    assert uncertain.to_pandas().equals(predictions.to_pandas())


def test_the_repr_counts_images_labels_and_skipped_images_and_names_the_calibration(predictions):
    assert repr(predictions) == (
        "Predictions(images=9, labels=7, calibration='beta, on 5', skipped=1, model='f00')"
    )


def test_the_repr_of_uncalibrated_predictions_has_no_calibration(uncalibrated):
    assert "calibration=None" in repr(uncalibrated)


def test_the_repr_is_short_for_any_number_of_images_and_for_long_texts():
    scores = np.zeros((100_000, 50), np.float32)
    it = Predictions(["x"] * 100_000, ["y"] * 50, scores, scores, "beta\n\x1b[31m" * 1000, "f00")
    assert len(repr(it)) < 300
    assert repr(it).replace("\n", "").isprintable()
    assert len(it._repr_html_()) < 5_000


def test_html_shows_the_likeliest_labels_of_the_first_images(predictions):
    page = VisibleText(predictions._repr_html_())
    assert [text for text in page.texts if text.startswith("/images")] == predictions.paths[:5]
    assert "… 4 more" in page.texts
    for row in range(5):
        start = page.texts.index(predictions.paths[row])
        best = sorted(zip(predictions.probabilities[row], predictions.names, strict=True))[:-6:-1]
        assert page.texts[start + 1 : start + 6] == [f"{name} {p:.3g}" for p, name in best]


def test_html_shows_scores_if_there_are_no_probabilities(uncalibrated):
    page = VisibleText(uncalibrated._repr_html_())
    assert page.texts[-8:] == [
        *("a.jpg", "cat 1.5", "dog 0.25", "tree -1"),
        *("b.jpg", "dog 3", "cat 2", "tree 1"),
    ]
    assert "scores" in page.texts


def test_scores_order_equal_probabilities_in_html():
    logits, scores = np.full((1, 2), 40, np.float32), np.array([[1.0, 2.0]], np.float32)
    page = VisibleText(Predictions(["a"], ["dog", "cat"], scores, logits, "isotonic")._repr_html_())
    assert page.texts[-2:] == ["cat 1", "dog 1"]


def test_html_escapes_paths_labels_and_descriptions():
    scores = np.zeros((1, 1), np.float32)
    it = Predictions([NASTY], [NASTY], scores, scores, NASTY, NASTY)
    page = VisibleText(it._repr_html_())
    assert page.tags == {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.texts.count(NASTY) == 3
    assert f"{NASTY} 0.5" in page.texts


@pytest.mark.parametrize("shape", [(0, 0), (1, 0), (0, 3)])
def test_predictions_without_images_or_labels_have_a_repr_and_a_table(shape):
    n, c = shape
    it = Predictions(["a"] * n, ["x"] * c, np.zeros(shape, np.float32))
    assert f"images={n}, labels={c}" in repr(it)
    assert "Predictions" in it._repr_html_()
    assert it.to_pandas().shape == shape


def test_the_pandas_table_contains_probabilities_by_path_and_label(predictions):
    table = predictions.to_pandas()
    assert (table.index.name, table.index.tolist()) == ("path", predictions.paths)
    assert (table.columns.name, table.columns.tolist()) == ("label", predictions.names)
    np.testing.assert_array_equal(table.to_numpy(), predictions.probabilities)
    assert table.attrs == {"values": "probabilities", "calibration": "beta, on 5", "model": "f00"}


def test_the_pandas_table_contains_scores_if_nothing_is_calibrated(uncalibrated):
    table = uncalibrated.to_pandas()
    np.testing.assert_array_equal(table.to_numpy(), uncalibrated.scores)
    assert table.loc["b.jpg", "cat"] == 2
    assert table.attrs["values"] == "scores"


def test_a_change_of_the_pandas_table_leaves_the_predictions_unchanged(uncalibrated):
    table = uncalibrated.to_pandas()
    table.loc["a.jpg", "dog"] = 9
    assert uncalibrated.scores[0, 0] == 0.25


def test_paths_that_are_not_valid_unicode_and_repeated_paths_are_rows_of_the_pandas_table():
    it = Predictions(["a\udc80", "a\udc80"], ["x"], np.zeros((2, 1), np.float32))
    assert it.to_pandas().index.tolist() == ["a\udc80", "a\udc80"]


def test_a_missing_pandas_is_named_with_its_pip_line(uncalibrated, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPart, match=r"pandas, .*pip install 'surelabel\[pandas\]'"):
        uncalibrated.to_pandas()
