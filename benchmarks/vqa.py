"""Compare losses for visual question answering (VQA) on questions about generated scenes.

    surelabel scenes FOLDER --count 4000
    python benchmarks/vqa.py FOLDER [--seeds 5]

Three kinds of questions are generated from the objects of each scene: whether a label is present,
how many objects of a label there are, and what the largest object is. Ten simulated annotators
answer each question. An annotator errs with a probability that is higher for small objects and for
large numbers, so the answers are graded targets (``answer_scores``). The answers to all questions
are labels of the pair of image and question, whose vector is that of ``encode_questions`` with
tiny-vit. The method ``linear`` is fitted with each loss on the questions of the first half of the
scenes, and evaluated without calibration on those of the second half.

    log loss      Mean over all answers to all questions, in nats, for graded targets.
    Brier skill   1 - Brier score / Brier score of the mean target of each answer.
    ECE           Expected calibration error in points.
    VQA accuracy  Mean score of the answer with the highest probability.

The questions and annotators of each seed are other ones; the scenes are the same. Intervals are
95 % t intervals over the seeds. Differences are differences to the binary cross-entropy with the
same seed.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel.arrays import Array
from surelabel.config import load_run
from surelabel.data.text_labels.noun_plurals import plural_phrases
from surelabel.data.vqa_answers import answer_scores
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache
from surelabel.features.question_features import encode_questions
from surelabel.metrics import METRICS, paired_t_interval
from surelabel.recognizer import Recognizer
from surelabel.records import QuestionAnswers

ANNOTATORS = 10
LOSSES = ("binary", "spa", "focal", "asymmetric")
MIN_COUNT = 9  # questions whose most frequent answer is a label


def main() -> None:
    """Fit the method with each loss and seed, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    lines = (options.folder / "scenes.jsonl").read_text(encoding="utf-8").splitlines()
    scenes = [json.loads(line) for line in lines]
    encoder, cache = load_encoder("tiny-vit"), FeatureCache(options.folder / "features")
    values: dict[str, list[dict[str, float]]] = {name: [] for name in LOSSES}
    for seed in range(options.seeds):
        rng = np.random.default_rng(seed)
        half = len(scenes) // 2
        train = generate_questions(options.folder, scenes[:half], rng)
        test = generate_questions(options.folder, scenes[half:], rng, names=train.names)
        train_vectors = encode_questions(encoder, train, cache=cache)
        test_vectors = encode_questions(encoder, test, cache=cache)
        for name in LOSSES:
            run = load_run(
                overrides=[
                    f"encoder.name=features:{train_vectors.features.shape[1]}",
                    "method.name=linear",
                    f"loss.name={name}",
                    f"seed={seed}",
                ]
            )
            recognizer = Recognizer(run, list(train.names)).fit(train_vectors)
            probabilities = recognizer.predict(test_vectors).probabilities
            values[name].append(evaluate_answers(probabilities, test.targets))
        print(f"seed {seed}: {len(train)} + {len(test)} questions, {len(train.names)} answers")
    metrics = list(values["binary"][0])
    print(f"\n| loss | {' | '.join(metrics)} |\n|---|{'---|' * len(metrics)}")
    for name, rows in values.items():
        cells = [interval([row[metric] for row in rows]) for metric in metrics]
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"\n| difference to binary | {' | '.join(metrics)} |\n|---|{'---|' * len(metrics)}")
    for name in LOSSES[1:]:
        pairs = zip(values[name], values["binary"], strict=True)
        differences = [{m: own[m] - base[m] for m in metrics} for own, base in pairs]
        cells = [interval([row[metric] for row in differences]) for metric in metrics]
        print(f"| {name} | {' | '.join(cells)} |")


def generate_questions(
    folder: Path,
    scenes: list[dict[str, Any]],
    rng: np.random.Generator,
    names: Sequence[str] | None = None,
) -> QuestionAnswers:
    """Return three questions about each scene, and the scores of their answers."""
    labels = sorted({label for scene in scenes for label in scene["labels"]})
    paths, questions, scores = [], [], []
    for scene in scenes:
        areas: dict[str, list[float]] = {}
        for label, left, top, right, bottom, _ in scene["boxes"]:
            areas.setdefault(label, []).append((right - left) * (bottom - top))
        present = list(areas)
        asked = str(rng.choice(present if rng.random() < 0.5 else labels))
        counted = str(rng.choice(present if rng.random() < 0.9 else labels))
        largest = max(present, key=lambda label: max(areas[label]))
        for question, answers in (
            (f"is there a {asked}?", answer_presence(areas.get(asked, []), rng)),
            (
                f"how many {' '.join(plural_phrases(tuple(counted.split()))[0])} are there?",
                answer_number(len(areas.get(counted, [])), rng),
            ),
            ("what is the largest object?", answer_largest(largest, areas, rng)),
        ):
            paths.append(str(folder / scene["path"]))
            questions.append(question)
            scores.append(answer_scores(answers))
    if names is None:
        most_frequent = [max(answers, key=answers.__getitem__) for answers in scores]
        counts = Counter(most_frequent)
        names = sorted(answer for answer, count in counts.items() if count >= MIN_COUNT)
    targets = np.array([[row.get(name, 0.0) for name in names] for row in scores])
    return QuestionAnswers(paths, questions, names, targets)


def answer_presence(areas: list[float], rng: np.random.Generator) -> list[str]:
    """Answer whether an object is present; small objects are overlooked more often."""
    error = 0.03 if not areas else 0.03 + 0.5 * np.exp(-max(areas) / 0.02)
    is_wrong = rng.random(ANNOTATORS) < error
    truth, opposite = ("yes", "no") if areas else ("no", "yes")
    return [opposite if wrong else truth for wrong in is_wrong]


def answer_number(number: int, rng: np.random.Generator) -> list[str]:
    """Answer how many objects there are; large numbers are counted wrongly more often."""
    is_wrong = rng.random(ANNOTATORS) < min(0.5, 0.03 + 0.08 * number)
    offsets = np.where(rng.random(ANNOTATORS) < 0.5, -1, 1) * is_wrong
    return [str(abs(number + offset)) for offset in offsets]


def answer_largest(
    largest: str, areas: dict[str, list[float]], rng: np.random.Generator
) -> list[str]:
    """Answer what the largest object is; an object of nearly this size is confused with it."""
    sizes = {label: max(values) for label, values in areas.items()}
    weights = np.array(list(sizes.values())) ** 4
    return [str(name) for name in rng.choice(list(sizes), ANNOTATORS, p=weights / weights.sum())]


def evaluate_answers(probabilities: Array, targets: Array) -> dict[str, float]:
    """Return the metrics of the probabilities of answers, ``(n, c)``."""
    rows = np.arange(len(targets))
    prevalence = np.broadcast_to(targets.mean(axis=0), targets.shape)
    brier = METRICS["brier"]
    return {
        "log loss": METRICS["log_loss"](probabilities, targets),
        "Brier skill, %": 100 * (1 - brier(probabilities, targets) / brier(prevalence, targets)),
        "ECE, points": 100 * METRICS["ece"](probabilities, targets),
        "VQA accuracy, %": 100 * targets[rows, probabilities.argmax(axis=1)].mean(),
    }


def interval(values: list[float]) -> str:
    """Return the mean of the seeds and its 95 % t interval as text."""
    result = paired_t_interval(values)
    return f"{result.value:.4f} ({result.low:.4f} to {result.high:.4f})"


if __name__ == "__main__":
    main()
