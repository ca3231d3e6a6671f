import numpy as np
import pytest

from surelabel.cli.input_options import (
    load_dataset_from_input_options,
    load_unlabelled_from_input_options,
)
from surelabel.data import FORMATS
from surelabel.records import LabelledFeatures, LabelledImages

ARFF = "@relation 'r: -C {c}'\n{attributes}@data\n{row}\n"
VECTORS = ARFF.format(
    c=-1, attributes="@attribute width numeric\n@attribute dog {0,1}\n", row="0.5,1"
)
PATHS = ARFF.format(
    c=-1, attributes="@attribute path string\n@attribute dog {0,1}\n", row="a.jpg,1"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jpg").touch()
    return tmp_path


def test_an_arff_file_contains_vectors_or_images(folder):
    (folder / "vectors.ARFF").write_text(VECTORS)
    vectors = load_dataset_from_input_options("vectors.ARFF")
    assert isinstance(vectors, LabelledFeatures)
    assert (vectors.features.tolist(), vectors.targets.tolist()) == ([[0.5]], [[1.0]])
    unlabelled = load_unlabelled_from_input_options(["vectors.ARFF"])
    assert unlabelled.features.tolist() == [[0.5]]
    assert unlabelled.names == []
    (folder / "paths.arff").write_text(PATHS)
    images = load_dataset_from_input_options("paths.arff")
    assert isinstance(images, LabelledImages)
    assert (images.names, images.targets.tolist()) == (["dog"], [[1.0]])


def test_the_labels_of_an_arff_file_can_be_in_another_file(folder):
    (folder / "x.arff").write_text(VECTORS.replace("r: -C -1", "r"))
    (folder / "names.xml").write_text('<labels><label name="dog"/></labels>')
    vectors = load_dataset_from_input_options("x.arff", None, {"label_file": "names.xml"})
    assert vectors.names == ["dog"]


def test_an_archive_contains_vectors_or_multi_hot_arrays(folder):
    images = LabelledImages([str(folder / "a.jpg")], ["dog"], [[1.0]])
    FORMATS["multihot"].write(images, folder / "labels.npz")
    read = load_dataset_from_input_options("labels.npz")
    assert isinstance(read, LabelledImages)
    assert (read.paths, read.targets.tolist()) == (["./a.jpg"], [[1.0]])
    np.savez(folder / "vectors.npz", features=np.ones((1, 2)), targets=[[1]], names=["dog"])
    assert isinstance(load_dataset_from_input_options("vectors.npz"), LabelledFeatures)
