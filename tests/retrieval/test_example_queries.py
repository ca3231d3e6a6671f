"""Example queries with what they find."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from surelabel.errors import InputError
from surelabel.retrieval.example_queries import select_example_queries
from surelabel.retrieval.query import parse

NAMES = ["cat", "hot dog", "salt and pepper", "cup", "knife"]
random = np.random.default_rng(0)
LOGITS = random.normal(-1, 2, (200, 5))
TARGETS = random.random((200, 5)) < 1 / (1 + np.exp(-LOGITS))


def test_each_example_is_what_a_search_for_its_text_should_find():
    found = select_example_queries(LOGITS, TARGETS, NAMES)
    assert len(found) == 6
    for ranking in found:
        query = {term.name: sign for term, sign in parse(ranking.query).signed_terms}
        p, holds = np.ones(200), np.ones(200, bool)
        for j, name in enumerate(NAMES):
            probability = 1 / (1 + np.exp(-LOGITS[:, j]))
            if query.get(name) == 1:
                p, holds = p * probability, holds & TARGETS[:, j]
            if query.get(name) == -1:
                p, holds = p * (1 - probability), holds & ~TARGETS[:, j]
        best = np.argsort(-p)[:8]
        assert ranking.rows.tolist() == best.tolist()
        np.testing.assert_allclose(ranking.probabilities, p[best], rtol=1e-5)
        assert ranking.is_relevant.tolist() == holds[best].tolist()
        assert ranking.n_relevant == holds.sum() > 0
        assert ranking.average_precision == pytest.approx(average_precision_score(holds, p))


def test_shapes_and_seed_choose_the_queries():
    found = select_example_queries(LOGITS, TARGETS, NAMES, shapes=[(1, 1), (2, 2)], k=3)
    signs = [[sign for _, sign in parse(ranking.query).signed_terms] for ranking in found]
    assert signs == [[1, -1], [1, 1, -1, -1]]
    assert [len(r.rows) for r in found] == [3, 3]
    again = select_example_queries(LOGITS, TARGETS, NAMES, shapes=[(1, 1), (2, 2)], k=3)
    assert [r.query for r in again] == [r.query for r in found]


def test_a_shape_that_nothing_fulfils_has_no_example():
    assert select_example_queries(LOGITS, np.zeros((200, 5)), NAMES) == []
    assert select_example_queries([[1.0]], [[1]], ["cat"], shapes=[(1, 1), (2, 0)]) == []
    assert select_example_queries([[1.0, 1.0]], [[1, 1]], ["cat", "dog"], shapes=[(1, 1)]) == []


def test_images_of_which_a_label_is_unknown_are_not_shown():
    found = select_example_queries(
        [[3.0], [2.0], [1.0]], [[1], [np.nan], [0]], ["cat"], shapes=[(1, 0)]
    )
    assert found[0].rows.tolist() == [0, 2]


def test_names_must_be_those_of_the_columns():
    with pytest.raises(InputError, match=r"one name for each of 5 labels; got 2"):
        select_example_queries(LOGITS, TARGETS, NAMES[:2])
