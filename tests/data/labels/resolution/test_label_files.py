import json
import os

import pytest

from surelabel.data.labels import FORMATS, read_label_entries, read_labels
from surelabel.data.labels.resolution.label_files import detect_label_folder_format
from surelabel.errors import DataError, InputError

COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}],
    "categories": [{"id": 1, "name": "dog"}],
    "annotations": [{"image_id": 1, "category_id": 1}],
}
VOC = "<annotation><filename>../a.jpg</filename><object><name>dog</name></object></annotation>"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "path,dog\na.jpg,1\n"),
        ("x.CSV", "path,label\na.jpg,dog\n"),
        ("labels.txt", '\ufeff"path","dog"\na.jpg,1\n'),
        ("x.jsonl", '{"path": "a.jpg", "labels": ["dog"]}'),
        ("x.json", '{"path": "a.jpg", "labels": ["dog"]}\n'),
        ("x.json", json.dumps(COCO)),
        ("x.json", json.dumps(COCO, indent=2)),
        ("voc/x.xml", VOC),
    ],
)
def test_every_format_is_recognized_and_says_the_same(folder, name, text):
    (folder / "voc").mkdir()
    (folder / name).write_text(text, encoding="utf-8")
    labelled = read_labels(folder / "voc" if name.endswith(".xml") else folder / name)
    assert len(labelled) == 1
    assert labelled.paths[0].endswith("a.jpg")
    assert (labelled.names, labelled.targets.tolist()) == (["dog"], [[1.0]])


def test_entries_have_the_image_names_of_a_table_and_paths_relative_to_a_folder(folder):
    (folder / "x.csv").write_text("path,dog\nlost,1\nlost,1\n")
    entries = read_label_entries(folder / "x.csv")
    assert (list(entries.paths), entries.targets.tolist()) == (["lost"], [[1.0]])
    (folder / "x.json").write_text(json.dumps(COCO))
    assert read_label_entries(folder / "x.json").paths == ["a.jpg"]
    assert read_label_entries(folder / "x.json", images_root=folder).paths == ["a.jpg"]


def test_the_table_has_eighteen_formats():
    assert sorted(FORMATS) == [
        *("arff", "coco", "corrections", "csv", "cvat", "fiftyone", "imagefolder", "jsonl"),
        *("label_studio", "lvis", "multihot", "nuswide", "openimages", "parquet", "voc"),
        *("webdataset", "xmp", "yolo"),
    ]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.txt"])
def test_a_table_with_the_columns_of_corrections_has_one_row_per_target(folder, name):
    (folder / name).write_text("path,label,corrected\na.jpg,dog,1\na.jpg,cat,0\n")
    labelled = read_labels(folder / name)
    assert (labelled.names, labelled.targets.tolist()) == (["dog", "cat"], [[1.0, 0.0]])
    assert read_label_entries(folder / name).names == ["dog", "cat"]


def test_a_table_whose_column_corrected_is_ignored_remains_a_table(folder):
    (folder / "x.csv").write_text("path,label,corrected\na.jpg,dog,1\n")
    labelled = read_labels(folder / "x.csv", ignore=["corrected"])
    assert (labelled.names, labelled.targets.tolist()) == (["dog"], [[1.0]])
    assert "labels in 'label'" in labelled.reading


def test_options_of_tables_are_refused_for_corrections(folder):
    (folder / "x.csv").write_text("path,label,corrected,width\na.jpg,dog,1,3\n")
    with pytest.raises(InputError, match="ignore can be given only for csv, parquet, "):
        read_labels(folder / "x.csv", ignore=["width"])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("x.txt", b"dog,cat\n", r"must be a CSV file.*got 'dog,cat'.*Convert the file"),
        ("x.bin", b"\xff\xfe\x00", r"must be text in UTF-8"),
        ("x.json", b"", r"must be a CSV file.*got ''"),
    ],
)
def test_another_format_is_refused(folder, name, data, message):
    (folder / name).write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_labels(folder / name)


