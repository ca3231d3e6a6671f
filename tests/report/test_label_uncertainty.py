import json
from dataclasses import replace

import numpy as np
import pytest

from surelabel.evaluation import evaluate_uncertainties
from surelabel.report import report
from surelabel.report.label_uncertainty import (
    LABEL_UNCERTAINTY_PLOT_NAMES,
    label_uncertainty_as_json,
    label_uncertainty_plots,
    render_label_uncertainty_tables,
)
from surelabel.report.plots import PLOT_FILE_NAMES


@pytest.fixture
def doubtful(judged):
    """Return a function that makes an evaluation with all kinds of uncertainty."""

    def made(count=150, **settings):
        found = judged(count, **settings)
        p = found.predictions.probabilities
        kinds = {
            "bernoulli_variance": 4 * p * (1 - p),
            "residual_error": p * (1 - p),
            "match_variance": 3 - p,
        }
        parts = (found.predictions, found.targets, found.known)
        return replace(found, uncertainty=evaluate_uncertainties(*parts, kinds))

    return made


def test_the_words_of_the_plots_say_the_figures_of_each_kind(doubtful):
    found = doubtful().uncertainty
    bins, curves = label_uncertainty_plots(found)
    assert (bins.name, curves.name) == LABEL_UNCERTAINTY_PLOT_NAMES
    assert set(LABEL_UNCERTAINTY_PLOT_NAMES) <= set(PLOT_FILE_NAMES)
    for kind, title in zip(
        found.kinds, ("Bernoulli variance", "Residual error", "Match variance"), strict=True
    ):
        first, last = 100 * (1 - kind.bins.accuracy[[0, -1]])
        assert f"the error rate is {first:.1f} % in the most certain bin and {last:.1f}" in bins.alt
        at_80 = 100 * kind.accepted_labels.intervals["risk_at_80"].value
        assert f"{title}: leaving out the most uncertain 20 %" in curves.alt
        assert f" to {at_80:.2f} % (accepted labels)" in curves.alt


def test_few_accepted_labels_have_no_bins_and_none_has_a_curve_of_images(doubtful):
    few = doubtful(count=20).uncertainty
    (only,) = label_uncertainty_plots(few)
    assert only.name == "uncertainty_risk_coverage"
    none = replace(few, kinds=tuple(replace(k, accepted_labels=None) for k in few.kinds))
    (only,) = label_uncertainty_plots(none)
    assert "(images)" in only.alt
    assert "(accepted labels)" not in only.alt
    assert "–" in render_label_uncertainty_tables(none)


def test_the_report_has_the_section_the_plots_and_the_numbers(doubtful, tmp_path):
    found = doubtful()
    page = report(found, tmp_path / "report")
    assert {f"{name}.png" for name in LABEL_UNCERTAINTY_PLOT_NAMES} <= {
        path.name for path in (tmp_path / "report" / "plots").iterdir()
    }
    html = page.read_text(encoding="utf-8")
    assert '<section id="uncertainty">' in html
    assert '<a href="#uncertainty">Uncertainty</a>' in html
    for text in (
        "4p(1 - p)",
        "learned estimate of the expected squared error",
        "of accepted labels only",
    ):
        assert text in html
    section = html[html.index('id="uncertainty"') : html.index('id="labels"')]
    for example in found.uncertainty.doubtful_examples:
        assert example.path in section
    held = json.loads((tmp_path / "report" / "evaluation.json").read_text(encoding="utf-8"))
    first = held["uncertainty"]["bernoulli_variance"]
    kind = found.uncertainty.kinds[0]
    assert first["images"]["intervals"]["area"]["value"] == kind.images.intervals["area"].value
    assert first["accepted_labels"]["decisions"] == len(kind.accepted_labels.curve.risk)
    np.testing.assert_array_equal(first["bins"]["accuracy"], kind.bins.accuracy)
    assert len(held["doubtful"]) == 6
    assert list(label_uncertainty_as_json(found.uncertainty)) == list(held["uncertainty"])


def test_an_evaluation_without_uncertainty_has_no_section(judged, tmp_path):
    page = report(judged(calibrated=False), tmp_path / "report")
    assert 'id="uncertainty"' not in page.read_text(encoding="utf-8")
    held = json.loads((tmp_path / "report" / "evaluation.json").read_text(encoding="utf-8"))
    assert (held["uncertainty"], held["doubtful"]) == (None, [])
