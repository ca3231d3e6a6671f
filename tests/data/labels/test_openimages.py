import csv as standard
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel.data.labels import openimages
from surelabel.errors import DataError, InputError

NAN = pytest.approx(np.nan, nan_ok=True)
A, B, C = "000026e7ee790996", "000595fe6fee6369", "00075905539074f2"
DOG, PUPPY, ANIMAL, EAR, BOX = "/m/0bt9lr", "/m/0pup", "/m/0jbk", "/m/039xj_", "/m/025dyy"
NAMES = {DOG: "Dog", PUPPY: "Puppy", ANIMAL: "Animal", EAR: "Ear, of an animal", BOX: "Box"}
HEADER = "ImageID,Source,LabelName,Confidence"
BOX_HEADER = (
    "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,"
    "IsDepiction,IsInside,XClick1X,XClick2X,XClick3X,XClick4X,XClick1Y,XClick2Y,XClick3Y,XClick4Y"
)
ROWS = [  # in the layout of train-annotations-human-imagelabels.csv
    f"{A},verification,{DOG},1",
    f"{A},crowdsource-verification,{BOX},0",
    f"{B},verification,{ANIMAL},0",
    f"{A},verification,{DOG},1",
]
MACHINE_ROWS = [f"{B},machine,{BOX},0.8", f"{B},machine,{DOG},0.9", f"{C},machine,{EAR},0.5"]
TREE = {
    "LabelName": "/m/0bl9f",
    "Subcategory": [
        {
            "LabelName": ANIMAL,
            "Part": [{"LabelName": EAR}],
            "Subcategory": [{"LabelName": DOG, "Subcategory": [{"LabelName": PUPPY}]}],
        },
        {"LabelName": BOX},
    ],
}


def box(image, label, source="xclick"):
    numbers = "0.02,0.96,0.07,0.8,0,0,0,0,0,0.6,0.02,0.9,0.8,0.07,0.4,0.5,0.8"
    return f"{image},{source},{label},1,{numbers}"


@pytest.fixture
def root(tmp_path):
    for name in (f"{A}.jpg", f"{B}.jpg", f"{C}.png"):
        (tmp_path / name).touch()
    write_names(tmp_path, NAMES)
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    return tmp_path


def write_names(root, names, file="class-descriptions.csv", header=()):
    with (root / file).open("w", newline="", encoding="utf-8") as stream:
        standard.writer(stream).writerows([*header, *names.items()])


def write(root, rows, header=HEADER, name="train-annotations-human-imagelabels.csv"):
    path = root / name
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def read(root, rows, **options):
    return openimages.read(write(root, rows), **options)


def table(labelled):
    """Return the known targets by the name of the image and the label."""
    return {
        (path.rpartition("/")[2][:-4], name): target
        for path, targets, known in zip(
            labelled.paths, labelled.targets, labelled.known, strict=True
        )
        for name, target, is_known in zip(labelled.names, targets, known, strict=True)
        if is_known
    }


def test_verified_rows_are_known_and_all_else_is_unknown(root):
    labelled = read(root, ROWS)
    assert labelled.names == ["Animal", "Box", "Dog"]
    assert labelled.paths == [str(root / f"{name}.jpg") for name in (A, B)]
    assert table(labelled) == {(A, "Dog"): 1, (A, "Box"): 0, (B, "Animal"): 0}
    assert labelled.reading == "Open Images, 1 file of labels"


def test_machine_labels_are_unknown_without_a_limit_and_never_change_verified_labels(root):
    rows = [*ROWS, *MACHINE_ROWS, f"{A},machine,{BOX},0.9"]
    labelled = read(root, rows)
    assert table(labelled) == table(read(root, ROWS))
    assert labelled.paths[-1] == str(root / f"{C}.png")  # an image with only unknown targets
    assert labelled.reading.endswith("; 4 machine labels not used")
    labelled = read(root, rows, machine_labels=0.8)
    assert table(labelled) == table(read(root, ROWS)) | {(B, "Box"): 1, (B, "Dog"): 1}
    assert labelled.reading.endswith("; 1 machine label with a confidence below 0.8 not used")
    with pytest.raises(DataError, match=r"got only machine labels .* add --machine-labels MIN"):
        read(root, MACHINE_ROWS)
    for invalid in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=r"machine_labels must be in \[0, 1\]; got"):
            read(root, MACHINE_ROWS, machine_labels=invalid)


