"""Queries of every form in an index on disk, against loops over all images."""

import os
import shutil
import time
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatch
from itertools import pairwise, product
from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from surelabel.errors import DataError, InputError
from surelabel.records import Predictions
from surelabel.retrieval import Index, ShardedIndex, parse
from surelabel.retrieval.formula import Conjunction, FilterLiteral, LabelLiteral
from surelabel.retrieval.query_terms import FileFilter, LabelTerm, LabelThreshold, PathFilter

NAMES, N = ["apple", "fork", "knife"], 36
FOLDERS = ["holiday/beach", "holiday", "Work (old)"]
DIRECTIONS = np.random.default_rng(9).standard_normal((6, 2))
TERMS = [
    *["apple", "!apple", "fork", "!fork", "knife", '~"first"', '!~"second"', "apple>0.4"],
    *["fork<0.3", "path:holiday/*", "!path:*.png", 'path:"work (old)/0?.jpg"', "width>=30"],
    *["height<25", "!width=20", "date>=2021", "date<2022-06-15", "!date=2020", "date>2099"],
]
QUERIES = [
    "(apple & path:holiday/*) | fork",
    "apple & !fork & width>20",
    "(apple | fork | knife) & date<2022",
    'apple>0.4 | ~"first" & knife',
    "apple & !apple",
    "(apple | !apple) & height<30",
    "(apple & fork) | (apple & knife) | (fork & knife)",
    "path:holiday/*",
    'like:"{example}"#7',
    'like:"{example}"#9 & (apple | knife)',
    'like:"{example}"#12 & path:holiday/* & !width>40',
    'like:"{example}"#5 & knife<0.99',
]


class LinearScoring:
    """Log-odds of sentences that are linear in the image vectors."""

    def __init__(self, sentences):
        self.columns = [["first", "second"].index(sentence) for sentence in sentences]

    def logits(self, vectors):
        return (vectors.astype(np.float32) @ DIRECTIONS.astype(np.float32))[:, self.columns]

    def variances(self, vectors):
        return np.abs(self.logits(vectors))


class LinearEncoder:
    """Encoder of these sentences; an example is encoded as the first axis."""

    def score_sentences(self, sentences):
        return LinearScoring(sentences)

    def encode_example(self, path):
        return np.eye(6, dtype=np.float32)[0]


def take(made, rows):
    """Predictions of some images."""
    rows = list(rows)
    return replace(
        made,
        paths=[made.paths[row] for row in rows],
        scores=made.scores[rows],
        logits=made.logits[rows],
        features=made.features[rows].copy(),
    )


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """Index of several shards with removed rows, and the predictions of its images."""
    root = tmp_path_factory.mktemp("collection")
    random, paths = np.random.default_rng(0), []
    for number in range(N):
        path = root / FOLDERS[number % 3] / f"{number:02}.{'png' if number % 5 == 0 else 'jpg'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20 + 10 * (number % 4), 20 + 5 * (number % 3))).save(path)
        date = datetime(2020 + number % 4, 1 + number % 12, 15)
        os.utime(path, (date.timestamp(), date.timestamp()))
        paths.append(str(path))
    logits = np.round(2 * random.standard_normal((N, 3)), 1).astype(np.float32)
    vectors = random.standard_normal((N, 6)).astype(np.float16)
    made = Predictions(
        paths=paths,
        names=NAMES,
        scores=np.round(random.standard_normal((N, 3))).astype(np.float32),
        logits=logits,
        calibration="platt on 500 images",
        model="abc",
        features=vectors,
    )
    index = Index.create(root / "index", take(made, range(25)), root=root)
    index.add(take(made, range(25, N)))
    removed = [3, 25]
    index.remove([paths[row] for row in removed])
    halves = [
        Index.create(root / f"half{i}", take(made, rows), root=root)
        for i, rows in enumerate([range(15), range(15, N)])
    ]
    for row, half in zip(removed, halves, strict=True):
        half.remove([paths[row]])
    index = Index.open(root / "index")
    order = [paths.index(path) for path in index.paths]
    return index, ShardedIndex(halves), take(made, order), root


