"""Compare losses for visual question answering (VQA) on questions about generated scenes.

    surelabel scenes FOLDER --count 4000
    OMP_NUM_THREADS=1 python benchmarks/vqa.py FOLDER [--seeds 5]

Three kinds of questions are generated from the objects of each scene: whether a label is present,
how many objects of a label there are, and what the largest object is. Ten simulated annotators
answer each question. An annotator errs with a probability that is higher for small objects and for
large numbers, so the answers are graded targets (``answer_scores``). The answers to all questions
are labels of the pair of image and question, whose vector is that of ``encode_questions`` with
tiny-vit. The method ``linear`` is fitted with each loss on half of the scenes. The default
calibrator is fitted on 15 % of the scenes, and the recognizer is evaluated on the other 35 %,
before and after calibration. All questions about a scene belong to one part.

    log loss      Mean over all answers to all questions, in nats, for graded targets.
    Brier skill   1 - Brier score / Brier score of the mean target of each answer.
    ECE, ACE      Expected and average calibration error in points.
    VQA accuracy  Mean score of the answer with the highest probability.

Rows with ``centred`` use the vectors of ``centre_question_vectors``, with the means of the fitted
questions. The probabilities of ``uncalibrated`` are computed with the link of the loss, and those
of ``sigmoid`` without it. The row ``mean targets`` contains the mean targets of all fitted
questions of the same kind, without the image. The tables are printed for all questions and for each
kind of question. Other tables contain the fraction of questions with a highest probability of at
least p, their VQA accuracy, and the mean of their highest probabilities.

The questions, the annotators and the parts of each seed are other ones; the scenes are the same.
Intervals are 95 % t intervals over the seeds. Differences are paired by seed. The metrics of each
seed and fit are stored in FOLDER/vqa, and the same command resumes a stopped run.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from seed_tables import print_table

from surelabel.arrays import Array
from surelabel.config import load_run
from surelabel.data import score_question_answers
from surelabel.data.text_labels.noun_plurals import plural_phrases
from surelabel.encoders import load_encoder
from surelabel.features import FeatureCache, centre_question_vectors, encode_questions
from surelabel.files import atomic_file
from surelabel.metrics import METRICS, vqa_accuracy, vqa_accuracy_per_question
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledFeatures, QuestionAnswers

ANNOTATORS = 10
LOSSES = ("binary", "spa", "focal", "asymmetric")
CENTRED = ("binary centred", "spa centred")  # losses with centred vectors
FITS = (*LOSSES, *CENTRED)
BASELINE = "mean targets"  # of the kind of question
PART_ENDS = {"fit": 0.5, "calibration": 0.65, "test": 1.0}  # fractions of the scenes
KINDS = ("yes/no", "number", "other")
STAGES = ("uncalibrated", "calibrated")
WITHOUT_LINK = ("focal, sigmoid", "asymmetric, sigmoid")  # rows without the link of the loss
MIN_PROBABILITIES = (0.3, 0.5, 0.7, 0.9)
FORMAT = 1  # of the stored metrics

Metrics = dict[str, dict[str, float]]  # metrics of each group of questions


def main() -> None:
    """Fit and calibrate the method with each loss and seed, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    seeds = [compute_seed_metrics(options.folder, seed) for seed in range(options.seeds)]
    for group in seeds[0][f"{LOSSES[0]}, {STAGES[0]}"]:
        print_tables(group, [{row: values[group] for row, values in s.items()} for s in seeds])


