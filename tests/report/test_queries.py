import re

import numpy as np

from surelabel.report.queries import (
    Answer,
    Retrieval,
    answered,
    query_plot,
    query_table,
    retrieval_of,
)
from surelabel.retrieval.examples import examples
from surelabel.retrieval.protocol import mean_average_precision_of_queries

FOUND = Retrieval((1, 2, 3), (0.8, 0.65, float("nan")), (80, 9000, 0), (0, 480, 2000))


def test_the_plot_says_every_length_in_words():
    alt = query_plot(FOUND).alt
    assert "1 label: mAP 80.0 % over 80 queries, 0 empty" in alt
    assert "3 labels: mAP not defined over 0 queries, 2,000 empty" in alt


def test_the_table_counts_judged_and_empty_queries():
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", query_table(FOUND))
    cells = [[length, *re.findall("<td>(.*?)</td>", rest)] for length, rest in rows]
    assert cells == [
        ["1", "80.0 %", "–", "80", "0"],
        ["2", "65.0 %", "–", "9,000", "480"],
        ["3", "not defined", "–", "0", "2,000"],
    ]


def test_whether_a_hit_is_right_is_a_sign_and_words_not_only_a_colour(pictures):
    text = answered([Answer("a & !b", pictures(3), [True, False, True], 17, 0.5)])
    assert "<code>a &amp; !b</code>" in text
    assert text.count("✓ </i>all of it holds") == 2
    assert text.count("✗ </i>not all of it holds") == 1
    assert "Holds of 2 of these 3, and of 17 pictures in all; average precision 50.0 %" in text


def test_of_many_pictures_the_first_eight_are_shown():
    text = answered([Answer("a", ["gone.png"] * 20, [True] * 20, 20, 1.0)])
    assert text.count("cannot be read") == 8
    assert "Holds of 8 of these 8" in text


def test_what_the_protocol_measured_is_shown_as_it_was_measured():
    logits = np.array([[2.0, -1.0], [-1.0, 1.0], [0.0, -3.0]])
    precision = mean_average_precision_of_queries(logits, np.eye(3, 2))
    rankings = examples(logits, np.eye(3, 2), ["cat", "dog"], shapes=[(1, 0)], k=2)
    found = retrieval_of(precision, rankings, ["a.png", "b.png", "c.png"])
    assert found.lengths == [1, 2]
    assert found.precision == [1.0, 1.0]
    assert (found.queries, found.empty, found.error) == ([2, 2], [0, 1], [0.0, 0.0])
    (answer,) = found.answers
    assert answer.query in ("cat", "dog")
    assert answer.paths[0] == ("a.png" if answer.query == "cat" else "b.png")
    assert answer.right == [True, False]
    assert (answer.relevant, answer.precision) == (1, 1.0)