def satisfies(query_filter, made, row, root):
    """Whether an image satisfies a filter, from its file."""
    path = made.paths[row]
    if isinstance(query_filter, LabelThreshold):
        z = float(made.logits[row, NAMES.index(query_filter.name)])
        return (1 / (1 + exp(-z)) >= query_filter.bound) is query_filter.is_minimum
    if isinstance(query_filter, PathFilter):
        return fnmatch(os.path.relpath(path, root).lower(), query_filter.pattern.lower())
    assert isinstance(query_filter, FileFilter)
    if query_filter.field == "date":
        date = datetime.fromtimestamp(os.path.getmtime(path))
        parts = query_filter.value.count("-") + 1
        value = (date.year, date.month, date.day)[:parts]
        bound = tuple(map(int, query_filter.value.split("-")))
    else:
        with Image.open(path) as image:
            value = image.size[query_filter.field == "height"]
        bound = int(query_filter.value)
    return {
        "<": value < bound,
        "<=": value <= bound,
        "=": value == bound,
        ">=": value >= bound,
        ">": value > bound,
    }[query_filter.comparison]


def value_of(formula, labels, filters):
    """Truth value of a formula; a label that is None can be true and false."""
    if isinstance(formula, LabelLiteral):
        return labels[formula.column] == (formula.sign > 0)
    if isinstance(formula, FilterLiteral):
        return filters[formula.number] == (formula.sign > 0)
    values = [value_of(term, labels, filters) for term in formula.terms]
    return all(values) if isinstance(formula, Conjunction) else any(values)


def is_possible(formula, filters):
    """Whether the filters alone do not make a formula false."""
    if isinstance(formula, LabelLiteral):
        return True
    if isinstance(formula, FilterLiteral):
        return filters[formula.number] == (formula.sign > 0)
    values = [is_possible(term, filters) for term in formula.terms]
    return all(values) if isinstance(formula, Conjunction) else any(values)


def by_hand(query, made, root, example_row):
    """Probability or cosine of each image that the filters and the example allow."""
    vectors = made.features.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors[example_row]
    rows = range(len(made))
    if query.like is not None:
        rows = sorted(np.argsort(-cosines)[: query.like.count].tolist())
    sentences = [term.text for term in query.terms if not isinstance(term, LabelTerm)]
    sentence_logits = LinearScoring(sentences).logits(made.features)
    found = {}
    for row in rows:
        filters = [satisfies(item, made, row, root) for item in query.filters]
        if not is_possible(query.formula, filters):
            continue
        p = []
        for term in query.terms:
            if isinstance(term, LabelTerm):
                z = made.logits[row, NAMES.index(term.name)]
            else:
                z = sentence_logits[row, sentences.index(term.text)]
            p.append(1 / (1 + exp(-float(z))))
        total = 0.0
        for labels in product([False, True], repeat=len(p)):
            if value_of(query.formula, labels, filters):
                total += np.prod([a if b else 1 - a for a, b in zip(p, labels, strict=True)])
        is_by_cosine = query.like is not None and not query.terms
        found[made.paths[row]] = (total, cosines[row] if is_by_cosine else 0.0)
    return found


def check_query(text, collection, k):
    index, sharded, made, root = collection
    example_row = 10
    text = text.replace("{example}", made.paths[example_row])
    query = parse(text)
    expected = by_hand(query, made, root, example_row)
    for searched in (index, sharded):
        hits = searched.search(text, k, encoder=LinearEncoder())
        assert len(hits) == min(k, len(expected))
        for hit in hits:
            assert hit.probability == pytest.approx(expected[hit.path][0], rel=1e-5, abs=1e-12)
        keys = [expected[hit.path] for hit in hits]
        assert all(a[0] > b[0] - 1e-6 for a, b in pairwise(keys))
        if query.like is not None and not query.terms:
            assert keys == sorted(keys, reverse=True)
            assert [hit.similarity for hit in hits] == pytest.approx([c for _, c in keys], abs=1e-3)
        ranked = sorted(expected.values(), reverse=True)[: len(hits)]
        np.testing.assert_allclose([k[0] for k in keys], [r[0] for r in ranked], atol=1e-6)
    assert [hit.path for hit in index.search(text, k, encoder=LinearEncoder())] == [
        hit.path for hit in sharded.search(text, k, encoder=LinearEncoder())
    ]
    assert index.explain(text, k, encoder=LinearEncoder()) or not expected


