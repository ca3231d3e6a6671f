"""What the fit of every method on frozen features must do, through a recognizer and its folder."""

import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.features import FeatureCache
from surelabel.methods import METHODS, FitsTargets
from surelabel.recognizer import Recognizer
from surelabel.recognizer.feature_extraction import extract_features
from surelabel.recognizer.fitting import (
    fit_recognizer_method_on_batches,
    make_method_for_fitting,
    make_objective_for_fitting,
)
from surelabel.recognizer.fitting_data import encode_fitting_data
from surelabel.records import LabelledImages, LabelledTexts
from surelabel.training import FeatureBatches

NAMES, NEW_NAMES = ["lion", "guitar", "car"], ["coffee", "lion", "rocket"]
TEXTS = ["a lion.", "a guitar and a car", "a car beside a rocket", "the guitar of a lion"]
fitted_on_labels = [
    name for name, m in METHODS.items() if m.learns_from == "labels" and "pixels" not in m.needs
]
trained_on_labels = [m for m in fitted_on_labels if not issubclass(METHODS[m], FitsTargets)]
fitted_on_texts = [name for name, m in METHODS.items() if m.learns_from == "texts"]
every_fit = pytest.mark.parametrize("method", [*fitted_on_labels, *fitted_on_texts])


@pytest.fixture(scope="module")
def images():
    """A positive image of each of the labels ``NAMES`` and ``NEW_NAMES``."""
    train = collection("scenes-80", split="train")
    columns = [train.names.index(name) for name in dict.fromkeys([*NAMES, *NEW_NAMES])]
    rows = np.unique([np.flatnonzero(train.targets[:, c])[:1] for c in columns])
    return with_columns(train.take(rows), columns)


@pytest.fixture(scope="module")
def texts():
    names = [*NAMES, "coffee", "rocket"]
    targets = np.array([[float(name in text) for name in names] for text in TEXTS])
    return LabelledTexts(TEXTS, names, targets)


def with_columns(source, columns):
    names = [source.names[column] for column in columns]
    kind = type(source)
    first = source.texts if kind is LabelledTexts else source.paths
    return kind(first, names, source.targets[:, columns], source.known[:, columns])


def unfitted(method):
    size = 128 if method in fitted_on_texts else 2  # there are 250 sentences, and few images
    settings = [f"method.name={method}", "epochs=2", f"batch_size={size}", "seed=5"]
    return Recognizer(load_run(overrides=settings), NAMES)


@pytest.fixture(scope="module")
def fit(images, texts):
    """Fit a method once, on data with further labels that the recognizer does not have."""
    return cache(lambda name: unfitted(name).fit(texts if name in fitted_on_texts else images))


@every_fit
def test_labels_that_are_added_after_the_fit_have_no_influence_on_it(method, fit, images, texts):
    source = texts if method in fitted_on_texts else images
    alone = unfitted(method).fit(with_columns(source, range(len(NAMES))))
    assert alone.fingerprint == fit(method).fingerprint
    start = unfitted(method).method.state_dict()
    weights = alone.method.state_dict()
    assert any(not torch.equal(weights[key], start[key]) for key in start)
    if alone.method.open_vocabulary:
        alone.with_names(NEW_NAMES)
        assert all(torch.equal(v, weights[k]) for k, v in alone.method.state_dict().items())


class EncodedInEachStep(FeatureBatches):
    """Encode the image files of a batch anew each time the batch is used."""

    def __init__(self, recognizer, paths, data):
        numbered = replace(data.features, pooled=torch.arange(float(len(paths)))[:, None])
        super().__init__(numbered, data.targets, data.known, batch_size=recognizer.run.batch_size)
        self._recognizer, self._paths = recognizer, paths
        self.n_encoded = 0

    def batches(self, generator, skip=0):
        for batch in super().batches(generator, skip):
            rows = batch.features.pooled[:, 0].long().tolist()
            paths = [self._paths[row] for row in rows]
            recognizer = self._recognizer
            found = extract_features(paths, recognizer.method, recognizer.encoder)
            assert found.n_cached == 0
            self.n_encoded += len(rows)
            yield replace(batch, features=found.features)


@pytest.mark.parametrize("method", trained_on_labels)
def test_training_on_cached_features_equals_encoding_the_images_in_each_step(
    method, fit, images, tmp_path
):
    recognizer = unfitted(method)
    source = LabelledImages(*vars(with_columns(images, range(len(NAMES)))).values())
    data = encode_fitting_data(
        source, source, recognizer.method, recognizer.encoder, FeatureCache(tmp_path)
    )
    common = (recognizer.run, recognizer.encoder, recognizer.names_with_aliases)
    it = make_method_for_fitting(*common)
    objective = make_objective_for_fitting(*common, it)
    torch.manual_seed(recognizer.run.seed)
    it.initialize(*data.for_initial_values(5), objective.link)
    batches = EncodedInEachStep(recognizer, source.paths, data)
    torch.manual_seed(recognizer.run.seed)
    fit_recognizer_method_on_batches(recognizer.run, it, batches, objective)
    assert batches.n_encoded == recognizer.run.epochs * len(images)
    for key, values in fit(method).method.state_dict().items():
        torch.testing.assert_close(it.state_dict()[key], values, atol=1e-5, rtol=0, msg=key)


PREDICT_NEW_LABELS = """
import sys
import numpy as np
import torch
from surelabel.recognizer import Recognizer
torch.set_num_threads(1)
folder, labels, *images = sys.argv[1:]
for path in open(f"{folder}/list").read().split():
    recognizer = Recognizer.load(path)
    if recognizer.method.open_vocabulary:
        recognizer = recognizer.with_names(labels.split(","))
    np.save(f"{path}.npy", recognizer.predict(images).scores)
"""


def test_what_a_new_process_loads_scores_new_labels_the_same(fit, images, tmp_path):
    fits = {name: fit(name) for name in (*fitted_on_labels, *fitted_on_texts)}
    folders = {name: tmp_path / name for name in fits}
    for name, recognizer in fits.items():
        recognizer.save(folders[name])
    (tmp_path / "list").write_text("\n".join(map(str, folders.values())))
    paths = list(images.paths[:2])
    command = [sys.executable, "-c", PREDICT_NEW_LABELS, str(tmp_path), ",".join(NEW_NAMES), *paths]
    subprocess.run(command, check=True)
    for name, recognizer in fits.items():
        is_open = recognizer.method.open_vocabulary
        here = recognizer.with_names(NEW_NAMES) if is_open else recognizer
        found = np.load(f"{folders[name]}.npy")
        assert np.array_equal(found, here.predict(paths).scores), name
        differences = np.ptp(found, axis=0)
        if isinstance(recognizer.method, FitsTargets):  # labels can share the leaves of two images
            differences = differences.max()
        assert np.min(differences) > 0, name