def test_any_box_is_positive_and_the_files_of_a_folder_are_read_together(root):
    write(root, ROWS)
    boxes = [box(B, BOX, "activemil"), box(C, EAR), box(C, EAR)]
    path = write(root, boxes, BOX_HEADER, "oidv6-train-annotations-bbox.csv")
    write(root, [f"{A},train"], "ImageID,Subset", "train-images.csv")
    (root / "bytes.csv").write_bytes(b"\xff\xfe")
    labelled = openimages.read(root)
    expected = table(read(root, ROWS)) | {(B, "Box"): 1, (C, "Ear, of an animal"): 1}
    assert table(labelled) == expected
    assert labelled.reading == "Open Images, 1 file of labels and 1 file of boxes"
    assert table(openimages.read(path)) == {(B, "Box"): 1, (C, "Ear, of an animal"): 1}


def test_the_files_are_told_from_other_tables_by_their_header(root):
    path = write(root, ROWS)
    assert openimages.is_openimages_file(path)
    assert not openimages.is_openimages_file(root / "class-descriptions.csv")
    assert openimages.openimages_files(root) == [path]
    path.unlink()
    with pytest.raises(DataError, match="must be a CSV file of Open Images, or a folder"):
        openimages.read(root)
    with pytest.raises(DataError, match="must be a CSV file of Open Images, or a folder"):
        openimages.read(root / "class-descriptions.csv")


def test_the_hierarchy_expands_positives_up_and_negatives_down_but_not_to_parts(root):
    labelled = read(root, ROWS, hierarchy=root / "tree.json")
    assert table(labelled) == table(read(root, ROWS)) | {
        (A, "Animal"): 1,
        (B, "Dog"): 0,
        (B, "Puppy"): 0,
    }
    assert labelled.reading == "Open Images, 1 file of labels"


def test_machine_labels_are_expanded_where_verified_labels_leave_targets_unknown(root):
    rows = [f"{A},verification,{DOG},0", f"{A},machine,{PUPPY},1", f"{B},machine,{PUPPY},0.7"]
    labelled = read(root, rows, hierarchy=root / "tree.json", machine_labels=0.5)
    assert table(labelled) == {(A, "Dog"): 0, (A, "Puppy"): 0} | {
        (B, label): 1 for label in ("Puppy", "Dog", "Animal")
    }


def test_labels_that_contradict_each_other_by_the_hierarchy_are_unknown_and_counted(root):
    rows = [f"{A},verification,{PUPPY},1", f"{A},verification,{ANIMAL},0", f"{A},human,{BOX},1"]
    labelled = read(root, rows, hierarchy=root / "tree.json")
    assert table(labelled) == {(A, "Box"): 1}
    assert labelled.names == ["Animal", "Box", "Puppy"]
    assert "; 3 contradictory targets of the hierarchy unknown, such as " in labelled.reading
    assert labelled.reading.endswith(f" of {A}")


def test_the_root_is_a_label_only_if_it_has_a_name(root):
    write_names(root, NAMES | {"/m/0bl9f": "Entity"})
    labelled = read(root, ROWS[:1], hierarchy=root / "tree.json")
    assert table(labelled) == {(A, label): 1 for label in ("Dog", "Animal", "Entity")}


def test_several_mids_with_one_name_are_one_label(root):
    write_names(root, {DOG: "Crane", BOX: "Crane", ANIMAL: "Animal"})
    rows = [
        *(f"{A},verification,{label},0" for label in (DOG, BOX)),
        *(f"{B},verification,{label},{value}" for label, value in ((DOG, 0), (BOX, 1))),
        f"{C},verification,{DOG},0",
    ]
    labelled = read(root, rows)
    assert table(labelled) == {(A, "Crane"): 0, (B, "Crane"): 1}
    assert labelled.reading.endswith("; 1 name of several MIDs merged")


