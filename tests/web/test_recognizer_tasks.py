import shutil
from dataclasses import replace
from math import nan

import numpy as np
import pytest
import torch
from scipy.special import logit

from surelabel.config import load_run
from surelabel.errors import DataError, InputError, MissingPart
from surelabel.methods import METHODS, Linear
from surelabel.recognizer import Recognizer, index_images_with_recognizer
from surelabel.recognizer.index_calibration import recognizer_record_of_index
from surelabel.retrieval import Index
from surelabel.web import recognizer_tasks
from surelabel.web.recognizer_tasks import (
    apply_recalibration,
    compute_uncertainty,
    create_recognizer_folder,
    find_images_of_fit,
)


@pytest.fixture(autouse=True)
def _threads():
    n_threads = torch.get_num_threads()
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture
def home(miscalibrated_index, tmp_path):
    shutil.copytree(miscalibrated_index, tmp_path, dirs_exist_ok=True)
    return tmp_path


def source(home, **changes):
    index = Index.open(home / "index")
    fields = {"folder": str(home / "index"), "root": None, "model": None, "device": "cpu"}
    return fields | {"fingerprint": index.model} | changes


def arguments(scenes, n=25):
    targets = scenes.targets[:n].astype(float)
    targets[0, 0] = nan
    logits = np.where(targets > 0, 1.0, -3.0)
    paths = [str(path) for path in scenes.paths[:n]]
    return {"logits": logits.tolist(), "targets": targets.tolist(), "paths": paths}


def test_log_odds_are_scaled_and_the_recognizer_is_saved_beside_the_index(home, scenes):
    names = Index.open(home / "index").names
    before = logit(Index.open(home / "index").probabilities(names[3]))
    folder, content = apply_recalibration(source(home), 0.5, -0.5, **arguments(scenes))
    assert (folder, content) == (str(home / "index.recognizer"), b"")
    index = Index.open(home / "index")
    after = logit(index.probabilities(names[3]))
    np.testing.assert_allclose(after, 0.5 * before - 0.5, atol=0.02)
    recognizer = Recognizer.load(folder)
    assert index.model == recognizer.fingerprint
    assert index.recognizer.model == folder
    assert index.calibration == recognizer.calibrated_on
    assert recognizer.calibrated_on.endswith(", recalibrated on 25 random images")
    assert recognizer.calibration.record.images == 25
    assert len(recognizer.used_rows.calibration) == 25
    # the second recalibration has another folder
    folder, _ = apply_recalibration(source(home), 1.1, 0.0, **arguments(scenes))
    assert folder == str(home / "index.recognizer-2")
    assert Recognizer.load(home / "index.recognizer").fingerprint == recognizer.fingerprint


def test_a_replaced_index_is_not_changed(home, scenes):
    with pytest.raises(MissingPart, match=r"The index was replaced\. Repeat the request"):
        apply_recalibration(source(home, fingerprint="0" * 16), 0.5, 0.0, **arguments(scenes))
    assert not (home / "index.recognizer").exists()


def test_an_index_in_sparse_form_without_vectors_is_refused_and_no_folder_remains(home, scenes):
    recognizer = Recognizer.load(home / "recognizer")
    shutil.rmtree(home / "index")
    predictions = replace(recognizer.predict(scenes.paths[:5]), features=None)
    record = recognizer_record_of_index(recognizer, str(home / "recognizer"))
    index = Index.create(home / "index", predictions, recognizer=record)
    index.compact(drop_below=0.01)
    with pytest.raises(InputError, match="New log-odds can be computed only from image vectors"):
        apply_recalibration(source(home), 0.5, 0.0, **arguments(scenes))
    assert not (home / "index.recognizer").exists()
    assert Index.open(home / "index").model == recognizer.fingerprint


class LinearWithVariance(Linear):
    """Linear head whose uncertainties are functions of its scores."""

    def residual_errors(self, features):
        return torch.sigmoid(-self(features).abs())

    def match_variances(self, features):
        return torch.exp(-self(features))


@pytest.fixture
def fitted(tmp_path, scenes, monkeypatch):
    """Return the arguments of an index whose recognizer was fitted on 40 of its 45 images."""
    monkeypatch.setitem(METHODS, "linear_with_variance", LinearWithVariance)
    monkeypatch.setattr(recognizer_tasks, "limit_decoding_memory", lambda: None)  # of this process
    names = ["lion", "guitar"]
    run = load_run(overrides=["method.name=linear_with_variance", "epochs=2"])
    recognizer = Recognizer(run, names).fit(scenes.take(range(40)))
    recognizer.save(tmp_path / "fitted")
    paths = [str(path) for path in scenes.paths[:45]]
    model = str(tmp_path / "fitted")
    index_images_with_recognizer(tmp_path / "index", recognizer, paths, model=model)
    yield recognizer, source(tmp_path), paths
    recognizer_tasks._recognizer.cache_clear()


def test_uncertainties_are_those_of_the_recognizer(fitted):
    recognizer, arguments_of_index, paths = fitted
    (kinds, reason), content = compute_uncertainty(arguments_of_index, paths[44])
    assert (reason, content) == (None, b"")
    assert list(kinds) == ["residual_error", "match_variance"]
    for kind, values in kinds.items():
        expected = recognizer.predict([paths[44]], uncertainty=kind).uncertainty[0]
        assert values == pytest.approx(dict(zip(recognizer.names, expected.tolist(), strict=True)))


def test_an_image_that_cannot_be_read_has_a_reason_without_its_path(fitted, tmp_path):
    (tmp_path / "damaged.jpg").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"^[^/]+$"):
        compute_uncertainty(fitted[1], str(tmp_path / "damaged.jpg"))


def test_images_of_the_fit_are_found_by_their_content(fitted, tmp_path):
    _, arguments_of_index, paths = fitted
    copy = shutil.copy(paths[0], tmp_path / "copy.jpg")
    asked = [paths[3], paths[42], copy, str(tmp_path / "missing.jpg")]
    assert find_images_of_fit(arguments_of_index, asked) == ([True, False, True, False], b"")


def test_missing_files_of_checked_images_are_no_error(home, scenes):
    changed = arguments(scenes) | {"paths": [str(home / "missing.jpg")]}
    folder, _ = apply_recalibration(source(home), 0.5, 0.0, **changed)
    assert len(Recognizer.load(folder).used_rows.calibration) == 0


def test_folders_of_recognizers_are_numbered_and_never_replaced(tmp_path):
    (tmp_path / "a.recognizer").mkdir()
    (tmp_path / "a.recognizer-2").write_text("file")
    assert create_recognizer_folder(str(tmp_path / "a")) == tmp_path / "a.recognizer-3"
    assert create_recognizer_folder(str(tmp_path / "b") + "/") == tmp_path / "b.recognizer"


def test_a_folder_that_cannot_be_created_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="recognizer cannot be created: Not a directory"):
        create_recognizer_folder(str(tmp_path / "file" / "index"))
