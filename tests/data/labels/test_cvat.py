from xml.etree import ElementTree

import numpy as np
import pytest

from surelabel.data.labels import cvat
from surelabel.errors import DataError, InputError
from surelabel.records import Predictions

NAN = pytest.approx(np.nan, nan_ok=True)
SAMPLE = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <id>4</id>
      <name>holiday</name>
      <size>3</size>
      <mode>annotation</mode>
      <labels>
        <label>
          <name>dog</name>
          <color>#aa0000</color>
          <type>any</type>
          <attributes>
            <attribute>
              <name>confidence</name>
              <mutable>False</mutable>
              <input_type>text</input_type>
              <default_value></default_value>
              <values></values>
            </attribute>
          </attributes>
        </label>
        <label><name>car &amp; bus</name><attributes></attributes></label>
        <label><name>person</name><type>skeleton</type></label>
        <label><name>nose</name><type>points</type><parent>person</parent></label>
        <label><name>cat</name></label>
      </labels>
      <segments><segment><id>4</id><start>0</start><stop>2</stop></segment></segments>
      <owner><username>admin</username><email></email></owner>
    </task>
    <dumped>2018-09-25 11:38:28.799808+03:00</dumped>
  </meta>
  <image id="0" name="a.jpg" width="1600" height="1200">
    <tag label="dog" source="manual">
      <attribute name="confidence">0.93</attribute>
    </tag>
    <tag label="dog" source="auto"></tag>
    <box label="car &amp; bus" source="manual" occluded="0" xtl="1" ytl="2" xbr="3" ybr="4"></box>
    <skeleton label="person" source="manual"><points label="nose" points="1,2"></points></skeleton>
  </image>
  <image id="1" name="b.jpg" width="1600" height="1200">
  </image>
  <image id="2" name="sub/c d.jpg" width="1600" height="1200">
    <polygon label="cat" points="1,2;3,4;5,6" occluded="0" z_order="1"></polygon>
  </image>