def test_names_order_the_labels_and_may_omit_only_labels_of_the_hierarchy(root):
    options = {"hierarchy": root / "tree.json"}
    labelled = read(root, ROWS, names=["Dog", "Cat", "Box", "Animal"], **options)
    assert labelled.names == ["Dog", "Cat", "Box", "Animal"]
    known = {key: value for key, value in table(read(root, ROWS, **options)).items()}
    del known[B, "Puppy"]
    assert table(labelled) == known
    with pytest.raises(DataError, match="got 2 other labels: 'Animal', 'Box'"):
        read(root, ROWS, names=["Dog"], **options)


def test_names_of_mids_are_found_beside_the_file_or_given(root):
    (root / "class-descriptions.csv").unlink()
    with pytest.raises(DataError, match=rf"imagelabels\.csv, line 2: the MID '{DOG}' must have a"):
        read(root, ROWS)
    other = root / "names.csv"
    write_names(root, NAMES, "names.csv")
    assert read(root, ROWS, class_descriptions=other).names == ["Animal", "Box", "Dog"]
    write_names(root, NAMES | {DOG: "dog"}, "oidv7-class-descriptions-boxable.csv")
    assert read(root, ROWS).names == ["Animal", "Box", "dog"]
    header = [("LabelName", "DisplayName")]
    write_names(root, NAMES | {DOG: "a dog"}, "oidv7-class-descriptions.csv", header)
    assert read(root, ROWS).names == ["Animal", "Box", "a dog"]  # of all classes
    write_names(root, NAMES)
    with pytest.raises(DataError, match=r"one file of class descriptions; got class-desc.* and oi"):
        read(root, ROWS)


def test_a_label_that_is_no_mid_needs_no_name(root):
    assert table(read(root, [f"{A},verification,hot dog,1"])) == {(A, "hot dog"): 1}


def test_a_table_that_is_too_large_for_the_memory_is_refused(root, monkeypatch):
    monkeypatch.setattr(openimages, "_MAX_TARGETS", 5)
    with pytest.raises(DataError, match="at most 5 targets; got 2 images with 3 labels"):
        read(root, ROWS)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, f"{A},verification,{DOG}"], "line 6: expected 4 columns as in the header; got 3"),
        ([f"{A},verified,{DOG},1"], "line 2: expected a Source of verification, .* got 'verified'"),
        ([*ROWS, f"{A},verification,{DOG},0.5"], "line 6: expected the Confidence 0 or 1 .* '0.5'"),
        ([*ROWS, "", f"{A},human,{DOG},yes"], "line 7: expected the Confidence 0 or 1 .* 'yes'"),
        ([f"{A},human,{DOG},"], "line 2: expected the Confidence 0 or 1 .* got ''"),
        ([f"{A},machine,{DOG},1.5"], r"line 2: expected a Confidence in \[0, 1\]; got '1.5'"),
        ([f"{A},machine,{DOG},nan"], r"line 2: expected a Confidence in \[0, 1\]; got 'nan'"),
        ([ROWS[0], f"{A},human,,1"], "line 3: expected a LabelName, such as .* got ''"),
        ([ROWS[0], f",human,{DOG},1"], "line 3: expected an ImageID, .* got ''"),
        ([f"../{A},human,{DOG},1"], r"line 2: expected an ImageID, .* got '\.\./0000"),
        ([f"/etc/passwd,human,{DOG},1"], "line 2: expected an ImageID, .* got '/etc/passwd'"),
        ([f"C:x,human,{DOG},1"], "line 2: expected an ImageID, .* got 'C:x'"),
        (
            [*ROWS, f"{A},crowdsource-verification,{DOG},0"],
            rf"line 2: a label must be either positive or negative .* got '{DOG}' positive for the "
            rf"image '{A}', but negative in .*imagelabels\.csv, line 6",
        ),
        ([*ROWS, f"{A},human,/m/0zz,1"], "line 6: the MID '/m/0zz' must have a name in .*; got no"),
        ([f'{A},human,"{DOG},1'], "unexpected end of data"),
        ([], "must contain a verified label or a box; got no row\\. Give another file\\.$"),
    ],
)
def test_an_invalid_row_is_refused_with_its_line(root, rows, message):
    with pytest.raises(DataError, match=rf"imagelabels\.csv.*{message}"):
        read(root, rows)


