import pickle
from copy import deepcopy
from dataclasses import asdict, dataclass

import numpy as np
import pytest

from surelabel.retrieval import Hit, HitList, Query

NASTY = "<b>&"


def hit(number, **terms):
    return Hit(f"/images/{number}.jpg", float(np.prod(list(terms.values()))), terms)


def test_the_repr_of_a_hit_rounds_its_probabilities():
    assert repr(Hit("a.jpg", 1 / 3, {"fork": 2 / 3, "knife": 0.5})) == (
        "Hit(path='a.jpg', probability=0.3333, terms={'fork': 0.6667, 'knife': 0.5})"
    )


def test_a_list_of_hits_is_a_list():
    hits = HitList([hit(0, fork=0.9), hit(1, fork=0.5)], Query.of_labels(("fork",)))
    assert hits == [hit(0, fork=0.9), hit(1, fork=0.5)]
    assert hits[:1] == [hit(0, fork=0.9)]
    assert pickle.loads(pickle.dumps(hits)).query == Query.of_labels(("fork",))


def test_the_row_of_a_hit_has_the_probability_of_each_term_whose_product_is_its_probability():
    hits = HitList(
        [Hit("a.jpg", 0.72, {"fork": 0.9, "knife": 0.2})], Query.of_labels(("fork",), ("knife",))
    )
    header, row = (line.split() for line in repr(hits).splitlines()[1:])
    assert header == ["image", "probability", "fork", "!knife"]
    assert row[0] == "a.jpg"
    probability, fork, no_knife = map(float, row[1:])
    assert probability == pytest.approx(fork * no_knife)


def test_a_label_in_another_unicode_form_than_the_query_has_its_column():
    hits = HitList([Hit("a.jpg", 0.9, {"su\u0308ß": 0.9})], Query.of_labels(("s\u00fcß",)))
    assert repr(hits).splitlines()[-1].split() == ["a.jpg", "0.9", "0.9"]


def test_hits_of_a_shorter_query_can_be_added():
    hits = HitList([hit(0, fork=0.5, apple=0.5)], Query.of_labels(("fork", "apple")))
    hits.append(hit(1, knife=0.25))
    assert repr(hits).splitlines()[-1].split() == ["/images/1.jpg", "0.25", "0.25"]
    assert hits._repr_html_().count("<tr>") == 5  # two properties, a header row, two images


def test_long_lists_and_long_queries_are_shortened():
    terms = {f"label {i}": 0.9 for i in range(500)}
    hits = HitList([hit(i, **terms) for i in range(1000)], Query.of_labels(tuple(terms)))
    assert repr(hits).splitlines()[-1] == "  … 980 more"
    assert max(map(len, repr(hits).splitlines())) < 200
    assert "… 980 more" in hits._repr_html_()
    assert "label 8" not in hits._repr_html_()


def test_an_empty_list_of_hits_has_no_table():
    hits = HitList([], Query.of_labels(("fork",)))
    assert repr(hits) == "HitList(query='fork', images=0)"
    assert "probability" not in hits._repr_html_()


def test_html_escapes_paths_and_labels():
    page = HitList([Hit(NASTY, 0.5, {NASTY: 0.5})], Query.of_labels((NASTY,)))._repr_html_()
    assert NASTY not in page
    assert page.count("&lt;b&gt;&amp;") == 3  # query, column, path
    assert NASTY not in Hit(NASTY, 0.5, {NASTY: 0.5})._repr_html_()


def test_hits_in_a_record_become_dictionaries_like_any_list():
    @dataclass
    class Search:
        hits: list[Hit]

    hits = HitList([hit(0, fork=0.9)], Query.of_labels(("fork",)))
    assert asdict(Search(hits)) == {"hits": [asdict(hit(0, fork=0.9))]}
    assert deepcopy(hits).query == Query.of_labels(("fork",))


def test_hits_without_a_query_are_shown_with_their_probability():
    assert "a.jpg" in repr(HitList([Hit("a.jpg", 0.5, {"fork": 0.5})]))
