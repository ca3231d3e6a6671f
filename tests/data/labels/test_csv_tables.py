"""Tables as pandas and spreadsheets write them: read, or refused with the options to type."""

import re
from ast import literal_eval

import numpy as np
import pytest

from surelabel.data import describe_labels, read_labels
from surelabel.errors import DataError, InputError

NAN = None


def read(folder, text, **options):
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return read_labels(folder / "t.csv", **options)


def cells(labelled):
    return [
        [target if is_known else NAN for target, is_known in zip(*row, strict=True)]
        for row in zip(labelled.targets.tolist(), labelled.known.tolist(), strict=True)
    ]


READ = {
    "1 an unnamed index column": (",path,dog,cat\n0,a.jpg,1,0\n1,b.jpg,0,1\n", {}),
    "1 an index column that was saved twice": (
        "Unnamed: 0,Unnamed: 0.1,path,dog,cat\n0,0,a.jpg,1,0\n1,1,b.jpg,0,1\n",
        {},
    ),
    "2 True and False": ("path,dog,cat\na.jpg,True,FALSE\nb.jpg,false,true\n", {}),
    "3 fractions": ("path,dog,cat\na.jpg,1.0,0.0\nb.jpg,0.0,1.0\n", {}),
    "5 -1 is negative": (
        "path,dog,cat\na.jpg,1,-1\nb.jpg,-1,1.0\n",
        {"minus_one": "negative"},
    ),
    "6 an image column": ("image,dog,cat\na.jpg,1,0\nb.jpg,0,1\n", {}),
    "6 a filename column at the end": ("dog,cat,Filename\n1,0,a.jpg\n0,1,b.jpg\n", {}),
    "6 another image column": (
        "photo,dog,cat\na.jpg,1,0\nb.jpg,0,1\n",
        {"image_column": "photo"},
    ),
    "7 extra columns": (
        "path,dog,split,cat,width\na.jpg,1,train,0,640\nb.jpg,0,val,1,480\n",
        {"ignore": ["split", "width"]},
    ),
    "8 names without suffix": ("path,dog,cat\na,1,0\nb,0,1\n", {}),
    "9 labels and commas": ('path,labels\na.jpg,"dog"\nb.jpg,cat\n', {"names": ["dog", "cat"]}),
    "10 semicolons and decimal commas": ("path;dog;cat\na.jpg;1,0;0,0\nb.jpg;0,0;1,0\n", {}),
    "10 tabs": ("path\tdog\tcat\na.jpg\t1\t0\nb.jpg\t0\t1\n", {}),
    "11 rows that agree": (
        "path,dog,cat\na.jpg,1,0\nb.jpg,0,1\na.jpg,1,\nb.jpg,0,1\n",
        {},
    ),
}


@pytest.mark.parametrize("text", READ)
def test_a_variant_is_read_as_the_plain_table(folder, text):
    content, options = READ[text]
    labelled = read(folder, content, **options)
    assert [path.rpartition("/")[2] for path in labelled.paths] == ["a.jpg", "b.jpg"]
    assert (labelled.names, cells(labelled)) == (["dog", "cat"], [[1, 0], [0, 1]])


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "NA", "N/A", "<NA>", "null", "None", '"NA"'])
def test_missing_cells_are_unknown(folder, missing):
    labelled = read(folder, f"path,dog,cat\na.jpg,{missing},0\nb.jpg,1.0,{missing}\n")
    assert cells(labelled) == [[NAN, 0], [1, NAN]]


VOC = "name,cow,dog\na,-1,0\nb,1,-1\n"


@pytest.mark.parametrize(
    ("minus_one", "zero", "expected"),
    [
        ("negative", "unknown", [[0, NAN], [1, 0]]),
        ("negative", "negative", [[0, 0], [1, 0]]),
        ("unknown", None, [[NAN, 0], [1, NAN]]),
        ("unknown", "negative", [[NAN, 0], [1, NAN]]),
    ],
)
def test_the_list_of_voc_is_read_by_its_readings(folder, minus_one, zero, expected):
    labelled = read(folder, VOC, image_column="name", minus_one=minus_one, zero=zero)
    assert cells(labelled) == expected