def compute_seed_metrics(folder: Path, seed: int) -> dict[str, Metrics]:
    """Return the metrics of each fit, before and after calibration; stored metrics are read."""
    results: dict[str, Metrics] = {}
    parts: dict[str, QuestionAnswers] = {}
    vectors: dict[str, LabelledFeatures] = {}
    for fit in (BASELINE, *FITS):
        file = folder / "vqa" / f"{fit.replace(' ', '-')}-{seed}.json"
        stored = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if stored.get("format") != FORMAT:
            parts = parts or generate_parts(folder, seed)
            if fit == BASELINE:
                probabilities = {BASELINE: predict_mean_targets(parts)}
            else:
                vectors = vectors or encode_parts(folder, parts)
                probabilities = predict_answers(fit, seed, vectors)
            test = parts["test"]
            stored = {
                "format": FORMAT,
                "questions": {name: len(data) for name, data in parts.items()},
                "answers": len(test.names),
                "metrics": {name: evaluate_answers(p, test) for name, p in probabilities.items()},
            }
            with atomic_file(file) as path:
                path.write_text(json.dumps(stored, indent=1), encoding="utf-8")
        print(f"seed {seed}, {fit}: {stored['questions']}, {stored['answers']} answers")
        results |= stored["metrics"]
    return results


def generate_parts(folder: Path, seed: int) -> dict[str, QuestionAnswers]:
    """Return the questions about the scenes of each part."""
    lines = (folder / "scenes.jsonl").read_text(encoding="utf-8").splitlines()
    rng = np.random.default_rng(seed)
    scenes = [json.loads(lines[row]) for row in rng.permutation(len(lines))]
    parts: dict[str, QuestionAnswers] = {}
    start = 0
    for name, fraction in PART_ENDS.items():
        end = round(fraction * len(scenes))
        names = parts["fit"].names if parts else None
        parts[name] = generate_questions(folder, scenes[start:end], rng, names)
        start = end
    return parts


def encode_parts(folder: Path, parts: dict[str, QuestionAnswers]) -> dict[str, LabelledFeatures]:
    """Return the vectors of the images and questions of each part."""
    encoder, cache = load_encoder("tiny-vit"), FeatureCache(folder / "features")
    return {name: encode_questions(encoder, data, cache=cache) for name, data in parts.items()}


def predict_mean_targets(parts: dict[str, QuestionAnswers]) -> Array:
    """Return the mean targets of the training questions of the same kind, ``(n, c)``."""
    fit_kinds = np.array(parts["fit"].answer_types)
    means = {kind: parts["fit"].targets[fit_kinds == kind].mean(axis=0) for kind in KINDS}
    return np.array([means[kind] for kind in parts["test"].answer_types])


def predict_answers(fit: str, seed: int, vectors: dict[str, LabelledFeatures]) -> dict[str, Array]:
    """Return the probabilities of answers before and after calibration, ``(n, c)`` each.

    For ``focal`` and ``asymmetric``, also return the sigmoid of the scores.
    """
    if fit in CENTRED:
        means = vectors["fit"].features.mean(axis=0)
        vectors = {name: centre_question_vectors(part, means) for name, part in vectors.items()}
    run = load_run(
        overrides=[
            f"encoder.name=features:{vectors['fit'].features.shape[1]}",
            "method.name=linear",
            f"loss.name={fit.split()[0]}",
            f"seed={seed}",
        ]
    )
    recognizer = Recognizer(run, list(vectors["fit"].names)).fit(vectors["fit"])
    uncalibrated = recognizer.predict(vectors["test"])
    calibrated = recognizer.calibrate(vectors["calibration"]).predict(vectors["test"])
    results = {
        f"{fit}, sigmoid": expit(uncalibrated.scores.astype(np.float64)),
        f"{fit}, {STAGES[0]}": uncalibrated.probabilities,
        f"{fit}, {STAGES[1]}": calibrated.probabilities,
    }
    return {row: p for row, p in results.items() if "sigmoid" not in row or row in WITHOUT_LINK}


