import numpy as np
import pytest

from surelabel.data.labels import jsonl
from surelabel.errors import DataError, InputError
from surelabel.records import LabelledImages, RowSelection

NAN = pytest.approx(np.nan, nan_ok=True)


def read(folder, text, **options):
    path = folder / "labels.jsonl"
    path.write_bytes(text.encode())
    return jsonl.read(path, **options)


def by_nan(labelled):
    return np.where(labelled.known, labelled.targets, np.nan).tolist()


def test_without_absent_all_others_are_absent_and_with_it_unknown(folder):
    labelled = read(
        folder,
        '\ufeff{"path": "a.jpg", "labels": ["dog"]}\r\n\n'
        '{"path": "b.jpg", "labels": ["cat"], "absent": ["owl"]}\n'
        '{"path": "sub/c d.jpg", "labels": [], "absent": []}\n',
    )
    assert labelled.names == ["cat", "dog", "owl"]
    assert labelled.paths == [str(folder / p) for p in ("a.jpg", "b.jpg", "sub/c d.jpg")]
    assert by_nan(labelled) == [[0, 1, 0], [1, NAN, 0], [NAN, NAN, NAN]]


def test_names_never_mentioned_are_absent_and_labels_beyond_them_refused(folder):
    line = '{"path": "a.jpg", "labels": ["dog"]}'
    assert by_nan(read(folder, line, names=["owl", "dog"])) == [[0, 1]]
    with pytest.raises(DataError, match=r"which has 1 label; got 1 other label: 'dog'"):
        read(folder, line, names=["owl"])


@pytest.mark.parametrize(
    "line",
    [
        '["a.jpg"]',
        '{"labels": ["dog"]}',
        '{"path": "", "labels": ["dog"]}',
        '{"path": "a.jpg"}',
        '{"path": "a.jpg", "labels": "dog"}',
        '{"path": "a.jpg", "labels": [1]}',
        '{"path": "a.jpg", "labels": ["dog"], "absent": "cat"}',
    ],
)
def test_an_entry_of_another_kind_is_refused_with_its_line(folder, line):
    with pytest.raises(DataError, match=r'labels\.jsonl, line 3: expected \{"path": "…"'):
        read(folder, '{"path": "b.jpg", "labels": []}\n\n' + line)


def test_broken_json_contradictions_and_empty_files_are_refused(folder):
    with pytest.raises(DataError, match=r"line 1: expected one JSON object; got '\{\"path\":'"):
        read(folder, '{"path": ')
    with pytest.raises(
        DataError, match=r"line 1: a label must be either in labels or in absent; got 'dog'"
    ):
        read(folder, '{"path": "a.jpg", "labels": ["dog"], "absent": ["dog"]}')
    with pytest.raises(DataError, match=r"line 1: a label must not .* got 'do\\ng'"):
        read(folder, r'{"path": "a.jpg", "labels": [], "absent": ["do\ng"]}')
    with pytest.raises(
        DataError, match=r"labels\.jsonl must contain at least one image .*got none"
    ):
        read(folder, "\n")
    with pytest.raises(
        DataError, match=r"lost\.jsonl cannot be read: No such file.*Check the path"
    ):
        jsonl.read(folder / "lost.jsonl")


def test_images_that_do_not_exist_are_refused(folder):
    with pytest.raises(DataError, match=r"All images of .* must exist; 1 of 1 missing"):
        read(folder, '{"path": "lost.jpg", "labels": ["dog"]}')


def test_what_is_written_is_read_again(folder):
    paths = [str(folder / "a.jpg"), str(folder / "sub/c d.jpg")]
    labelled = LabelledImages(paths, ["café", "path"], [[1, 0], [np.nan, 1]])
    jsonl.write(labelled, folder / "new.jsonl")
    again = jsonl.read(folder / "new.jsonl", names=labelled.names)
    assert again.paths == paths
    assert by_nan(again) == [[1, 0], [NAN, 1]]
    assert '"path": "sub/c d.jpg"' in (folder / "new.jsonl").read_text()


def test_a_target_between_absent_and_present_is_refused(folder):
    labelled = LabelledImages([str(folder / "a.jpg")], ["dog"], [[0.25]])
    with pytest.raises(InputError, match=r"must be 0 or 1; got 0\.25\. Write CSV"):
        jsonl.write(labelled, folder / "new.jsonl")


def test_images_with_entries_on_their_choice_are_not_written(tmp_path):
    selection = RowSelection(["random"], [0.5])
    labelled = LabelledImages(["a.jpg"], ["dog"], [[1]], row_selection=selection)
    with pytest.raises(InputError, match=r"cannot store how each row was chosen.*Write CSV"):
        jsonl.write(labelled, tmp_path / "labels.jsonl")