@pytest.mark.parametrize("text", QUERIES)
def test_each_query_form_finds_what_loops_find(text, collection):
    for k in (1, 5, 50):
        check_query(text, collection, k)


random_queries = st.recursive(
    st.sampled_from(TERMS),
    lambda inner: st.builds(
        lambda operator, parts: f"({operator.join(parts)})",
        st.sampled_from([" & ", " | "]),
        st.lists(inner, min_size=2, max_size=3),
    ),
    max_leaves=7,
)


@settings(max_examples=60, deadline=None)
@given(text=random_queries, k=st.sampled_from([1, 4, 40]))
def test_a_random_query_finds_what_loops_find(text, k, collection):
    check_query(text, collection, k)


def test_probabilities_are_those_of_the_hits(collection):
    index, _, made, _ = collection
    for text in ("(apple & path:holiday/*) | fork", "fork & !apple", "apple & !apple", "width>20"):
        probabilities = index.probabilities(text)
        hits = {hit.path: hit.probability for hit in index.search(text, None)}
        expected = [hits.get(path, 0.0) for path in made.paths]
        np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    with pytest.raises(InputError, match="for probabilities must not contain a like: term"):
        index.probabilities("like:a.jpg")


def test_an_offset_leaves_out_the_best_images(collection):
    index, sharded, *_ = collection
    everything = [hit.path for hit in index.search("apple | fork", None)]
    for searched in (index, sharded):
        pages = [searched.search("apple | fork", 10, offset=start) for start in range(0, 50, 10)]
        assert [hit.path for page in pages for hit in page] == everything
    assert [hit.path for hit in index.search("apple | fork", None, offset=30)] == everything[30:]
    with pytest.raises(InputError, match="offset must be a whole number of at least 0; got -1"):
        index.search("apple", offset=-1)


def test_a_sentence_has_its_probability_and_uncertainty(collection):
    index, _, made, _ = collection
    hits = index.search('~"second" & apple', 3, encoder=LinearEncoder())
    for hit in hits:
        row = made.paths.index(hit.path)
        z = (made.features[row].astype(np.float32) @ DIRECTIONS.astype(np.float32))[1]
        assert hit.terms['~"second"'] == pytest.approx(1 / (1 + np.exp(-z)), rel=1e-5)
        assert hit.uncertainties == {'~"second"': pytest.approx(abs(z), rel=1e-5)}
        assert list(hit.terms) == ['~"second"', "apple"]
    with pytest.raises(InputError, match="needs the recognizer of the index"):
        index.search('~"second"')


def test_an_example_that_is_not_indexed_is_encoded(collection, tmp_path):
    index, _, made, _ = collection
    hits = index.search(f"like:{tmp_path}/other.jpg#3", encoder=LinearEncoder())
    vectors = made.features.astype(float)
    cosines = vectors[:, 0] / np.linalg.norm(vectors, axis=1)
    assert [made.paths.index(hit.path) for hit in hits] == np.argsort(-cosines)[:3].tolist()
    with pytest.raises(InputError, match=r"other\.jpg is not in the index"):
        index.search(f"like:{tmp_path}/other.jpg")


def test_filters_without_a_match_give_an_empty_result(collection):
    index, sharded, *_ = collection
    for text in ("path:nothing/*", "date>9998 & apple", "date<1000", "width>999999999 & !fork"):
        assert index.search(text) == [] == sharded.search(text)
        assert index.explain(text) == []


