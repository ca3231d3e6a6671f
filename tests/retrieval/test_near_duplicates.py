import math
import re
import shutil
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import surelabel as sl
from surelabel.data import collection
from surelabel.encoders import load_encoder
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions
from surelabel.retrieval import Index, IndexRecognizer, near_duplicates
from surelabel.retrieval.near_duplicates import (
    MEASURED_DUPLICATE_LIMITS,
    DuplicateLimit,
    DuplicatePair,
    DuplicateSearch,
    connected_rows,
    find_duplicates,
    find_similar_rows,
)

ROOT = Path(__file__).parents[2]
FINGERPRINTS = {m.encoder: fingerprint for fingerprint, m in MEASURED_DUPLICATE_LIMITS.items()}
TINY_VIT = IndexRecognizer("tiny-vit", ("label",), encoder=FINGERPRINTS["tiny-vit"])


def squared_norms(vectors):
    return np.square(vectors.astype(np.float64)).sum(1)


def similar_rows(vectors, block_rows, min_cosine, **settings):
    """Compare all rows, except zero vectors, which are read in blocks."""
    norms = squared_norms(vectors)
    return find_similar_rows(
        lambda: (
            vectors[start : start + block_rows] for start in range(0, len(vectors), block_rows)
        ),
        norms,
        norms > 0,
        min_cosine=min_cosine,
        **settings,
    )


def pairs_of_loop(vectors, min_cosine):
    """Compare all pairs of rows in a loop, with sums that are rounded once."""
    rows = vectors.tolist()
    norms = [math.fsum(value * value for value in row) for row in rows]
    pairs = []
    for i, j in combinations(range(len(rows)), 2):
        product = math.fsum(x * y for x, y in zip(rows[i], rows[j], strict=True))
        if norms[i] and norms[j] and product / math.sqrt(norms[i] * norms[j]) >= min_cosine:
            pairs.append([i, j])
    return pairs


def write_index(folder, vectors, hashes=None, recognizer=None):
    """Write an index of images without files, with the given content hashes."""
    vectors = np.asarray(vectors, np.float16)
    logits = np.zeros((len(vectors), 1), np.float32)
    paths = [f"/images/{row:02}.jpg" for row in range(len(vectors))]
    predictions = Predictions(
        *(paths, ["label"], logits, logits, "simulated", "model"),
        features=vectors,
        hashes=hashes,
    )
    return Index.create(folder / "index", predictions, root="/images", recognizer=recognizer)


def names(paths):
    return [path.rsplit("/", 1)[1].removesuffix(".jpg") for path in paths]


# small whole numbers, so that many cosines are equal to each other, to a limit, or to 0
VECTORS = st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=2, max_size=12)


@given(VECTORS, st.sampled_from([0.5, 0.6, 0.8, 0.9, 1.0]), st.integers(1, 5))
def test_the_pairs_are_those_of_a_brute_force_loop(rows, min_cosine, block_rows):
    vectors = np.array(rows, np.float16)
    found, cosines = similar_rows(vectors, block_rows, min_cosine)
    assert found.tolist() == pairs_of_loop(vectors, min_cosine)
    assert ((cosines >= min_cosine) & (cosines <= 1)).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.floats(0.05, 1))
