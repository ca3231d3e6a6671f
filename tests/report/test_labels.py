import re

import numpy as np

from surelabel.report.labels import label_table, mean_probability, positives, prevalence


def test_counts_and_means_are_those_of_what_is_known(judged):
    found = judged(labels=5, unknown=0.4)
    p = found.predictions.probabilities
    for c in range(5):
        rows = [r for r in range(60) if found.known[r, c]]
        there = [found.targets[r, c] for r in rows]
        assert positives(found)[c] == sum(there)
        assert np.isclose(prevalence(found)[c], sum(there) / len(rows))
        assert np.isclose(mean_probability(found)[c], sum(p[r, c] for r in rows) / len(rows))


def test_a_label_of_which_nothing_is_known_is_undefined_not_zero(judged):
    found = judged(labels=3)
    found.known[:, 1] = False
    assert np.isnan(prevalence(found)).tolist() == [False, True, False]
    assert "nan" not in label_table(found)
    assert "not defined" in label_table(found)


def test_without_probabilities_their_mean_is_undefined(judged):
    assert np.isnan(mean_probability(judged(calibrated=False))).all()


def test_the_worst_label_stands_first_and_the_undefined_last(judged):
    found = judged(names=["good", "undefined", "bad"])
    found.per_class["average_precision"][:] = [0.9, np.nan, 0.1]
    order = re.findall(r'scope="row" class="name">(\w+)<', label_table(found))
    assert order == ["bad", "good", "undefined"]
