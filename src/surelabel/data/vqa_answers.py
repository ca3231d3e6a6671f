"""Read questions about images, with the answers of several people as graded targets (VQA v2)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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
_PUNCTUATION = re.compile(r"[^\w\s'%$:.,/&+-]|[.,:](?!\d)")


class _Question(NamedTuple):
    image: str
    text: str
    answers: list[str]


def read_vqa_answers(
    questions: str | Path,
    annotations: str | Path,
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
        annotations: JSON file with ``annotations`` (``question_id``, ``answers``).
        images_root: Folder of the images ``COCO_val2014_000000000042.jpg``, which need not exist.
            If None, the folder of ``questions`` is used.
        names: Answers of the columns, such as those of the training questions. If None, the answers
            that are the most frequent one of at least ``min_count`` questions are returned, the
            most frequent first.
        min_count: Smallest number of such questions.

    Raises:
        DataError: If a file is damaged, or if a question has no annotation or is repeated. The
            message contains the number of the question or of the annotation.
        InputError: If no answer has a column, or if there would be more than 2**31 targets.

    Source:
        Files of VQA v2: Goyal et al., Making the V in VQA Matter, arXiv:1612.00837. The 3,129
        answers of Teney et al., arXiv:1708.02711, have ``min_count`` 9.
    """
    entries = list(_read_questions(Path(questions), Path(annotations)))
    scores = [answer_scores(entry.answers) for entry in entries]
    if names is None:
        counts = Counter(max(answers, key=answers.__getitem__) for answers in scores if answers)
        names = [answer for answer, count in counts.most_common() if count >= min_count]
    if not names:
        raise InputError(
            f"At least one answer must be the most frequent one of {min_count} questions; got none "
            f"in {annotations}. Give names, or a smaller min_count."
        )
    if len(entries) * len(names) > MAX_TARGETS:
        raise InputError(
            f"There must be at most {MAX_TARGETS} targets; got {len(entries)} questions and "
            f"{len(names)} answers. Give a larger min_count."
        )
    column_of = {normalize_answer(name): column for column, name in enumerate(names)}
    targets = mapped_zeros((len(entries), len(names)), np.float64)
    for row, answers in enumerate(scores):
        for answer, score in answers.items():
            if answer in column_of:
                targets[row, column_of[answer]] = score
    source = Path(questions)
    paths = resolve_image_paths(source, [entry.image for entry in entries], images_root)
    return QuestionAnswers(paths, [entry.text for entry in entries], list(names), targets)


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

    Source:
        The evaluation code of VQA.

    Differs:
        Contractions such as ``dont`` are not changed.

    Example:
        >>> normalize_answer("The Two dogs."), normalize_answer("yes!")
        ('2 dogs', 'yes')
    """
    words = _PUNCTUATION.sub("", answer.lower()).split()
    kept = [word for word in words if word not in _ARTICLES]
    return " ".join(str(_NUMBERS.index(word)) if word in _NUMBERS else word for word in kept)


def _read_questions(questions: Path, annotations: Path) -> Iterator[_Question]:
    content = _read_object(questions, "questions")
    subtype = content.get("data_subtype")
    if not isinstance(subtype, str) or not re.fullmatch(r"[\w-]+", subtype):
        raise DataError(
            f"{questions}: data_subtype must be a name such as val2014; got "
            f"{quote_of_file(subtype)}. {REMEDY}"
        )
    answers_of: dict[int, list[str]] = {}
    for number, value in enumerate(_read_object(annotations, "annotations")["annotations"]):
        place = f"{annotations}, annotation {number}"
        identifier = _whole_number(place, value, "question_id")
        answers = value.get("answers")
        texts = [one.get("answer") for one in answers] if _is_list_of_objects(answers) else []
        if not texts or not all(isinstance(text, str) for text in texts):
            raise DataError(
                f"{place}: answers must be a list of objects with the text answer; got "
                f"{quote_of_file(answers)}. {REMEDY}"
            )
        if identifier in answers_of:
            raise DataError(
                f"{place}: each question must have one annotation; got a second one of the "
                f"question {identifier}. Remove it."
            )
        answers_of[identifier] = texts
    identifiers: set[int] = set()
    for number, value in enumerate(content["questions"]):
        place = f"{questions}, question {number}"
        identifier = _whole_number(place, value, "question_id")
        text = value.get("question")
        if not isinstance(text, str) or not text.strip():
            raise DataError(
                f"{place}: question must be a text; got {quote_of_file(text)}. {REMEDY}"
            )
        if identifier not in answers_of or identifier in identifiers:
            problem = "a second question of" if identifier in identifiers else "no annotation for"
            raise DataError(
                f"{place}: each question must occur once and have an annotation; got {problem} "
                f"the id {identifier}. {REMEDY}"
            )
        identifiers.add(identifier)
        image = _whole_number(place, value, "image_id")
        yield _Question(f"COCO_{subtype}_{image:012d}.jpg", text, answers_of[identifier])
    if not identifiers:
        raise DataError(f"{questions} must contain at least one question; got none. {REMEDY}")


def _read_object(path: Path, key: str) -> dict[str, Any]:
    content = read_json(path, kind="a JSON file of VQA", remedy=REMEDY)
    if not isinstance(content, dict) or not _is_list_of_objects(content.get(key)):
        raise DataError(
            f"{path} must be a JSON object with a list of objects {key!r}; got "
            f"{quote_of_file(content)}. {REMEDY}"
        )
    return content


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _whole_number(place: str, value: dict[str, Any], key: str) -> int:
    number = value.get(key)
    if type(number) is not int or not 0 <= number < 10**12:
        raise DataError(
            f"{place}: {key} must be a whole number from 0 to 10**12 - 1; got "
            f"{quote_of_file(number)}. {REMEDY}"
        )
    return number
