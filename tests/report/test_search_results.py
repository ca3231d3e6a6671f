import re

import numpy as np

from surelabel.report.search_results import (
    QueryRanking,
    RetrievalResults,
    plot_search_results_by_query_length,
    render_search_results_examples,
    search_results_table,
    summarize_search_results,
)
from surelabel.retrieval.conjunction_map import mean_average_precision_of_conjunctions
from surelabel.retrieval.example_queries import select_example_queries

FOUND = RetrievalResults((1, 2, 3), (0.8, 0.65, float("nan")), (80, 9000, 0), (0, 480, 2000))


def test_the_plot_says_every_length_in_words():
    alt = plot_search_results_by_query_length(FOUND).alt
    assert "1 label: mAP 80.0 % over 80 queries (0 more without" in alt
    assert "3 labels: mAP not defined over 0 queries (2,000 more without" in alt


def test_the_table_counts_judged_and_empty_queries():
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", search_results_table(FOUND))
    cells = [[length, *re.findall("<td>(.*?)</td>", rest)] for length, rest in rows]
    assert cells == [
        ["1", "80.0 %", "–", "80", "0"],
        ["2", "65.0 %", "–", "9,000", "480"],
        ["3", "not defined", "–", "0", "2,000"],
    ]


def test_whether_a_hit_is_right_is_a_sign_and_words_not_only_a_colour(images):
    text = render_search_results_examples(
        [QueryRanking("a & !b", images(3), [True, False, True], 17, 0.5)]
    )
    assert "<code>a &amp; !b</code>" in text
    assert text.count("✓ </i>matches the query") == 2
    assert text.count("✗ </i>does not match the query") == 1
    assert (
        "2 of these 3 images match the query. Of all images, 17 match the query. "
        "The average precision is 50.0 %" in text
    )


def test_of_many_images_the_first_eight_are_shown():
    text = render_search_results_examples(
        [QueryRanking("a", ["gone.png"] * 20, [True] * 20, 20, 1.0)]
    )
    assert text.count("cannot be read") == 8
    assert "8 of these 8 images match" in text


def test_the_summary_contains_the_retrieval_metrics():
    logits = np.array([[2.0, -1.0], [-1.0, 1.0], [0.0, -3.0]])
    precision = mean_average_precision_of_conjunctions(logits, np.eye(3, 2))
    rankings = select_example_queries(logits, np.eye(3, 2), ["cat", "dog"], shapes=[(1, 0)], k=2)
    found = summarize_search_results(precision, rankings, ["a.png", "b.png", "c.png"])
    assert found.lengths == [1, 2]
    assert found.mean_average_precision == [1.0, 1.0]
    assert (found.queries, found.unmatched_queries, found.standard_error) == (
        [2, 2],
        [0, 1],
        [0.0, 0.0],
    )
    (answer,) = found.examples
    assert answer.query in ("cat", "dog")
    assert answer.paths[0] == ("a.png" if answer.query == "cat" else "b.png")
    assert answer.is_relevant == [True, False]
    assert (answer.n_relevant, answer.average_precision) == (1, 1.0)