REFUSED = {
    "5 -1 without a reading": (
        VOC,
        {"image_column": "name"},
        "line 2: the target of 'cow' is -1.*Add --minus-one negative .* or --minus-one unknown ",
    ),
    "5 0 beside a negative -1": (
        VOC,
        {"image_column": "name", "minus_one": "negative"},
        "line 2: the target of 'dog' is 0, .*Add --zero unknown .* or --zero negative ",
    ),
    "6 no image column": (
        VOC,
        {},
        r"must contain a column of image.*add --image-column name \(in Python image_column='n",
    ),
    "6 an index of paths": (",dog,cat\na.jpg,1,0\n", {}, r"add --image-column '' "),
    "6 two image columns": (
        "image,file,dog\na.jpg,x,1\n",
        {},
        "Add --image-column image .*--ignore file ",
    ),
    "7 extra columns": (
        "path,dog,split,width\na.jpg,1,train,640\nb.jpg,0,val,1\n",
        {},
        r"line 2: the target of 'split' .*--ignore split --ignore width \(in Python ignore=\['spl",
    ),
    "7 a column without a name": ("path,dog,\na.jpg,1,x\n", {}, "got '' .*add --ignore '' "),
    "7 two extra columns": (
        "path,dog,image size,width\na.jpg,1,2 MB,640\nb.jpg,0,1 MB,480\n",
        {},
        "add --ignore 'image size' --ignore width ",
    ),
    "7 a wrong cell": (
        "path,dog,cat\na.jpg,1,0\nb.jpg,0,O\na.jpg,,1\n",
        {},
        "line 3: the target of 'cat' must be in .*got 'O'. Correct that line",
    ),
    "7 labels beside other columns": (
        "path,split,tags\na.jpg,train,dog\n",
        {},
        "the column 'tags' contains lists of labels.*Add --ignore split ",
    ),
    "8 a name of no file": ("path,dog\nc,1\n", {}, "1 of 1 missing: .*t.*/c'"),
    "9 two separators": (
        'path,labels\na.jpg,"dog, cat"\nb.jpg,owl;cow\n',
        {},
        r"',' on line 2 .*';' on line 3 .*Add --separator comma .* or --separator semicolon ",
    ),
    "9 a missing value": (
        "path,labels\na.jpg,dog\nb.jpg,NA\n",
        {},
        'line 3: \'NA\' is not a valid label .*leave the cell empty.*write """NA""" in the file',
    ),
    "9 an open quote": (
        'path,labels\na.jpg,"""dog, cat"\n',
        {},
        "line 2: .*must end with a double quote",
    ),
    "9 one column that is no list": (
        "path,animals\na.jpg,dog\n",
        {},
        "got 'dog'. Correct that line, or rename the column to .labels",
    ),
    "12 targets as words beside extra columns": (
        "path,split,dog\na.jpg,train,yes\nb.jpg,val,no\n",
        {},
        "line 2: the target of 'dog' .*got 'yes'. Targets are 1, 0, True or False: replace yes",
    ),
    "12 targets as words in one column": (
        "path,dog\na.jpg, No\nb.jpg,yes\n",
        {},
        r"got ' No'\. Targets are .*in pandas with table\['dog'\]\.map\(\{'yes': 1, 'no': 0\}\)\.",
    ),
    "13 integers instead of names": ("path,dog\n0,1\n17,0\n", {}, "may have lost leading zeros"),
    "11 rows that contradict": (
        "path,dog,cat\na.jpg,1,0\nb.jpg,0,1\na.jpg,1,1\n",
        {},
        "'a.jpg' has 0 for 'cat' on line 2, but 1 on line 4",
    ),
    "a label with a tab": ("path,d\tog,cat\na.jpg,1,0\n", {}, r"'d\\tog' on line 1, column 2"),
    "a listed label with a line break": (
        'path,tags\na.jpg,cat\nb.jpg,"dog; o\nwl"\n',
        {},
        r"line 3: a label must not contain a line break.*got 'o\\nwl'",
    ),
}


@pytest.mark.parametrize("variant", REFUSED)
def test_another_variant_is_refused_with_what_to_type(folder, variant):
    content, options, message = REFUSED[variant]
    with pytest.raises((DataError, InputError), match=message) as caught:
        read(folder, content, **options)
    assert "\n" not in str(caught.value)


def test_the_proposed_options_are_accepted(folder):
    """Type what each message proposes, until the table is read."""
    content = "name,cow,dog,split\na,-1,0,train\nb,1,-1,train\n"
    options = {}
    for expected in ("image_column", "ignore", "minus_one", "zero"):
        with pytest.raises(DataError, match=f"--{expected.replace('_', '-')} ") as caught:
            read(folder, content, **options)
        name, value = re.findall(r"\(in Python (\w+)=(.*?)\)", str(caught.value))[0]
        options[name] = literal_eval(value)
        assert name == expected
    assert cells(read(folder, content, **options)) == [[0, NAN], [1, 0]]


def test_a_name_of_two_files_is_refused_with_both(folder):
    (folder / "a.png").touch()
    with pytest.raises(DataError, match=r"'a' matches 'a\.jpg' and 'a\.png' in .*Write the suffix"):
        read(folder, "path,dog\na,1\n")
    assert len(read(folder, "path,dog\na.png,1\n")) == 1


