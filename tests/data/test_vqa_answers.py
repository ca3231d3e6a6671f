import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.data.vqa_answers import (
    answer_scores,
    normalize_answer,
    read_vqa_answers,
    score_question_answers,
)
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
        InputError, match=r"answers in .*a\.json .*frequent one of 4 questions; got none among 5"
    ):
        read({**QUESTIONS, "questions": questions}, answers, min_count=4)


def test_types_of_answers_are_read(read):
    values = annotations(ANSWERS)["annotations"]
    assert read(min_count=1).answer_types == []
    typed = [{**value, "answer_type": kind} for value, kind in zip(values, "ab", strict=True)]
    assert read(answers={"annotations": typed[::-1]}, min_count=1).answer_types == ["a", "b"]


def test_annotations_of_other_questions_are_ignored(read):
    data = read(answers=annotations({**ANSWERS, 12: ["no"] * 10}), min_count=1)
    assert (len(data), data.names) == (2, ["yes", "2"])


def test_answers_in_python_are_scored_like_those_of_a_file(read):
    data = read(min_count=1)
    same = score_question_answers(
        data.paths, data.questions, list(ANSWERS.values()), min_count=1, answer_types=["a", "b"]
    )
    assert same.names == data.names
    assert same.targets.tolist() == data.targets.tolist()
    assert same.answer_types == ["a", "b"]


@pytest.mark.parametrize(
    ("answers", "names", "message"),
    [
        ([["yes"]], ["yes"], "must have a list of answers; got 2 questions and 1 list"),
        ([["yes"], []], ["Two", "2"], "must differ after normalization; got 'Two' and '2'"),
        ([["yes"], []], ["?"], r"Each answer in names must have a word; got '\?'"),
        ([["yes"], []], [], r"names must be a list with at least one answer; got \[\]"),
        ([["yes"], []], "yes", "names must be a list with at least one answer; got 'yes'"),
        ([[], []], None, "the most frequent one of 9 questions; got none among 2 questions"),
    ],
)
def test_answers_that_fit_no_question_or_column_are_refused(answers, names, message):
    with pytest.raises(InputError, match=message):
        score_question_answers(["1.jpg"] * 2, ["?"] * 2, answers, names=names)


def test_an_answer_must_be_frequent_at_least_once():
    with pytest.raises(InputError, match="min_count must be at least 1; got 0"):
        score_question_answers(["1.jpg"], ["?"], [["yes"]], min_count=0)


def test_questions_without_annotations_have_unknown_answers(read, tmp_path):
    expected = read(min_count=1)
    data = read_vqa_answers(tmp_path / "q.json")
    assert (data.paths, data.questions) == (expected.paths, expected.questions)
    assert (data.names, data.targets.shape, data.answer_types) == ((), (2, 0), ())


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
        ("None", "0"),
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
        ([], None, r"q\.json must be a JSON object with the list questions; got \[\]"),
        ({**QUESTIONS, "questions": [QUESTION, 1]}, None, "question 1: each question must be an o"),
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
            r"question 1: each question must occur once; got a second question of the id 10",
        ),
        (QUESTIONS, annotations({10: ["yes"]}), r"question 1: .*got no annotation for the id 11"),
        (
            QUESTIONS,
            {"annotations": {}},
            r"a\.json must be a JSON object with the list annotations",
        ),
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
        (
            QUESTIONS,
            {"annotations": [{**annotations(ANSWERS)["annotations"][0], "answer_type": 1}]},
            r"a\.json, annotation 0: answer_type must be a text; got 1",
        ),
        (
            QUESTIONS,
            {
                "annotations": [
                    {**value, **extra}
                    for value, extra in zip(
                        annotations(ANSWERS)["annotations"], ({"answer_type": "a"}, {}), strict=True
                    )
                ]
            },
            r"annotation 1: answer_type must be given in each annotation or in none; got None",
        ),
    ],
)
def test_a_malformed_file_is_refused_with_its_place(read, questions, answers, message):
    with pytest.raises(DataError, match=message):
        read(questions, answers, min_count=1)