def test_a_box_of_a_negative_label_is_refused_with_both_files(root):
    write(root, ROWS)
    write(root, [box(A, BOX)], BOX_HEADER, "train-annotations-bbox.csv")
    match = r"bbox\.csv, line 2: a label must be .* negative in .*imagelabels\.csv, line 3\. Remove"
    with pytest.raises(DataError, match=match):
        openimages.read(root)


def test_a_repeated_column_and_text_in_another_encoding_are_refused(root):
    with pytest.raises(DataError, match="line 1: each column must occur once; got Source twice"):
        openimages.read(write(root, [], f"{HEADER},Source"))
    path = write(root, ROWS)
    path.write_bytes(path.read_bytes() + f"{A},human,caf".encode() + b"\xe9,1\n")
    with pytest.raises(DataError, match="line 6 contains bytes that are not UTF-8"):
        openimages.read(path)


def test_quotes_a_byte_order_mark_and_line_ends_of_windows_are_read(root):
    path = root / "labels.csv"
    lines = [HEADER, *(",".join(f'"{cell}"' for cell in row.split(",")) for row in ROWS)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert table(openimages.read(path)) == table(read(root, ROWS))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([f"{DOG},Dog", BOX], f"line 2: expected a MID and a name, .* got '{BOX}'"),
        ([f"{DOG},Dog", f"{BOX}, "], "line 2: expected a MID and a name"),
        ([f"{DOG},Dog", "Box,Box"], "line 2: expected a MID and a name"),
        ([f"{BOX},Lemon, lime"], "line 1: expected a MID and a name"),
        (
            ["id,name", f"{DOG},Dog", f"{DOG},Hound"],
            f"line 3: a MID must have one name; got '{DOG}' with 'Dog' and 'Hound'",
        ),
    ],
)
def test_invalid_class_descriptions_are_refused_with_their_line(root, lines, message):
    (root / "class-descriptions.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=rf"class-descriptions\.csv, {message}"):
        read(root, ROWS)


def test_a_label_of_the_hierarchy_without_a_name_is_refused(root):
    write_names(root, {label: name for label, name in NAMES.items() if label != PUPPY})
    with pytest.raises(DataError, match=rf"tree\.json: the MID '{PUPPY}' must have a name in"):
        read(root, ROWS, hierarchy=root / "tree.json")


ANCESTORS = {DOG: [ANIMAL], PUPPY: [DOG, ANIMAL], ANIMAL: [], EAR: [], BOX: []}
CELLS = st.tuples(st.sampled_from([A, B, C]), st.sampled_from(list(NAMES)))


@settings(max_examples=60)
@given(st.dictionaries(CELLS, st.sampled_from(["0", "1", "0.3", "0.7", "box"]), min_size=1))
def test_generated_files_agree_with_the_rules_cell_by_cell(tmp_path_factory, values):
    root = tmp_path_factory.getbasetemp() / "openimages"
    root.mkdir(exist_ok=True)
    for name in (A, B, C):
        (root / f"{name}.jpg").touch()
    write_names(root, NAMES)
    (root / "tree.json").write_text(json.dumps(TREE))
    source = {"0": "verification", "1": "verification", "0.3": "machine", "0.7": "machine"}
    items = [(*cell, value) for cell, value in values.items()]
    write(root, [f"{i},{source[v]},{label},{v}" for i, label, v in items if v != "box"])
    write(root, [box(i, label) for i, label, v in items if v == "box"], BOX_HEADER, "boxes.csv")
    yes = {(i, up) for i, n, v in items if v in ("1", "box") for up in (n, *ANCESTORS[n])}
    no = {(i, n) for i, up, v in items if v == "0" for n in NAMES if up in (n, *ANCESTORS[n])}
    machine = {(i, n) for i, n, v in items if v == "0.7"} - no
    yes_by_machine = {(i, up) for i, n in machine for up in (n, *ANCESTORS[n])} - no
    if not any(value != "0.3" for value in values.values()):
        return
    labelled = openimages.read(root, hierarchy=root / "tree.json", machine_labels=0.5)
    expected = dict.fromkeys(no - yes, 0) | dict.fromkeys((yes - no) | yes_by_machine, 1)
    assert table(labelled) == {(i, NAMES[label]): value for (i, label), value in expected.items()}
