import json
from dataclasses import replace

import numpy as np
import pytest

from surelabel.bench import FeatureSplits
from surelabel.bench.calibrated.fits import calibrated_fit_scores
from surelabel.bench.result_cache import ResultCache, result_cache_digest
from surelabel.config import Choice, Run
from surelabel.errors import DataError
from surelabel.records import LabelledFeatures

RUN = Run(method=Choice("linear"), epochs=1, batch_size=32)


def test_a_head_is_fitted_once_and_then_read(dataset, tmp_path):
    first, again = ResultCache(tmp_path), ResultCache(tmp_path)
    fitted, read = (calibrated_fit_scores(cache, dataset, RUN, seed=0) for cache in (first, again))
    assert (first.n_computed, again.n_computed) == (1, 0)
    np.testing.assert_array_equal(fitted[0], read[0])
    np.testing.assert_array_equal(fitted[1], read[1])


def test_each_seed_sees_other_training_images(dataset, tmp_path):
    cache = ResultCache(tmp_path)
    one, other = (calibrated_fit_scores(cache, dataset, RUN, seed=seed)[1] for seed in (0, 1))
    assert cache.n_computed == 2
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("part", ["train", "validation", "test"])
@pytest.mark.parametrize("what", ["features", "targets", "known"])
def test_other_data_never_use_the_same_cache_file(dataset, part, what):
    own = getattr(dataset, part)
    given = {"features": own.features, "targets": own.targets, "known": own.known}
    given[what] = given[what].copy()
    if what == "features":
        given[what][0, 0] += 1
    elif what == "targets":
        row, column = np.argwhere(own.known)[0]
        given[what][row, column] = 1 - given[what][row, column]
    else:
        row, column = np.argwhere(own.known)[0]
        given[what][row, column] = False
    other = replace(dataset, **{part: LabelledFeatures(names=own.names, **given)})
    assert other.fingerprint != dataset.fingerprint


def test_a_name_does_not_make_other_data(dataset):
    assert replace(dataset, name="another name").fingerprint == dataset.fingerprint


def test_a_stopped_fit_leaves_nothing_behind(dataset, tmp_path):
    stopped = replace(RUN, loss=Choice("binary"), learning_rate=1.0)
    broken = FeatureSplits("broken", "features:9", dataset.train, dataset.validation, dataset.test)
    with pytest.raises(Exception, match="9"):
        calibrated_fit_scores(ResultCache(tmp_path), broken, stopped, seed=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"half of a file", b"PK\x03\x04 cut off"])
def test_a_damaged_cache_file_is_named(dataset, tmp_path, content):
    calibrated_fit_scores(ResultCache(tmp_path), dataset, RUN, seed=0)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    with pytest.raises(
        DataError, match=rf"{file.name} is damaged.*Remove the file and run the command again\."
    ):
        calibrated_fit_scores(ResultCache(tmp_path), dataset, RUN, seed=0)


def test_a_cache_file_of_another_shape_is_damaged(dataset, tmp_path):
    calibrated_fit_scores(ResultCache(tmp_path), dataset, RUN, seed=0)
    (file,) = tmp_path.iterdir()
    np.savez(file, validation=np.zeros((2, 2)), test=np.zeros((2, 2)))
    with pytest.raises(DataError, match=r"must have the shapes .* got "):
        calibrated_fit_scores(ResultCache(tmp_path), dataset, RUN, seed=0)


def test_a_cache_file_that_needs_pickle_is_not_opened(dataset, tmp_path):
    calibrated_fit_scores(ResultCache(tmp_path), dataset, RUN, seed=0)
    (file,) = tmp_path.iterdir()
    anything = np.array([{}], dtype=object)
    np.savez(file, validation=anything, test=anything)
    with pytest.raises(DataError, match="is damaged"):
        calibrated_fit_scores(ResultCache(tmp_path), dataset, RUN, seed=0)


def test_a_value_is_worked_out_once(tmp_path):
    called = []
    for _ in range(2):
        found = ResultCache(tmp_path).load_or_compute(
            "key", 1, compute=lambda: called.append(1) or {"a": 0.5}
        )
    assert (found, called) == ({"a": 0.5}, [1])


def test_a_damaged_value_is_named(tmp_path):
    ResultCache(tmp_path).load_or_compute("key", compute=lambda: [1.0])
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps([1.0])[:-1])
    with pytest.raises(DataError, match=rf"{file.name} is damaged"):
        ResultCache(tmp_path).load_or_compute("key", compute=lambda: [1.0])


def test_a_folder_that_is_a_file_is_refused(dataset, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        calibrated_fit_scores(ResultCache(tmp_path / "file"), dataset, RUN, seed=0)


def test_a_digest_differs_between_arrays():
    one = np.arange(6.0)
    assert result_cache_digest(one) != result_cache_digest(one + 1)
    assert result_cache_digest(one, one) != result_cache_digest(one)


def test_a_digest_differs_between_texts():
    arrays = np.arange(6.0)
    assert result_cache_digest("tiny-vit", arrays) != result_cache_digest("tiny-rn", arrays)
    assert result_cache_digest("tiny-vit", arrays) == result_cache_digest("tiny-vit", arrays)


def test_a_value_that_is_nested_too_deeply_is_named(tmp_path):
    ResultCache(tmp_path).load_or_compute("key", compute=lambda: [1.0])
    (file,) = tmp_path.iterdir()
    file.write_text("[" * 100_000)
    with pytest.raises(DataError, match=rf"{file.name} is damaged: .*nested too deeply.* Remove"):
        ResultCache(tmp_path).load_or_compute("key", compute=lambda: [1.0])


def test_an_unknown_compression_method_is_named(tmp_path):
    shapes, arrays = {"x": (3,)}, {"x": np.ones(3)}
    ResultCache(tmp_path).load_or_compute_arrays("key", shapes=shapes, compute=lambda: arrays)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[content.rfind(b"PK\x01\x02") + 10] = 99
    file.write_bytes(content)
    with pytest.raises(DataError, match=rf"{file.name} is damaged: .*compression method 99"):
        ResultCache(tmp_path).load_or_compute_arrays("key", shapes=shapes, compute=lambda: arrays)
