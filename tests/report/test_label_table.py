import re

import numpy as np

from surelabel.report.label_table import compute_label_table_statistics, render_label_table


def statistics(found):
    predictions = found.predictions
    p = predictions.probabilities if predictions.calibration else None
    return compute_label_table_statistics(
        predictions.names, found.targets, found.known, p, found.per_class
    )


def test_counts_and_means_are_those_of_what_is_known(judged):
    found = judged(labels=5, unknown=0.4)
    p = found.predictions.probabilities
    for c in range(5):
        rows = [r for r in range(60) if found.known[r, c]]
        there = [found.targets[r, c] for r in rows]
        assert statistics(found).n_positives[c] == sum(there)
        assert np.isclose(statistics(found).prevalence[c], sum(there) / len(rows))
        assert np.isclose(
            statistics(found).mean_probability[c], sum(p[r, c] for r in rows) / len(rows)
        )


def test_a_label_of_which_nothing_is_known_is_undefined_not_zero(judged):
    found = judged(labels=3)
    found.known[:, 1] = False
    assert np.isnan(statistics(found).prevalence).tolist() == [False, True, False]
    assert "nan" not in render_label_table(statistics(found))
    assert "not defined" in render_label_table(statistics(found))


def test_without_probabilities_their_mean_is_undefined(judged):
    assert np.isnan(statistics(judged(calibrated=False)).mean_probability).all()


def test_the_worst_label_stands_first_and_the_undefined_last(judged):
    found = judged(names=["good", "undefined", "bad"])
    found.per_class["average_precision"][:] = [0.9, np.nan, 0.1]
    order = re.findall(r'scope="row" class="name">(\w+)<', render_label_table(statistics(found)))
    assert order == ["bad", "good", "undefined"]
