import numpy as np
import pytest

from surelabel.data.correction_log import CorrectionLog
from surelabel.data.permanent_random_numbers import permanent_random_numbers, row_identifiers
from surelabel.errors import InputError
from surelabel.records import LabelledImages, Predictions
from surelabel.retrieval import Index
from surelabel.web.index_sample import IndexSampler, index_image_identifiers, sample_state


def predictions(paths):
    logits = np.zeros((len(paths), 1), np.float32)
    return Predictions([str(path) for path in paths], ["dog"], logits, logits, "tested", "m")


def numbers_of(paths, seed=0):
    """Return the permanent random numbers of label-next."""
    source = LabelledImages(paths, [], np.zeros((len(paths), 0)))
    return permanent_random_numbers(row_identifiers(source), f"label-next {seed}")


@pytest.fixture
def index(tmp_path):
    paths = [tmp_path / "photos" / f"{number % 3}" / f"{number}.jpg" for number in range(200)]
    return Index.create(tmp_path / "index", predictions(paths), root=tmp_path / "photos")


@pytest.fixture
def log(tmp_path):
    return CorrectionLog(tmp_path / "corrections.csv")


def test_identifiers_are_those_of_label_next(tmp_path):
    container = tmp_path / "photos" / "shard.tar"
    container.parent.mkdir()
    container.touch()
    paths = [
        *(str(tmp_path / "photos" / name) for name in ("a.jpg", "x/b.jpg", "x/y/c.jpg")),
        *("/d.jpg", "/elsewhere/e.jpg"),
        *(f"{container}/x/y/h.jpg", f"{tmp_path}/photos/no.tar/i.jpg"),
    ]
    index = Index.create(tmp_path / "index", predictions(paths), root=tmp_path / "photos")
    source = LabelledImages(index.paths, [], np.zeros((len(paths), 0)))
    assert index_image_identifiers(index) == row_identifiers(source)


def test_the_sample_has_the_smallest_permanent_random_numbers(index, log):
    paths, sampler = index.paths, IndexSampler(log)
    order = np.argsort(numbers_of(paths))
    for n_images in (5, 20):
        state = sampler.extend(index, n_unchecked=n_images, seed=0)
        assert [image.path for image in state.images] == [paths[i] for i in order[:n_images]]
        assert state.inclusion_probability == n_images / 200
        assert state.unchecked == state.images


def test_a_smaller_number_of_images_does_not_shrink_the_sample(index, log):
    sampler = IndexSampler(log)
    state = sampler.extend(index, n_unchecked=20, seed=0)
    content = log.path.read_bytes()
    assert sampler.extend(index, n_unchecked=5, seed=0) == state
    assert log.path.read_bytes() == content


@pytest.mark.parametrize("n_more", [-1000, 0, 15])
def test_a_sample_of_a_grown_index_has_the_smallest_numbers(index, log, tmp_path, n_more):
    sampler = IndexSampler(log)
    before = {image.path for image in sampler.extend(index, n_unchecked=20, seed=0).images}
    limit = numbers_of(sorted(before)).max()
    index.add(predictions([tmp_path / "photos" / "new" / f"{n}.jpg" for n in range(300)]))
    grown = Index.open(index.folder)
    paths, numbers = grown.paths, numbers_of(grown.paths)
    n_below = int((numbers <= limit).sum())
    assert n_below > 35  # the sample grows by itself
    state = sampler.extend(grown, n_unchecked=max(0, n_below + n_more), seed=0)
    n_sampled = n_below + max(n_more, 0)  # also if fewer images were requested
    expected = {paths[row] for row in np.argsort(numbers)[:n_sampled]}
    assert {image.path for image in state.images} == expected
    assert before < expected
    assert state.inclusion_probability == n_sampled / 500


def test_images_that_left_the_index_do_not_stop_the_sample(index, log):
    sampler = IndexSampler(log)
    state = sampler.extend(index, n_unchecked=20, seed=0)
    sampled = {image.path for image in state.images}
    others = [path for path in index.paths if path not in sampled]
    index.remove([*others[:120], state.images[0].path])
    left = Index.open(index.folder)
    again = sampler.extend(left, n_unchecked=25, seed=0)
    assert len(again.images) == 25
    assert [image.path for image in again.images[:19]] == [i.path for i in state.images[1:]]
    assert again.inclusion_probability == 25 / 79


def test_only_complete_checks_count(index, log):
    sampler = IndexSampler(log)
    one, two, _ = sampler.extend(index, n_unchecked=3, seed=0).images
    log.record(one.path, {"dog": 1.0}, chosen_by="random")
    log.record(two.path, {"dog": 1.0}, chosen_by="query")
    state = sample_state(index, log.history())
    assert state.is_checked == [True, False, False]
    assert len(sampler.extend(index, n_unchecked=3, seed=0).images) == 4


def test_a_sample_of_another_program_is_kept_and_extended_by_the_numbers(index, log):
    paths = index.paths
    numbers = numbers_of(paths)
    earlier = [paths[row] for row in np.argsort(-numbers)[:10]]
    log.append_sample(earlier, 10 / 200)
    sampler = IndexSampler(log)
    state = sampler.extend(index, n_unchecked=12, seed=0)
    expected = [*earlier, *(paths[row] for row in np.argsort(numbers)[:2])]
    assert [image.path for image in state.images] == expected
    assert state.inclusion_probability == 12 / 200


def test_a_sample_of_another_seed_is_refused(index, log):
    sampler = IndexSampler(log)
    sampler.extend(index, n_unchecked=3, seed=1)
    with pytest.raises(InputError, match=r"must be 1, with which .* got 0\. Send the seed 1"):
        sampler.extend(index, n_unchecked=4, seed=0)


def test_each_image_has_an_equal_chance(tmp_path):
    """Over seeds, the number of samples with an image is binomial."""
    paths = [tmp_path / "photos" / f"{number}.jpg" for number in range(10)]
    index = Index.create(tmp_path / "index", predictions(paths), root=tmp_path / "photos")
    counts, n_seeds = dict.fromkeys(index.paths, 0), 150
    for seed in range(n_seeds):
        log = CorrectionLog(tmp_path / f"{seed}.csv")
        for image in IndexSampler(log).extend(index, n_unchecked=3, seed=seed).images:
            counts[image.path] += 1
    deviation = np.sqrt(n_seeds * 0.3 * 0.7)
    assert all(abs(count - 0.3 * n_seeds) < 4 * deviation for count in counts.values())
