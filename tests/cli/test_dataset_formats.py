import numpy as np
import pytest

from surelabel.cli.input_options import (
    load_dataset_from_input_options,
    load_training_data_from_input_options,
    load_unlabelled_from_input_options,
)
from surelabel.cli.pair_evaluation import is_pair_evaluation
from surelabel.data import FORMATS
from surelabel.errors import InputError
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


@pytest.mark.parametrize("name", ["data.yaml", "labels.csv", "annotations.xml", "labels.npz"])
def test_a_file_of_labels_is_refused_in_place_of_images(folder, name):
    if name == "labels.npz":
        images = LabelledImages([str(folder / "a.jpg")], ["dog"], [[1.0]])
        FORMATS["multihot"].write(images, folder / name)
    else:
        (folder / name).touch()
    with pytest.raises(InputError, match=rf"got the file of labels {name}\. Give the folder of"):
        load_unlabelled_from_input_options([name])


def test_an_npy_file_of_targets_is_no_caption_file(folder):
    np.save(folder / "targets.npy", np.ones((1, 1)))
    (folder / "paths.txt").write_text("a.jpg\n")
    (folder / "names.txt").write_text("dog\n")
    assert not is_pair_evaluation("targets.npy", captions=False, relevance_files=())
    data = load_training_data_from_input_options("linear", ["targets.npy"], None, None)
    assert isinstance(data, LabelledImages)
    assert data.targets.tolist() == [[1.0]]


def test_an_image_list_and_a_tag_matrix_of_nuswide_are_datasets_of_fit(folder):
    for file, text in {
        "ImageList/TrainImagelist.txt": "a.jpg\n",
        "ConceptsList/Concepts81.txt": "dog\n",
        "Groundtruth/TrainTestLabels/Labels_dog_Train.txt": "1\n",
        "NUS_WID_Tags/TagList1k.txt": "sea\n",
        "NUS_WID_Tags/Train_Tags1k.dat": "1\t\n",
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    for source, label in (
        ("ImageList/TrainImagelist.txt", "dog"),
        ("NUS_WID_Tags/Train_Tags1k.dat", "sea"),
    ):
        data = load_training_data_from_input_options("linear", [source], None, None)
        assert isinstance(data, LabelledImages)
        assert (data.names, data.targets.tolist()) == ([label], [[1.0]])