def test_random_vectors_give_the_pairs_of_a_loop_for_every_block_size(seed, block_rows, limit):
    random = np.random.default_rng(seed)
    centres = random.standard_normal((4, 8))
    vectors = centres[random.integers(4, size=30)] + 0.3 * random.standard_normal((30, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    found, cosines = similar_rows(vectors, block_rows, limit)
    assert found.tolist() == pairs_of_loop(vectors, limit)
    whole, whole_cosines = similar_rows(vectors, 30, limit)
    assert np.array_equal(found, whole)
    assert np.array_equal(cosines, whole_cosines)  # not a bit depends on the blocks


def test_tiles_within_a_block_give_all_pairs_once(monkeypatch):
    monkeypatch.setattr(near_duplicates, "TILE_ROWS", 3)
    monkeypatch.setattr(near_duplicates, "EXACT_ROWS", 2)
    vectors = np.ones((10, 2), np.float16)
    found, cosines = similar_rows(vectors, 7, 1.0)
    assert found.tolist() == [list(pair) for pair in combinations(range(10), 2)]
    assert (cosines == 1).all()


@pytest.mark.parametrize("limit_step", [-1, 0, 1])
def test_a_pair_is_found_up_to_its_exact_cosine(limit_step):
    vectors = np.array([[1, 0], [0.6, 0.8]], np.float16)
    cosine = float(similar_rows(vectors, 2, 0.5)[1][0])
    limit = np.nextafter(cosine, cosine + limit_step)
    assert len(similar_rows(vectors, 1, limit)[0]) == (limit_step <= 0)


def test_scaled_vectors_have_the_cosine_1():
    direction = np.array([0.3, -0.7, 0.1], np.float16)
    vectors = np.stack([direction, 2 * direction, direction / 4, -direction])
    found, cosines = similar_rows(vectors, 3, 1.0)
    assert found.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert cosines.tolist() == [1, 1, 1]


def test_more_pairs_than_allowed_are_an_error():
    vectors = np.ones((5, 2), np.float16)
    assert len(similar_rows(vectors, 2, 0.9, max_pairs=10)[0]) == 10
    with pytest.raises(InputError, match=r"More than 9 pairs .* at least 0\.9\. Give a higher"):
        similar_rows(vectors, 2, 0.9, max_pairs=9)


def test_progress_counts_the_compared_pairs():
    calls = []
    vectors = np.eye(9, dtype=np.float16)
    vectors[4] = 0  # is not compared
    similar_rows(vectors, 4, 0.5, progress=lambda done, total: calls.append((done, total)))
    done, totals = zip(*calls, strict=True)
    assert list(done) == sorted(done)
    assert (done[-1], set(totals)) == (math.comb(8, 2), {28})


@given(st.integers(2, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=9))
def test_connected_rows_have_the_smallest_row_of_their_component(n, edges):
    pairs = np.array([(a % n, b % n) for a, b in edges], np.int64).reshape(-1, 2)
    lowest = list(range(n))
    for _ in range(n):  # propagates the smallest row along every pair
        for a, b in pairs.tolist():
            lowest[a] = lowest[b] = min(lowest[a], lowest[b])
    assert connected_rows(np.arange(n), pairs).tolist() == lowest


def test_groups_connect_near_duplicates_and_equal_content(tmp_path):
    angles = np.radians([0, 90, 10, 19, 180, 90, 270])  # 0 and 19 degrees: connected by 10
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    index = write_index(tmp_path, vectors, ["a", "b", "c", "d", "e", "b", "f"])
    result = find_duplicates(index, min_cosine=0.98)
    first, second = result.groups
    assert names(first.paths) == ["00", "02", "03"]
    assert first.exact == ()
    assert [names((p.first, p.second)) for p in first.pairs] == [["02", "03"], ["00", "02"]]
    assert first.pairs[0].cosine > first.pairs[1].cosine > 0.98
    assert names(second.paths) == ["01", "05"]
    assert list(map(names, second.exact)) == [["01", "05"]]
    assert second.pairs == ()  # of equal files, only the first is compared
    assert (result.n_images, result.n_compared_images, result.n_compared_pairs) == (7, 6, 15)
    assert result.n_reported_pairs == 2
    assert result.share_of_pairs == 2 / 15


def test_copies_are_compared_once_and_are_in_the_group_of_their_first_file(tmp_path):
    vectors = [[1, 0]] * 3 + [[1, 0.01]] * 2
    index = write_index(tmp_path, vectors, ["a", "a", "a", "b", "b"])
    (group,) = find_duplicates(index, min_cosine=0.9).groups
    assert names(group.paths) == ["00", "01", "02", "03", "04"]
    assert list(map(names, group.exact)) == [["00", "01", "02"], ["03", "04"]]
    assert [(pair.first, pair.second) for pair in group.pairs] == [
        ("/images/00.jpg", "/images/03.jpg")
    ]


def test_images_without_a_hash_are_no_exact_duplicates(tmp_path):
    result = find_duplicates(write_index(tmp_path, np.eye(3)), min_cosine=0.5)
    assert result.groups == ()
    assert (result.n_compared_pairs, result.share_of_pairs) == (3, 0)


def test_zero_vectors_are_counted_and_only_compared_by_content(tmp_path):
    vectors = [[0, 0], [1, 0], [0, 0], [0, 0], [1, 0]]
    index = write_index(tmp_path, vectors, ["a", "b", "a", "c", "d"])
    result = find_duplicates(index, min_cosine=0.01)
    assert [names(group.paths) for group in result.groups] == [["00", "02"], ["01", "04"]]
    assert (result.n_zero_vectors, result.n_compared_pairs) == (3, 1)


def test_several_shards_and_removed_images(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    index = write_index(tmp_path, random.standard_normal((300, 16)))
    vectors = np.concatenate(list(index.image_vectors()))
    index.remove([f"/images/{row:02}.jpg" for row in (3, 50, 299)])
    monkeypatch.setattr("surelabel.retrieval.shards.FEATURE_BLOCK_ROWS", 64)
    assert len(list(index.image_vectors())) == 5
    kept = np.delete(vectors, [3, 50, 299], axis=0)
    result = find_duplicates(index, min_cosine=0.5)
    expected = similar_rows(kept, 1000, 0.5)[0]
    found = {(p.first, p.second) for group in result.groups for p in group.pairs}
    assert len(expected) > 10
    assert found == {(index.paths[i], index.paths[j]) for i, j in expected.tolist()}


@pytest.mark.parametrize("encoder", ["tiny-vit", "tiny-rn"])
def test_edited_and_copied_scenes_are_found_with_the_measured_limit(encoder, tmp_path):
    paths = collection("scenes-80", split="test").paths[:12]
    copy, edited = tmp_path / "copy.jpg", tmp_path / "edited.jpg"
    shutil.copy(paths[2], copy)
    with Image.open(paths[5]) as image:
        image.save(edited, quality=90)
    recognizer = sl.Recognizer.zero_shot(encoder, ["lion"])
    record = IndexRecognizer(encoder, ("lion",), encoder=recognizer.encoder.fingerprint)
    predictions = recognizer.predict([*paths, str(copy), str(edited)])
    result = find_duplicates(Index.create(tmp_path / "index", predictions, recognizer=record))
    assert [group.paths for group in result.groups] == [
        (paths[2], str(copy)),
        (paths[5], str(edited)),
    ]
    assert result.groups[0].exact == ((paths[2], str(copy)),)
    (pair,) = result.groups[1].pairs
    assert pair == DuplicatePair(paths[5], str(edited), pair.cosine)
    assert result.encoder == encoder
    assert result.limit.target_rate == 1e-6
    assert result.min_cosine == result.limit.min_cosine


@pytest.mark.parametrize("encoder", ["tiny-vit", "tiny-rn"])
def test_the_measured_limits_are_those_of_the_weights_in_the_package(encoder):
    assert FINGERPRINTS[encoder] == load_encoder(encoder).fingerprint
    measured = MEASURED_DUPLICATE_LIMITS[FINGERPRINTS[encoder]]
    rates = [limit.target_rate for limit in measured.limits]
    assert rates == sorted(rates, reverse=True)
    assert 1e-6 in rates
    cosines = [limit.min_cosine for limit in measured.limits]
    assert cosines == sorted(set(cosines))
    for limit in measured.limits:
        assert limit.low <= limit.false_positive_rate <= limit.high


@pytest.mark.parametrize("encoder", ["tiny-vit", "tiny-rn"])
def test_the_page_shows_the_measured_limits(encoder):
    page = (ROOT / "docs" / "duplicates.md").read_text(encoding="utf-8")
    for limit in MEASURED_DUPLICATE_LIMITS[FINGERPRINTS[encoder]].limits:
        row = (
            rf"\| {encoder} \| {limit.target_rate:g} \| {limit.min_cosine:.3f} \| "
            rf"{limit.n_reported:,} \| {limit.false_positive_rate:.1e} \| "
            rf"{limit.low:.1e} to {limit.high:.1e} \|"
        )
        assert re.search(row, page), row


def test_a_rate_selects_the_lowest_limit_that_was_measured_for_it(tmp_path):
    index = write_index(tmp_path, np.eye(3), recognizer=TINY_VIT)
    limits = MEASURED_DUPLICATE_LIMITS[TINY_VIT.encoder].limits
    for limit in limits:
        assert find_duplicates(index, false_positive_rate=limit.target_rate).limit is limit
    assert find_duplicates(index, false_positive_rate=0.5).limit is limits[0]
    assert find_duplicates(index).limit.target_rate == 1e-6
    with pytest.raises(
        InputError, match=f"at least {limits[-1].target_rate:g}, the lowest available"
    ):
        find_duplicates(index, false_positive_rate=1e-12)


def test_a_given_limit_has_the_rate_of_the_next_lower_measured_one(tmp_path):
    index = write_index(tmp_path, np.eye(3), recognizer=TINY_VIT)
    limits = MEASURED_DUPLICATE_LIMITS[TINY_VIT.encoder].limits
    between = (limits[0].min_cosine + limits[1].min_cosine) / 2
    result = find_duplicates(index, min_cosine=between)
    assert (result.limit, result.min_cosine) == (limits[0], between)
    assert find_duplicates(index, min_cosine=1).limit is limits[-1]
    lower = find_duplicates(index, min_cosine=limits[0].min_cosine / 2)
    assert (lower.encoder, lower.limit) == ("tiny-vit", None)


@pytest.mark.parametrize(
    "recognizer", [None, replace(TINY_VIT, encoder=None), replace(TINY_VIT, encoder="0" * 16)]
)
def test_an_encoder_with_other_weights_needs_a_cosine(tmp_path, recognizer):
    index = write_index(tmp_path, np.eye(3), recognizer=recognizer)
    with pytest.raises(InputError, match=r"No false-positive rate was measured .* min_cosine"):
        find_duplicates(index)
    result = find_duplicates(index, min_cosine=0.9)
    assert (result.encoder, result.limit) == (None, None)


@pytest.mark.parametrize("value", [0, -0.5, 1.01, math.nan, math.inf])
def test_a_cosine_out_of_range_is_an_error(tmp_path, value):
    index = write_index(tmp_path, np.eye(3))
    with pytest.raises(InputError, match="min_cosine must be above 0 and at most 1; got"):
        find_duplicates(index, min_cosine=value)


@pytest.mark.parametrize("value", [0, 1, -1e-6, math.nan])
def test_a_rate_out_of_range_is_an_error(tmp_path, value):
    index = write_index(tmp_path, np.eye(3), recognizer=TINY_VIT)
    with pytest.raises(InputError, match=r"false_positive_rate must be in \(0, 1\); got"):
        find_duplicates(index, false_positive_rate=value)


def test_other_arguments_are_checked(tmp_path):
    index = write_index(tmp_path, np.eye(3))
    with pytest.raises(
        InputError, match="Only min_cosine or false_positive_rate can be given; got both"
    ):
        find_duplicates(index, min_cosine=0.9, false_positive_rate=1e-6)
    for value in (0, 1.5):
        with pytest.raises(InputError, match="max_pairs must be a whole number of at least 1"):
            find_duplicates(index, min_cosine=0.9, max_pairs=value)


@pytest.mark.parametrize("n", [0, 1])
def test_an_index_of_fewer_than_two_images_is_an_error(tmp_path, n):
    index = write_index(tmp_path, np.eye(2))
    index.remove(index.paths[n:])
    with pytest.raises(InputError, match=f"an index of at least 2 images; .* has {n}"):
        find_duplicates(index, min_cosine=0.9)


def test_an_index_without_image_vectors_is_an_error(tmp_path):
    logits = np.zeros((3, 1), np.float32)
    paths = ["/images/a.jpg", "/images/b.jpg", "/images/c.jpg"]
    predictions = Predictions(paths, ["label"], logits, logits, "simulated", "model")
    index = Index.create(tmp_path / "index", predictions, root="/images")
    with pytest.raises(InputError, match=r"an index with image vectors; .* has none"):
        find_duplicates(index, min_cosine=0.9)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_an_error_with_its_path(tmp_path, value):
    index = write_index(tmp_path, [[1, 0], [0, 1], [value, 1]])
    with pytest.raises(DataError, match=r"must be finite; the vector of /images/02\.jpg is not"):
        find_duplicates(index, min_cosine=0.9)


def test_damaged_vectors_are_an_error(tmp_path):
    index = write_index(tmp_path, np.eye(3))
    (file,) = index.folder.glob("features-*.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"features-000\.npy is damaged: the checksum does not"):
        find_duplicates(Index.open(index.folder), min_cosine=0.9)


def test_the_summary_shows_the_first_groups(tmp_path):
    index = write_index(tmp_path, [[1, 0]] * 30 + [[0, 1]] * 2)
    text = repr(find_duplicates(index, min_cosine=0.9))
    assert text.startswith("DuplicateSearch(min_cosine=0.9, images=32, groups=2, pairs=436)")
    assert text.endswith("… 12 more")
    assert text.count("/images/") == 20
    markup = DuplicateSearch((), 0.9, None, None, 3, 3, 0, 0)._repr_html_()
    assert "DuplicateSearch" in markup


def test_a_limit_states_its_rate():
    assert DuplicateLimit(1e-6, 0.9, 3, 12, 0.1, 0.5).false_positive_rate == 0.25
