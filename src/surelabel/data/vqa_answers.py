"""Read questions about images, with the answers of several people as graded targets (VQA v2)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surelabel.counts import format_count
from surelabel.data.labels.resolution.image_resolution import resolve_image_paths
from surelabel.errors import DataError, InputError
from surelabel.file_readers import quote_of_file, read_json
from surelabel.mapped_arrays import mapped_zeros
from surelabel.records import QuestionAnswers

AGREEING_ANSWERS = 3  # people with the same answer, for the score 1
MAX_TARGETS = 2**31
REMEDY = "Give the files of VQA v2."

_ARTICLES = {"a", "an", "the"}
_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_DIGITS = {"none": "0", **{word: str(number) for number, word in enumerate(_NUMBERS)}}
_PUNCTUATION = re.compile(r"[^\w\s'%$:.,/&+-]|[.,:](?!\d)")


class _Question(NamedTuple):
    identifier: int
    image: str
    text: str


class _Answers(NamedTuple):
    texts: list[str]
    kind: str | None


def read_vqa_answers(
    questions: str | Path,
    annotations: str | Path | None = None,
    *,
    images_root: str | Path | None = None,
    names: Sequence[str] | None = None,
    min_count: int = 9,
) -> QuestionAnswers:
    """Read questions about images, and the scores of their answers.

    The target of an answer is its score in [0, 1]; see :func:`answer_scores`. Answers are compared
    after :func:`normalize_answer`. An answer without a column is ignored.

    Args:
        questions: JSON file with ``questions`` (``question_id``, ``image_id``, ``question``) and
            ``data_subtype``, such as ``val2014``.
        annotations: JSON file with ``annotations`` (``question_id``, ``answers`` and, optionally,
            ``answer_type``). Annotations of other questions are ignored. If None, the answers are
            unknown, so that the questions have no columns.
        images_root: Folder of the images ``COCO_val2014_000000000042.jpg``, which need not exist.
            If None, the folder of ``questions`` is used.
        names: Answers of the columns, such as those of the training questions. If None, the answers
            that are the most frequent one of at least ``min_count`` questions are returned, the
            most frequent first.
        min_count: Smallest number of such questions.

    Raises:
        DataError: If a file is damaged, or if a question has no annotation or is repeated. The
            message contains the number of the question or of the annotation, counted from 0.
        InputError: If no answer has a column, if ``names`` is empty or contains the same answer
            twice after normalization, if ``min_count`` is below 1, or if there would be more than
            2**31 targets.

    Source:
        Files of VQA v2: Goyal et al., Making the V in VQA Matter, arXiv:1612.00837. The 3,129
        answers of Teney et al., arXiv:1708.02711, have ``min_count`` 9.
    """
    questions = Path(questions)
    answers = None if annotations is None else _read_answers(Path(annotations))
    entries = list(_read_questions(questions, answers))
    paths = resolve_image_paths(questions, [entry.image for entry in entries], images_root)
    texts = [entry.text for entry in entries]
    if answers is None:
        return QuestionAnswers(paths, texts)
    answered = [answers[entry.identifier] for entry in entries]
    types = [answer.kind for answer in answered if answer.kind is not None]
    try:
        return score_question_answers(
            paths,
            texts,
            [answer.texts for answer in answered],
            names=names,
            min_count=min_count,
            answer_types=types,
        )
    except InputError as error:
        raise InputError(f"The answers in {annotations} cannot be used: {error}") from error


def score_question_answers(
    paths: Sequence[str],
    questions: Sequence[str],
    answers: Sequence[Sequence[str]],
    *,
    names: Sequence[str] | None = None,
    min_count: int = 9,
    answer_types: Sequence[str] = (),
) -> QuestionAnswers:
    """Return questions about images with the scores of the answers of several people.

    The target of an answer is its score in [0, 1]; see :func:`answer_scores`. Answers are compared
    after :func:`normalize_answer`. An answer without a column is ignored.

    Args:
        paths: Path of the image of each question, length n.
        questions: Texts of the questions, length n.
        answers: Answers of all people to each question, length n.
        names: Answers of the columns, such as those of the training questions. If None, the answers
            that are the most frequent one of at least ``min_count`` questions are returned, the
            most frequent first.
        min_count: Smallest number of such questions.
        answer_types: Type of the answers to each question, length n. If empty, the types are
            unknown.

    Raises:
        InputError: If the lengths differ, if no answer has a column, if ``names`` is empty or
            contains the same answer twice after normalization, if ``min_count`` is below 1, or if
            there would be more than 2**31 targets.

    Example:
        >>> data = score_question_answers(["1.jpg"], ["What is it?"], [["a cat"] * 9 + ["dog"]],
        ...                               names=["cat", "dog"])
        >>> data.targets
        array([[1. , 0.3]])
    """
    if len(answers) != len(questions):
        raise InputError(
            "Each question must have a list of answers; got "
            f"{format_count(len(questions), 'question')} and "
            f"{format_count(len(answers), 'list')}. Give an empty list for a question without "
            "answers."
        )
    scores = [answer_scores(texts) for texts in answers]
    names = _frequent_answers(scores, min_count) if names is None else names
    column_of = _columns_of_answers(names)
    if len(questions) * len(names) > MAX_TARGETS:
        raise InputError(
            f"There must be at most {MAX_TARGETS} targets; got {len(questions)} questions and "
            f"{len(names)} answers. Give a larger min_count."
        )
    targets = mapped_zeros((len(questions), len(names)), np.float64)
    for number, row in enumerate(scores):
        for answer, score in row.items():
            if answer in column_of:
                targets[number, column_of[answer]] = score
    return QuestionAnswers(paths, questions, list(names), targets, answer_types)


def _frequent_answers(scores: Sequence[dict[str, float]], min_count: int) -> list[str]:
    """Return the answers that are the most frequent one of at least ``min_count`` questions."""
    if min_count < 1:
        raise InputError(f"min_count must be at least 1; got {min_count}. Give a larger number.")
    counts = Counter(max(row, key=row.__getitem__) for row in scores if row)
    names = [answer for answer, count in counts.most_common() if count >= min_count]
    if not names:
        raise InputError(
            f"At least one answer must be the most frequent one of {min_count} questions; got none "
            f"among {format_count(len(scores), 'question')}. Give names, or a smaller min_count."
        )
    return names


def _columns_of_answers(names: Sequence[str]) -> dict[str, int]:
    """Return the column of each answer, by the normalized answer."""
    if isinstance(names, str) or not names:
        raise InputError(
            f"names must be a list with at least one answer; got {names!r}. Give the names of the "
            "training questions, or None."
        )
    column_of: dict[str, int] = {}
    for column, name in enumerate(names):
        answer = normalize_answer(name)
        if not answer:
            raise InputError(f"Each answer in names must have a word; got {name!r}. Remove it.")
        first = column_of.setdefault(answer, column)
        if first != column:
            raise InputError(
                "The answers in names must differ after normalization; got "
                f"{names[first]!r} and {name!r}. Remove one of them."
            )
    return column_of


def answer_scores(answers: Sequence[str]) -> dict[str, float]:
    """Return the score of each answer to one question, in the order of the answers.

    The score is the mean, over all people, of min(1, m / 3), where m is the number of other people
    with this answer. With the usual ten people, it is min(1, 0.3 · k) for an answer of k people.

    Args:
        answers: Answers of n people, which are normalized.

    Returns:
        Scores in [0, 1]. Answers without text are left out.

    Source:
        Antol et al., VQA: Visual Question Answering, arXiv:1505.00468, Section 3, averaged over all
        subsets without one person as in the evaluation code of VQA.

    Example:
        >>> answer_scores(["Two", "two.", "2"] + ["3"] * 7)
        {'2': 0.9, '3': 1.0}
    """
    counts = Counter(map(normalize_answer, answers))
    n_people = len(answers)
    scores = {}
    for answer, count in counts.items():
        with_answer = count * min(1.0, (count - 1) / AGREEING_ANSWERS)
        without_answer = (n_people - count) * min(1.0, count / AGREEING_ANSWERS)
        scores[answer] = round((with_answer + without_answer) / n_people, 12)
    return {answer: score for answer, score in scores.items() if answer}


def normalize_answer(answer: str) -> str:
    """Return an answer in lower case, without articles and punctuation, and with digits.

    Numbers from ``zero`` to ``ten`` are written as digits, and ``none`` is written as 0.

    Source:
        The evaluation code of VQA.

    Differs:
        Contractions such as ``dont`` are not changed. Only some punctuation inside a word is
        removed, and is not replaced by a space. The answers of all people are changed like the
        predicted answer.

    Example:
        >>> normalize_answer("The Two dogs."), normalize_answer("yes!")
        ('2 dogs', 'yes')
    """
    words = _PUNCTUATION.sub("", answer.lower()).split()
    kept = [word for word in words if word not in _ARTICLES]
    return " ".join(_DIGITS.get(word, word) for word in kept)


def _read_answers(annotations: Path) -> dict[int, _Answers]:
    """Return the answers to each question, by its number."""
    answers_of: dict[int, _Answers] = {}
    for number, value in enumerate(_read_objects(annotations, "annotation")[1]):
        place = f"{annotations}, annotation {number}"
        identifier = _whole_number(place, value, "question_id")
        answers = value.get("answers")
        texts = _texts_of_answers(answers)
        if not texts:
            raise DataError(
                f"{place}: answers must be a list of objects with the text answer; got "
                f"{quote_of_file(answers)}. {REMEDY}"
            )
        kind = value.get("answer_type")
        if kind is not None and not isinstance(kind, str):
            raise DataError(
                f"{place}: answer_type must be a text; got {quote_of_file(kind)}. {REMEDY}"
            )
        if answers_of and (kind is None) != (next(iter(answers_of.values())).kind is None):
            raise DataError(
                f"{place}: answer_type must be given in each annotation or in none; got "
                f"{quote_of_file(kind)}, unlike annotation 0. {REMEDY}"
            )
        if identifier in answers_of:
            raise DataError(
                f"{place}: each question must have one annotation; got a second one of the "
                f"question {identifier}. Remove it."
            )
        answers_of[identifier] = _Answers(texts, kind)
    return answers_of


def _texts_of_answers(answers: Any) -> list[str]:
    """Return the text of each answer, or an empty list if the value is no list of answers."""
    if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
        return []
    texts = [one.get("answer") for one in answers]
    return texts if all(isinstance(text, str) for text in texts) else []


def _read_questions(questions: Path, answers: Mapping[int, _Answers] | None) -> Iterator[_Question]:
    """Yield the questions, which must have answers if ``answers`` is given."""
    content, values = _read_objects(questions, "question")
    subtype = content.get("data_subtype")
    if not isinstance(subtype, str) or not re.fullmatch(r"[\w-]+", subtype):
        raise DataError(
            f"{questions}: data_subtype must be a name such as val2014; got "
            f"{quote_of_file(subtype)}. {REMEDY}"
        )
    identifiers: set[int] = set()
    for number, value in enumerate(values):
        place = f"{questions}, question {number}"
        identifier = _whole_number(place, value, "question_id")
        text = value.get("question")
        if not isinstance(text, str) or not text.strip():
            raise DataError(
                f"{place}: question must be a text; got {quote_of_file(text)}. {REMEDY}"
            )
        if identifier in identifiers:
            raise DataError(
                f"{place}: each question must occur once; got a second question of the id "
                f"{identifier}. Remove it."
            )
        if answers is not None and identifier not in answers:
            raise DataError(
                f"{place}: each question must have an annotation; got no annotation for the id "
                f"{identifier}. Give the annotations of the same questions."
            )
        identifiers.add(identifier)
        image = _whole_number(place, value, "image_id")
        yield _Question(identifier, f"COCO_{subtype}_{image:012d}.jpg", text)
    if not identifiers:
        raise DataError(f"{questions} must contain at least one question; got none. {REMEDY}")


def _read_objects(path: Path, noun: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the content of a JSON file, and its list of questions or annotations."""
    content = read_json(path, kind="a JSON file of VQA", remedy=REMEDY)
    values = content.get(f"{noun}s") if isinstance(content, dict) else None
    if not isinstance(values, list):
        raise DataError(
            f"{path} must be a JSON object with the list {noun}s; got {quote_of_file(content)}. "
            f"{REMEDY}"
        )
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise DataError(
                f"{path}, {noun} {number}: each {noun} must be an object; got "
                f"{quote_of_file(value)}. {REMEDY}"
            )
    return content, values


def _whole_number(place: str, value: dict[str, Any], key: str) -> int:
    number = value.get(key)
    if type(number) is not int or not 0 <= number < 10**12:
        raise DataError(
            f"{place}: {key} must be a whole number from 0 to 10**12 - 1; got "
            f"{quote_of_file(number)}. {REMEDY}"
        )
    return number