def test_patterns_are_no_regular_expressions(collection):
    index, _, _, root = collection
    for text in ("path:.*", 'path:"(a+)+$"', "path:%", "path:h_liday/*", r"path:holiday\*"):
        assert index.search(text) == []
    in_holiday = index.search("path:HOLIDAY/*", None)
    assert len(in_holiday) == 22
    assert index.search(f"path:{root}/holiday/*", None) == in_holiday


def test_a_pattern_of_many_wildcards_is_matched_in_less_than_a_second(collection):
    start = time.process_time()
    for pattern in ("?" * 9000, "*a" * 4500, "a?*" * 3000):
        assert collection[0].search(f"path:{pattern}") == []
    assert time.process_time() - start < 1.0


def test_a_pattern_that_is_no_unicode_matches_nothing(collection):
    assert collection[0].search("path:\udcff*") == []
    absolute = f"path:{collection[3]}/holiday/*"
    assert len(collection[0].search(absolute.upper().replace("PATH", "path"), None)) == 22


def test_vectors_that_are_not_finite_are_refused(collection, tmp_path):
    made = take(collection[2], range(5))
    made.features[3, 2] = np.nan
    index = Index.create(tmp_path / "index", made)
    assert len(index.search("apple")) == 5
    for text in ('~"first"', f'like:"{made.paths[0]}"', f'like:"{made.paths[3]}"'):
        with pytest.raises(DataError, match=r"features-000\.npy is damaged: an image vector"):
            index.search(text, encoder=LinearEncoder())


def test_an_expansion_of_many_rows_and_filters_takes_seconds_at_most(tmp_path):
    n, names = 20_000, [f"l{i}" for i in range(12)]
    logits = np.random.default_rng(0).standard_normal((n, 12)).astype(np.float32)
    made = Predictions(
        paths=[f"/images/{row % 8}/{row:05}.jpg" for row in range(n)],
        names=names,
        scores=logits,
        logits=logits,
        calibration="platt on 500 images",
        model="abc",
    )
    index = Index.create(tmp_path / "index", made, root="/images")
    random = np.random.default_rng(1)
    clauses = []
    for _ in range(16):
        chosen = random.choice(12, 6, replace=False)
        clauses.append(" & ".join(f"{'!' * random.integers(2)}l{i}" for i in chosen))
    formula = " | ".join(f"({c} & path:{i % 8}/*)" for i, c in enumerate(clauses))
    start = time.process_time()
    assert len(index.search(" | ".join(f"({c})" for c in clauses), 10)) == 10
    assert len(index.search(formula, 10)) == 10
    assert time.process_time() - start < 10.0


def test_an_index_without_vectors_refuses_sentences_and_examples(tmp_path):
    made = Predictions(
        paths=["/nowhere/a.jpg"],
        names=NAMES,
        scores=np.zeros((1, 3), np.float32),
        logits=np.zeros((1, 3), np.float32),
        calibration="platt on 500 images",
        model="abc",
    )
    index = Index.create(tmp_path / "index", made)
    for text in ('~"first"', "like:b.jpg"):
        with pytest.raises(InputError, match=r"need image vectors; .* contains none"):
            index.search(text, encoder=LinearEncoder())
    with pytest.raises(InputError, match=r"need image vectors; .* contains none"):
        index.search("like:/nowhere/a.jpg")  # an indexed image needs no encoder


def test_an_index_of_0_1_0_has_no_dates_and_sizes(tmp_path):
    folder = tmp_path / "index"
    shutil.copytree(Path(__file__).parents[1] / "saved" / "0.1.0" / "index", folder)
    index = Index.open(folder)
    name = index.names[0]
    for text in ("date>=2024", "width>3"):
        with pytest.raises(InputError, match=r"Run `surelabel index .* --compact` to add these"):
            index.search(f'"{name}" & {text}')
    assert len(index.search(f'"{name}" | path:*', None)) == len(index)
    index.compact()
    assert index.search(f'"{name}" & width>99999') == []