@pytest.mark.parametrize(
    "content", [[], [{"image": "a.jpg", "choice": "dog"}], {"LabelName": "/m/0bl9f"}]
)
def test_json_of_another_program_is_refused_with_the_known_formats(folder, content):
    (folder / "x.json").write_text(json.dumps(content, indent=1))
    with pytest.raises(DataError, match=r"must be a JSON file of COCO, LVIS, Label .*JSON-MIN\)"):
        read_labels(folder / "x.json")


def test_a_folder_without_labels_is_refused(folder):
    (folder / "notes.txt").touch()
    with pytest.raises(DataError, match=r"must be a folder with labels, .*got a folder without"):
        read_labels(folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.json", '{"0": "dog", "1": "cat"}'),
        ("samples.json", '["a.jpg"]'),
        ("labels.json", "[1"),
        ("settings.yaml", "names: [dog]\nepochs: 3\n"),
        ("annotations.xml", "<dataset/>"),
        ("data.csv", "ImageID,width\na,3\n"),
    ],
)
def test_files_of_other_programs_do_not_change_the_format_of_a_folder(tmp_path, name, text):
    (tmp_path / "a.jpg").touch()
    (tmp_path / name).write_text(text)
    other = "voc" if name.endswith(".xml") else None  # any XML file is one of VOC
    assert detect_label_folder_format(tmp_path) == other
    for folder in ("cat", "dog"):
        (tmp_path / folder).mkdir()
    assert detect_label_folder_format(tmp_path) == (other or "imagefolder")
    (tmp_path / "shard.tar").touch()
    assert detect_label_folder_format(tmp_path) == (other or "webdataset")
    (tmp_path / "Annotations").mkdir()
    assert detect_label_folder_format(tmp_path) == "voc"


@pytest.mark.parametrize(("name", "function"), [("t.CSV.gz", "read_csv")])
def test_a_table_that_only_pandas_opens_is_refused_with_the_function(folder, name, function):
    (folder / name).write_bytes(b"PAR1\xff\x00")
    message = (
        rf"Convert the file to CSV, or .*pandas: read_labels\(pandas\.{function}\('.*{name}'\)"
    )
    with pytest.raises(DataError, match=message):
        read_labels(folder / name)


def test_a_file_that_is_not_there_is_named(folder):
    with pytest.raises(DataError, match=r"lost\.csv does not exist\. Give the path of a file or"):
        read_labels(folder / "lost.csv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "[" * 100_000, r"a\.jsonl, line 1: expected one JSON object; .*too deeply"),
        ("a.jsonl", '{"path": ' + "1" * 5000, r"line 1: expected one JSON object; .*4300 digits"),
        (
            "a.jsonl",
            '{"path": "a.jpg", "labels": ["dog"], "labels": ["cat"]}',
            r"line 1: expected one JSON object; .*the key 'labels' twice",
        ),
        ("a.json", '{"a":' * 100_000, r"must be a file of annotations in JSON; got: .* too deeply"),
        ("a.json", '{"images": ' + "1" * 5000, r"annotations in JSON; got: .*4300 digits"),
    ],
)
def test_hostile_json_is_refused_on_one_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        read_labels(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
def test_a_named_pipe_is_refused_without_waiting(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name} cannot be read: .* got a named pipe\."):
        read_labels(tmp_path / name)


def test_urls_are_not_downloaded(tmp_path):
    for url in ("http://x.org/labels.csv", "s3://bucket/labels"):
        with pytest.raises(DataError, match=f"{url}: URLs are not downloaded. Download the file"):
            read_labels(url)
    (tmp_path / "a.csv").write_text("path,dog\nhttps://x.org/a.jpg,1\n")
    with pytest.raises(DataError, match=r"1 of . missing: .*URLs are not downloaded: download"):
        read_labels(tmp_path / "a.csv")