</annotations>
"""


@pytest.fixture
def sample(folder):
    (folder / "annotations.xml").write_text(SAMPLE, "utf-8")
    return folder / "annotations.xml"


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def predictions_of(folder, probabilities, names=("dog", "cat"), **fields):
    """Predictions of the images of the folder; the first ones if there are fewer rows."""
    logits = np.log(np.array(probabilities) / (1 - np.array(probabilities))).astype(np.float32)
    paths = [str(folder / name) for name in ("a.jpg", "b.jpg", "sub/c d.jpg")][: len(logits)]
    return Predictions(paths, list(names), logits, logits, **{"calibration": "beta"} | fields)


def test_tags_and_shapes_are_positive_and_other_labels_of_the_task_negative(sample):
    labelled = cvat.read(sample)
    assert labelled.names == ["dog", "car & bus", "person", "cat"]
    assert labelled.paths == [str(sample.parent / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert by_nan(labelled) == [[1, 1, 1, 0], [NAN] * 4, [0, 0, 0, 1]]
    assert labelled.reading == (
        "CVAT tags and shapes of 2 of 3 images, all labels are unknown for 1 image without tags "
        "and shapes"
    )


def test_images_without_tags_are_negative_on_request(sample):
    labelled = cvat.read(sample, missing="negative")
    assert labelled.targets.tolist()[1] == [0] * 4
    assert labelled.known.all()
    assert "all labels are negative for 1 image" in labelled.reading
    assert by_nan(cvat.read(sample, missing="unknown"))[1] == [NAN] * 4
    with pytest.raises(InputError, match="missing must be one of negative, unknown; got 'zero'"):
        cvat.read(sample, missing="zero")


def test_names_order_the_labels_and_labels_without_a_column_are_unknown(sample):
    names = ["cat", "zebra", "dog", "car & bus", "person"]
    assert by_nan(cvat.read(sample, names=names))[0] == [0, NAN, 1, 1, 1]
    with pytest.raises(DataError, match="which has 1 label; got 3 other labels: 'car & bus'"):
        cvat.read(sample, names=["cat"])


def test_the_folder_of_an_export_is_found(sample):
    images = sample.parent / "images"
    images.mkdir()
    for name in ("a.jpg", "b.jpg", "sub"):
        (sample.parent / name).rename(images / name)
    assert cvat.read(sample.parent).paths[0] == str(images / "a.jpg")
    assert cvat.read(sample, images_root=images).paths[0] == str(images / "a.jpg")


@pytest.mark.parametrize("part", ["project", "job"])
def test_labels_of_a_project_or_a_job_are_read(sample, part):
    sample.write_text(SAMPLE.replace("task>", f"{part}>"), "utf-8")
    assert cvat.read(sample).names == ["dog", "car & bus", "person", "cat"]


def test_without_labels_in_meta_the_labels_are_those_of_the_images(folder):
    text = (
        '<annotations><image name="a.jpg"><tag label="dog"/><tag label="b"/></image></annotations>'
    )
    (folder / "a.xml").write_text(text)
    assert cvat.read(folder / "a.xml").names == ["b", "dog"]


IMAGE = '<image id="0" name="a.jpg" width="1600" height="1200">'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "<annotations>",
            '<!DOCTYPE a [<!ENTITY b "c">]><annotations>',
            "must not declare a docum",
        ),
        ("</annotations>", "", "must be an XML file in UTF-8; got: no element found"),
        (
            "annotations>",
            "annotation>",
            "must contain the root element <annotations>.*<annotation>",
        ),
        ("</annotations>", '<track label="dog"/></annotations>', "got tracks of a video. Export"),
        ("<name>dog</name>", "<name> </name>", ", label 1 of <meta>: expected a name .*got ''"),
        ("<name>cat</name>", "<name>dog</name>", ", label 5 of <meta>: .*repeated; got 'dog'"),
        (
            '<polygon label="cat"',
            '<polygon label="cow"',
            r", image 3 \('sub/c d.jpg'\): .*got 'cow'",
        ),
        ('<polygon label="cat"', "<polygon", r", image 3 \(.*must have a label; got <polygon>"),
        (IMAGE, IMAGE + "<tag/>", r", image 1 \('a.jpg'\): every tag .*; got <tag> without"),
        ('name="b.jpg"', 'name="../b.jpg"', r", image 2 \('../b.jpg'\): .*got '../b.jpg'"),
        ('name="b.jpg"', 'name="/b.jpg"', r", image 2 \('/b.jpg'\): .*a relative path"),
        ('name="b.jpg"', "", r", image 2 \(''\): an image must have a relative path"),
        ('name="b.jpg"', 'name="a.jpg"', "must contain each image once"),
        ('name="b.jpg"', 'name="d.jpg"', "1 of 3 missing: .*d.jpg"),
        ("cat", "c&#9;t", "must not contain a line break, a tab"),
    ],
)
def test_a_file_that_is_not_cvat_is_refused_with_its_place(sample, old, new, message):
    assert old in SAMPLE
    sample.write_text(SAMPLE.replace(old, new), "utf-8")
    with pytest.raises(DataError, match=rf"annotations\.xml.*{message}") as caught:
        cvat.read(sample)
    assert "\n" not in str(caught.value)


def test_a_file_without_labels_or_images_is_refused(folder):
    file = folder / "a.xml"
    file.write_text('<annotations><image name="a.jpg"/></annotations>')
    with pytest.raises(DataError, match="must contain labels in <meta>, or images with tags"):
        cvat.read(file)
    file.write_text(SAMPLE.partition("<image")[0] + "</annotations>")
    with pytest.raises(DataError, match="at least one image with labels"):
        cvat.read(file)


@pytest.mark.parametrize(
    ("content", "is_cvat"),
    [
        (SAMPLE.encode(), True),
        (b"\xef\xbb\xbf\n<!-- a - b --><annotations/>", True),
        (b"<annotation><filename>a.jpg</filename></annotation>", False),
        (b"<labels><label name='dog'/></labels>", False),
        (b"<!-- <annotations> --><labels/>", False),
        (b"<!--" * 1000, False),
        (b"", False),
    ],
)
def test_the_root_element_tells_cvat_from_other_xml(tmp_path, content, is_cvat):
    (tmp_path / "annotations.xml").write_bytes(content)
    assert cvat.is_cvat_file(tmp_path / "annotations.xml") is is_cvat
    assert cvat.is_cvat_folder(tmp_path) is is_cvat
    assert not cvat.is_cvat_file(tmp_path)
    assert not cvat.is_cvat_folder(tmp_path / "annotations.xml")


def test_predictions_are_tags_with_the_confidence_as_attribute(folder):
    predictions = predictions_of(folder, [[0.9, 0.2], [0.4, 0.3], [0.6, 0.8]], ['a<b&"', "cat"])
    cvat.write_predictions(predictions, folder / "tags.xml")
    root = ElementTree.parse(folder / "tags.xml").getroot()
    assert root.findtext("version") == "1.1"
    names = [label.findtext("name") for label in root.findall("meta/task/labels/label")]
    assert names == ['a<b&"', "cat"]
    attribute = root.find("meta/task/labels/label/attributes/attribute")
    assert attribute.findtext("name") == "confidence"
    images = root.findall("image")
    assert [(image.get("id"), image.get("name")) for image in images] == [
        *[("0", "a.jpg"), ("1", "b.jpg"), ("2", "sub/c d.jpg")]
    ]
    tags = [[(tag.get("label"), tag.get("source")) for tag in image] for image in images]
    assert tags == [[('a<b&"', "auto")], [], [("cat", "auto"), ('a<b&"', "auto")]]
    confidences = [float(one.text) for one in images[2].findall("tag/attribute")]
    assert confidences == pytest.approx([0.8, 0.6], abs=2e-6)


def test_written_images_are_in_one_folder(folder, tmp_path_factory):
    predictions = predictions_of(folder, [[0.9, 0.2], [0.4, 0.3], [0.6, 0.8]])
    file = tmp_path_factory.mktemp("other") / "tags.xml"
    with pytest.raises(DataError, match=r"must be in the folder .*other.*as images_root"):
        cvat.write_predictions(predictions, file)
    assert not file.exists()
    cvat.write_predictions(predictions, file, images_root=folder, thresholds=0.25)
    labelled = cvat.read(file, images_root=folder)
    assert labelled.targets.tolist() == [[1, 0], [1, 1], [1, 1]]
    assert labelled.paths == list(predictions.paths)


def test_predictions_that_xml_cannot_hold_are_refused(folder):
    file = folder / "tags.xml"
    with pytest.raises(InputError, match=r"must not contain the character '\\x01'; got 'd\\x01g'"):
        cvat.write_predictions(predictions_of(folder, [[0.9, 0.2]], ["d\x01g", "cat"]), file)
    odd = predictions_of(folder, [[0.9, 0.2]])
    odd.paths[0] = str(folder / "\x02.jpg")
    with pytest.raises(DataError, match=r"must not contain the character '\\x02'"):
        cvat.write_predictions(odd, file)
    odd.paths[0] = "s3://bucket/a.jpg"
    with pytest.raises(DataError, match=r"must be in the folder .*; got s3://bucket/a.jpg"):
        cvat.write_predictions(odd, file)
    assert not file.exists()
