import re

import numpy as np
import pytest

from surelabel.data.labels import arff
from surelabel.data.labels.resolution.arff_files import has_arff_image_paths, is_arff_path
from surelabel.errors import DataError

NAN = pytest.approx(np.nan, nan_ok=True)
HEADER = """@relation 'photos: -C 2'
@attribute dog {1,0}
@attribute 'red cat' {0,1}
@attribute width numeric
@attribute note string
@attribute FileName string
@data
"""
ROWS = "1,0,640,?,a.jpg\n?,1,?,'x, y',b.jpg\n{0 0, 4 'sub/c d.jpg'}\n"


def write(folder, text):
    (folder / "photos.arff").write_text(text, encoding="utf-8")
    return folder / "photos.arff"


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def test_a_string_attribute_contains_the_image_paths(folder):
    labelled = arff.read(write(folder, HEADER + ROWS))
    assert labelled.names == ["dog", "red cat"]
    assert labelled.paths == [str(folder / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert by_nan(labelled) == [[1, 0], [NAN, 1], [0, 0]]
    assert labelled.reading == "labels from the option -C 2; 2 other attributes not used"


def test_names_and_the_root_of_the_images_are_options(folder):
    path = write(folder / "sub", HEADER + ROWS)
    labelled = arff.read(path, images_root=folder, names=["red cat", "owl", "dog"])
    assert labelled.paths[0] == str(folder / "a.jpg")
    assert by_nan(labelled) == [[0, NAN, 1], [1, NAN, NAN], [0, NAN, 0]]
    with pytest.raises(DataError, match="which has 1 label; got 1 other label: 'red cat'"):
        arff.read(path, images_root=folder, names=["dog"])


def test_an_xml_file_names_the_labels(folder):
    text = (HEADER + ROWS).replace(": -C 2", "")
    (folder / "photos.xml").write_text('<labels><label name="red cat"/></labels>')
    labelled = arff.read(write(folder, text))
    assert (labelled.names, by_nan(labelled)) == (["red cat"], [[0], [1], [0]])
    assert labelled.reading == "labels of photos.xml; 3 other attributes not used"
    (folder / "photos.xml").rename(folder / "labels.xml")
    assert arff.read(folder / "photos.arff", label_file=folder / "labels.xml").names == ["red cat"]
    with pytest.raises(DataError, match=r"photos\.arff must state which .* \(photos\.xml\)"):
        arff.read(folder / "photos.arff")


def test_the_header_tells_images_from_vectors(folder):
    assert has_arff_image_paths(write(folder, HEADER + "damaged"))
    assert not has_arff_image_paths(write(folder, HEADER.replace("FileName", "text")))
    assert is_arff_path("x/PHOTOS.ARFF")
    assert not is_arff_path("photos.arff.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("FileName", "text"), " must have a string attribute of image paths"),
        (HEADER.replace("note", "path"), ", line 6: one string attribute must contain the image p"),
        (HEADER, " must contain at least one image with labels; got none"),
        (HEADER + "1,0,1,x,a.jpg\n1,0,1,x,../a.jpg\n", ", line 9: .*; got '../a.jpg'"),
        (HEADER + "1,0,1,x,/a.jpg\n", ", line 8: an image must have a relative path .*'/a.jpg'"),
        (HEADER + "1,0,1,x,C:\\a.jpg\n", ", line 8: an image must have a relative path"),
        (HEADER + "1,0,1,x,s3://b/a.jpg\n", ", line 8: an image must have a relative path"),
        (HEADER + "1,0,1,x,?\n", ", line 8: the attribute 'FileName' must contain the path"),
        (HEADER + "{0 1}\n", ", line 8: the attribute 'FileName' must contain the path"),
        (HEADER + "{4 a.jpg}\n", ", line 8: a sparse row omits 'dog', whose first value is 1"),
        (
            HEADER + "2,0,1,x,a.jpg\n",
            ", line 8: the attribute 'dog' must be one of {1,0} of line 2",
        ),
        (HEADER + "1,0,1,x\n", ", line 8: expected 5 values, .*; got 4"),
        (HEADER + "1,0,1,'x,a.jpg\n", ", line 8: a value that is not closed by a quote"),
        (HEADER + "1,0,1,x,a.jpg\n0,0,1,x,a.jpg\n", " must contain each image once"),
        (HEADER + "1,0,1,x,d.jpg\n", "must exist; 1 of 1 missing: '.*d.jpg'"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(folder, text, message):
    expected = ".*".join(map(re.escape, message.split(".*")))
    with pytest.raises(DataError, match=rf"photos\.arff{expected}|photos\.arff .*{expected}"):
        arff.read(write(folder, text))
