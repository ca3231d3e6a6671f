import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.data.vqa_answers import answer_scores, normalize_answer, read_vqa_answers
from surelabel.errors import DataError, InputError

QUESTIONS = {
    "data_subtype": "val2014",
    "questions": [
        {"question_id": 10, "image_id": 42, "question": "Is there a lion?"},
        {"question_id": 11, "image_id": 7, "question": "How many cars?"},
    ],
}
ANSWERS = {10: ["yes"] * 8 + ["No", "no."], 11: ["2"] * 5 + ["two"] * 4 + ["3"]}


def annotations(answers):
    return {
        "annotations": [
            {"question_id": key, "answers": [{"answer": text} for text in texts]}
            for key, texts in answers.items()
        ]
    }


@pytest.fixture
def read(tmp_path):
    def read_json(questions=QUESTIONS, answers=None, **options):
        (tmp_path / "q.json").write_text(json.dumps(questions))
        (tmp_path / "a.json").write_text(json.dumps(answers or annotations(ANSWERS)))
        return read_vqa_answers(tmp_path / "q.json", tmp_path / "a.json", **options)

    return read_json


def test_answers_are_labels_with_their_scores(read, tmp_path):
    data = read(min_count=1)
    assert data.paths == [
        str(tmp_path / name)
        for name in ("COCO_val2014_000000000042.jpg", "COCO_val2014_000000000007.jpg")
    ]
    assert data.questions == ["Is there a lion?", "How many cars?"]
    assert data.names == ["yes", "2"]
    assert data.targets.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    data = read(names=["no", "two", "3"], images_root="images")
    assert data.paths[0] == "images/COCO_val2014_000000000042.jpg"
    assert data.targets.tolist() == [[0.6, 0.0, 0.0], [0.0, 1.0, 0.3]]


def test_only_frequent_answers_have_columns(read):
    questions = [{"question_id": i, "image_id": i, "question": "?"} for i in range(5)]
    answers = annotations({i: ["b" if i < 3 else "c"] * 10 for i in range(5)})
    data = read({**QUESTIONS, "questions": questions}, answers, min_count=3)
    assert data.names == ["b"]
    data = read({**QUESTIONS, "questions": questions}, answers, min_count=2)
    assert data.names == ["b", "c"]
    with pytest.raises(
        InputError, match=r"most frequent one of 4 questions; got none in .*a\.json"
    ):
        read({**QUESTIONS, "questions": questions}, answers, min_count=4)


@given(st.lists(st.sampled_from(["x", "y", "z"]), min_size=2, max_size=10))
def test_the_score_is_the_mean_over_all_subsets_without_one_person(answers):
    subsets = list(combinations(answers, len(answers) - 1))
    expected = {
        answer: sum(min(1, subset.count(answer) / 3) for subset in subsets) / len(subsets)
        for answer in answers
    }
    assert answer_scores(answers) == pytest.approx(expected)


def test_scores_of_ten_people():
    for count, score in enumerate([0.3, 0.6, 0.9, 1.0, 1.0], start=1):
        assert answer_scores(["a b"] * count + ["c"] * (10 - count))["b"] == score


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yes.", "yes"),
        ("the red  car", "red car"),
        ("ten", "10"),
        ("10:30", "10:30"),
        ("2.5", "2.5"),
        ("don't", "don't"),
        ("black & white", "black & white"),
        ("?", ""),
    ],
)
def test_answers_are_normalized(answer, expected):
    assert normalize_answer(answer) == expected
    assert normalize_answer(expected) == expected


QUESTION = QUESTIONS["questions"][0]


@pytest.mark.parametrize(
    ("questions", "answers", "message"),
    [
        ([], None, r"q\.json must be a JSON object with a list of objects 'questions'; got \[\]"),
        ({**QUESTIONS, "questions": [1]}, None, "must be a JSON object with a list"),
        ({**QUESTIONS, "questions": []}, None, r"q\.json must contain at least one question"),
        ({**QUESTIONS, "data_subtype": "../x"}, None, r"data_subtype must be a name .*'\.\./x'"),
        ({"questions": [QUESTION]}, None, "data_subtype must be a name such as val2014; got None"),
        (
            {**QUESTIONS, "questions": [{**QUESTION, "question_id": "10"}]},
            None,
            r"q\.json, question 0: question_id must be a whole number .*got '10'",
        ),
        (
            {**QUESTIONS, "questions": [{**QUESTION, "image_id": -1}]},
            None,
            r"question 0: image_id must be a whole number",
        ),
        (
            {**QUESTIONS, "questions": [{**QUESTION, "question": " "}]},
            None,
            r"question 0: question must be a text; got ' '",
        ),
        (
            {**QUESTIONS, "questions": [QUESTION, QUESTION]},
            None,
            r"question 1: each question must occur once .*got a second question of the id 10",
        ),
        (QUESTIONS, annotations({10: ["yes"]}), r"question 1: .*got no annotation for the id 11"),
        (QUESTIONS, {"annotations": {}}, r"a\.json must be a JSON object with a list of objects"),
        (
            QUESTIONS,
            annotations({10: []}),
            r"a\.json, annotation 0: answers must be a list of objects .*got \[\]",
        ),
        (QUESTIONS, annotations({10: [3]}), r"annotation 0: answers must be a list of objects"),
        (
            QUESTIONS,
            {"annotations": annotations(ANSWERS)["annotations"][:1] * 2},
            r"annotation 1: each question must have one annotation; got a second one",
        ),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(read, questions, answers, message):
    with pytest.raises(DataError, match=message):
        read(questions, answers, min_count=1)