@pytest.mark.parametrize(
    ("cell", "options", "labels"),
    [
        ('"dog, hot dog"', {}, ["dog", "hot dog"]),
        ("dog;hot dog", {}, ["dog", "hot dog"]),
        ("dog|hot dog", {}, ["dog", "hot dog"]),
        ("hot dog", {}, ["hot dog"]),
        ("hot dog", {"separator": "space"}, ["dog", "hot"]),
        ('"hot  dog"', {"separator": "space"}, ["dog", "hot"]),
        ('"""salt, pepper"", dog"', {}, ["dog", "salt, pepper"]),
        ('"""salt, pepper""; dog"', {}, ["dog", "salt, pepper"]),
        ('"salt, pepper; dog"', {"separator": "semicolon"}, ["dog", "salt, pepper"]),
        ('"sofa|couch, dog"', {"separator": "comma"}, ["dog", "sofa|couch"]),
        ('"tench, Tinca tinca"', {"separator": "pipe"}, ["tench, Tinca tinca"]),
        ('"12"" record; dog"', {}, ['12" record', "dog"]),
        ("\"['hot dog', 'a, b|c']\"", {}, ["a, b|c", "hot dog"]),
        ("\u200fשלום\u200f; dog", {}, ["dog", "\u200fשלום\u200f"]),
    ],
)
def test_one_column_of_labels_is_separated(folder, cell, options, labels):
    assert read(folder, f"image,tags\na.jpg,{cell}\n", **options).names == labels


def test_a_column_called_label_with_targets_is_a_label_beside_others(folder):
    assert read(folder, "path,label,dog\na.jpg,1,0\n").names == ["label", "dog"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": "dash"}, "separator must be one of comma, semicolon, pipe, space; got 'das"),
        ({"minus_one": "positive"}, "minus_one must be one of negative, unknown; got 'positive'"),
        (
            {"ignore": "split"},
            r"ignore must be a list of columns; got the string 'split'. Write \[",
        ),
        ({"ignore": ["spilt"]}, "ignore must be a column of .*got 'spilt'.*Did you mean \"split\""),
        ({"ignore": ["dog,split"]}, "Repeat the option: --ignore dog --ignore split"),
        ({"image_column": "photo"}, "image_column must be a column of .*got 'photo'"),
        ({"image_column": "dog", "ignore": ["dog"]}, "image column must not be ignored"),
    ],
)
def test_invalid_options_are_refused(folder, options, message):
    with pytest.raises(InputError, match=message):
        read(folder, "path,dog,split\na.jpg,1,train\n", **options)


def test_options_of_tables_are_refused_for_other_formats(folder):
    (folder / "t.jsonl").write_text('{"path": "a.jpg", "labels": ["dog"]}')
    with pytest.raises(InputError, match=r"zero can be given only for csv, .*format jsonl"):
        read_labels(folder / "t.jsonl", zero="unknown")


def test_what_was_read_is_described_in_two_lines(folder):
    text = ",file,dog,cat,w\n0,a.jpg,1,0.5,9\n1,b.jpg,-1,,9\n2,a.jpg,1,,9\n"
    labelled = read(folder, text, ignore=["w"], minus_one="negative")
    assert describe_labels(labelled) == (
        "images in 'file'; one column per label, where -1 is negative; ignored: 'w'; "
        "skipped as row numbers: the first column, which has no name; 1 repeated row merged; "
        "2 labels: dog, cat.",
        "2 images; targets: 1 positive, 1 negative, 1 unknown, 1 between 0 and 1.",
    )
    listed = read(folder, "image;tags\na.jpg;dog, cat\nb.jpg;\na.jpg;owl\n")
    assert describe_labels(listed)[0] == (
        "images in 'image'; labels separated by ',' in 'tags'; 1 repeated row merged; "
        "3 labels: cat, dog, owl."
    )
    assert cells(listed) == [[1, 1, 1], [0, 0, 0]]


def test_the_description_quotes_commas_and_lists_an_ignored_column_once(folder):
    text = 'Unnamed: 0,path,"salt, pepper",dog,w\n0,a.jpg,1,0,x\n'
    first_line = "images in 'path'; one column per label; {}; 2 labels: 'salt, pepper', dog."
    labelled = read(folder, text, ignore=["w", "w", "Unnamed: 0"])
    assert describe_labels(labelled)[0] == first_line.format("ignored: 'w', 'Unnamed: 0'")
    labelled = read(folder, text, ignore=["w"])
    skipped = "ignored: 'w'; skipped as row numbers: column 'Unnamed: 0'"
    assert describe_labels(labelled)[0] == first_line.format(skipped)


def test_the_index_of_a_data_frame_is_described_as_skipped(folder):
    labelled = read(folder, "path,dog,__index_level_0__\na.jpg,1,7\n")
    assert describe_labels(labelled) == (
        "images in 'path'; one column per label; skipped as row numbers: the index; 1 label: dog.",
        "1 image; targets: 1 positive, 0 negative, 0 unknown.",
    )


def test_many_distinct_fractions_are_read_exactly(folder):
    fractions = np.random.default_rng(0).random(2000).round(6)
    rows = "".join(f"a.jpg,{f!r}\n" for f in fractions.tolist())
    with pytest.raises(DataError, match="must have equal targets"):
        read(folder, f"path,dog\n{rows}")
    for row in range(len(fractions)):
        (folder / f"{row}.jpg").touch()
    rows = "".join(f"{row}.jpg,{f!r}\n" for row, f in enumerate(fractions.tolist()))
    assert read(folder, f"path,dog\n{rows}").targets[:, 0].tolist() == fractions.tolist()
    with pytest.raises(DataError, match=r"line 2001: .*got '1\.5'"):
        read(folder, f"path,dog\n{rows[: rows.rindex(',')]},1.5\n")