def generate_questions(
    folder: Path,
    scenes: list[dict[str, Any]],
    rng: np.random.Generator,
    names: Sequence[str] | None = None,
) -> QuestionAnswers:
    """Return three questions about each scene, and the scores of their answers."""
    labels = sorted({label for scene in scenes for label in scene["labels"]})
    paths, questions, answers = [], [], []
    for scene in scenes:
        areas: dict[str, list[float]] = {}
        for label, left, top, right, bottom, _ in scene["boxes"]:
            areas.setdefault(label, []).append((right - left) * (bottom - top))
        present = list(areas)
        asked = str(rng.choice(present if rng.random() < 0.5 else labels))
        counted = str(rng.choice(present if rng.random() < 0.9 else labels))
        largest = max(present, key=lambda label: max(areas[label]))
        for question, texts in (
            (f"is there a {asked}?", answer_presence(areas.get(asked, []), rng)),
            (
                f"how many {' '.join(plural_phrases(tuple(counted.split()))[0])} are there?",
                answer_number(len(areas.get(counted, [])), rng),
            ),
            ("what is the largest object?", answer_largest(largest, areas, rng)),
        ):
            paths.append(str(folder / scene["path"]))
            questions.append(question)
            answers.append(texts)
    kinds = list(KINDS) * len(scenes)
    return score_question_answers(paths, questions, answers, names=names, answer_types=kinds)


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


def evaluate_answers(probabilities: Array, test: QuestionAnswers) -> Metrics:
    """Return the metrics of the probabilities of answers, ``(n, c)``, for groups of questions."""
    kinds = np.array(test.answer_types)
    all_metrics = answer_metrics(probabilities, test.targets)
    groups = {"all questions": all_metrics}
    for kind in KINDS:
        groups[kind] = answer_metrics(probabilities[kinds == kind], test.targets[kinds == kind])
    accuracies = vqa_accuracy_per_question(probabilities, test.targets)
    highest = probabilities.max(axis=1)
    for minimum in MIN_PROBABILITIES:
        chosen = highest >= minimum
        groups[f"highest probability >= {minimum}"] = {
            "questions, %": 100 * float(chosen.mean()),
            "VQA accuracy, %": 100 * mean_or_nan(accuracies[chosen]),
            "mean highest probability, %": 100 * mean_or_nan(highest[chosen]),
        }
    return groups


def answer_metrics(probabilities: Array, targets: Array) -> dict[str, float]:
    """Return the metrics of the probabilities of answers, ``(n, c)``."""
    return {
        "log loss": METRICS["log_loss"](probabilities, targets),
        "Brier skill, %": 100 * METRICS["brier_skill"](probabilities, targets),
        "ECE, points": 100 * METRICS["ece"](probabilities, targets),
        "ACE, points": 100 * METRICS["ace"](probabilities, targets),
        "VQA accuracy, %": 100 * vqa_accuracy(probabilities, targets),
    }


def mean_or_nan(values: Array) -> float:
    """Return the mean of values, or NaN if there are none."""
    return float(values.mean()) if len(values) else float("nan")


def print_tables(group: str, seeds: Sequence[Metrics]) -> None:
    """Print the metrics of a group of questions, and paired differences of the losses."""
    print_table(group, {row: [seed[row] for seed in seeds] for row in seeds[0]})
    pairs = [(f"{fit}, {stage}", f"{LOSSES[0]}, {stage}") for stage in STAGES for fit in FITS[1:]]
    pairs += [(row, f"{LOSSES[0]}, {STAGES[0]}") for row in WITHOUT_LINK]
    pairs += [(f"{CENTRED[1]}, {stage}", f"{CENTRED[0]}, {stage}") for stage in STAGES]
    pairs += [(f"{fit}, {STAGES[1]}", f"{fit}, {STAGES[0]}") for fit in FITS]
    differences = {
        f"{row} − {base}": [subtract_metrics(seed, row, base) for seed in seeds]
        for row, base in pairs
    }
    print_table(f"{group}: difference", differences)


def subtract_metrics(metrics: Metrics, row: str, base: str) -> dict[str, float]:
    """Return the difference of each metric between two rows."""
    return {name: value - metrics[base][name] for name, value in metrics[row].items()}


if __name__ == "__main__":
    main()
