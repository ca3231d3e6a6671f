import numpy as np

from surelabel.evaluation import Budget
from surelabel.report.budget import answer, budget_plot


def budget(errors, floor=0.02):
    errors = np.array(errors, float)
    return Budget((25, 50, 100), errors, np.full_like(errors, 0.2), floor, 200)


def test_the_answer_is_a_number_of_pictures_and_what_more_would_bring():
    told = answer(budget([[0.05], [0.021], [0.02]]))
    assert told.startswith("About 50 labelled pictures are enough: with 100 the ECE is 2.00 points")
    assert "Chance alone" not in told


def test_an_error_that_labels_cannot_cure_is_called_so():
    told = answer(budget([[0.05], [0.05], [0.05]], floor=0.01))
    assert "About 25" in told
    assert "Chance alone would show 1.00: what is left is not for lack of labels" in told


def test_when_the_last_doubling_still_helps_it_says_so():
    told = answer(budget([[0.05], [0.04], [0.03]]))
    assert "100 labelled pictures may be too few" in told
    assert "3.00 points (4.00 with 50)" in told


def test_too_few_positives_are_said():
    nothing = budget([[np.nan]] * 3, floor=np.nan)
    assert "too few labels that are there" in answer(nothing)
    assert "25 pictures: ECE not defined, log" in budget_plot(nothing).alt


def test_a_single_size_has_an_answer():
    told = answer(Budget((25,), np.array([[0.03]]), np.array([[0.2]]), 0.01, 100))
    assert told.startswith("25 labelled pictures may be too few: with them the ECE is 3.00 points,")


def test_undefined_draws_are_counted():
    plot = budget_plot(budget([[np.nan, 0.05], [0.04, 0.04], [0.03, 0.03]]))
    assert "1 draws held no label that is there and are left out" in plot.caption
    assert "25 pictures: ECE 5.00 points" in plot.alt
