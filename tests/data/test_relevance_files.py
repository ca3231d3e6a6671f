import json
import os

import numpy as np
import pytest

from surelabel.data import read_graded_relevance, read_relevance
from surelabel.errors import DataError, InputError
from surelabel.records import Pairs

PAIRS = Pairs(["a.jpg", "b.jpg"], ["a dog", "a cat", "a pet"], [0, 1, 1], [7, 3], [30, 31, "x"])


def saved(folder, value):
    path = folder / "relevance.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_ids_are_integers_in_the_order_of_the_file(tmp_path):
    path = saved(tmp_path, {"373119": [560256, 646721], "0": [3], str(10**18 - 1): [10**18 - 1]})
    relevance = read_relevance(path)
    assert list(relevance.items()) == [
        (373119, [560256, 646721]),
        (0, [3]),
        (10**18 - 1, [10**18 - 1]),
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{", "must be a JSON file with the relevant ids of each query id"),
        ("[[1, 2]]", r"must be one JSON object .*; got \[\[1, 2\]\]"),
        ("{}", "must be one JSON object"),
        ('{"1": [2], "1": [3]}', "an object that contains the key '1' twice"),
        ({"01": [2]}, "each id must be an integer in .*; got '01'"),
        ({"-1": [2]}, "each id must be an integer in .*; got '-1'"),
        ({"1.0": [2]}, "each id must be an integer"),
        ({"²": [2]}, "each id must be an integer"),
        ({"": [2]}, "each id must be an integer in .*; got ''"),
        ({"1": []}, r"the relevant ids of '1' must be a non-empty list .*; got \[\]"),
        ({"1": 2}, "the relevant ids of '1' must be a non-empty list"),
        ({"1": "2"}, "the relevant ids of '1' must be a non-empty list"),
        ({"1": ["2"]}, "the relevant ids of '1' must be a non-empty list"),
        ({"1": [2.0]}, "the relevant ids of '1' must be a non-empty list"),
        ({"1": [True]}, "the relevant ids of '1' must be a non-empty list"),
        ({"1": [10**18]}, "the relevant ids of '1' must be a non-empty list"),
        ({str(10**18): [1]}, "each id must be an integer in .0, 10000"),
        ({"1": [-2]}, "the relevant ids of '1' must be a non-empty list"),
        ({"1": [2, 3, 2]}, r"distinct integers .*; got \[2, 3, 2\]"),
        ('{"1": [NaN]}', "the relevant ids of '1' must be a non-empty list"),
        ('{"1": [1' + "0" * 5000 + "]}", "a number with more than 4300 digits"),
        ('{"1' + "0" * 5000 + '": [1]}', "each id must be an integer"),
    ],
)
def test_a_file_that_is_no_relevance_is_refused_on_one_line(tmp_path, value, message):
    with pytest.raises(DataError, match=rf"relevance\.json.*{message}") as caught:
        read_relevance(saved(tmp_path, value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(DataError, match="got a named pipe"):
        read_relevance(tmp_path / "pipe.json")


def graded(folder, text):
    path = folder / "graded.csv"
    path.write_text(text)
    return read_graded_relevance(path, PAIRS)


def test_grades_belong_to_the_rows_of_the_ids_and_zero_is_not_listed(tmp_path):
    text = "image_id,caption_id,relevance\n3,x,1\n\n7,30,1.0\n3, 30 ,0.25\n7,31,0\n"
    relevance = graded(tmp_path, text)
    grades = np.zeros((2, 3))
    grades[relevance.image_rows, relevance.caption_rows] = relevance.grades
    assert grades.tolist() == [[1, 0, 0], [0.25, 0, 1]]
    assert len(relevance) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line must be image_id,caption_id,relevance; got ''"),
        ("image,caption,relevance\n", "the first line must be image_id,caption_id,relevance"),
        ("image_id,caption_id,relevance\n", "at least one relevance above 0; got none"),
        ("image_id,caption_id,relevance\n7,30,0\n", "at least one relevance above 0; got none"),
        (
            "image_id,caption_id,relevance\n8,30,1\n",
            "line 2: each image id must be in the pairs; got '8'",
        ),
        (
            "image_id,caption_id,relevance\n7,y,1\n",
            "line 2: each caption id must be in the pairs; got 'y'",
        ),
        (
            "image_id,caption_id,relevance\n7,30,1\n7,30,1\n",
            "line 3: each pair .* must be in only one line",
        ),
        ("image_id,caption_id,relevance\n7,30,3\n", r"line 2: .*in \[0, 1\]; got '7,30,3'"),
        ("image_id,caption_id,relevance\n7,30,nan\n", r"line 2: .*in \[0, 1\]; got '7,30,nan'"),
        ("image_id,caption_id,relevance\n7,30,-1e999\n", r"line 2: .*in \[0, 1\]"),
        ("image_id,caption_id,relevance\n7,30,x\n", r"line 2: .*in \[0, 1\]; got '7,30,x'"),
        ("image_id,caption_id,relevance\n7,30\n", r"line 2: .*in \[0, 1\]; got '7,30'"),
    ],
)
def test_a_table_with_an_invalid_line_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=rf"graded\.csv.*{message}"):
        graded(tmp_path, text)


@pytest.mark.parametrize("kind", ["image", "caption"])
def test_grades_need_ids(tmp_path, kind):
    ids = {"image_ids": [1], "caption_ids": [2]} | {f"{kind}_ids": None}
    pairs = Pairs(["a.jpg"], ["a dog"], [0], **ids)
    with pytest.raises(
        InputError, match=f"requires the {kind} ids of the pairs; got pairs without"
    ):
        read_graded_relevance(tmp_path / "graded.csv", pairs)
