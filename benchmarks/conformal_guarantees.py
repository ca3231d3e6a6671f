"""Measure how often automatic labels and guaranteed searches are wrong, on simulated images.

    python benchmarks/conformal_guarantees.py [DRAWS] [--only selection|thresholds] [--csv FILE]

Six labels, the last of which is rare and easy, depend on each other in two ways: their log-odds
share a factor, and half of the images have targets that are decided by one common random number.
The recognizers see the true log-odds or distort them. In each draw, n calibration images and 500
new images are sampled.

`selection` accepts claims for each label and predicted target, and for searches. The rules are
`accept_claims`, Benjamini-Hochberg alone, and Benjamini-Yekutieli over all labels. The false share
of a draw without an accepted image is 0. The columns are:

above                The largest excess of a mean false share over the level, in standard errors,
                     over all labels, queries and rules.
share                The mean share of images that are accepted.
clairvoyant          The share that is accepted by a rule with infinitely many images, which has the
                     true share of false claims at each confidence of the recognizer.
true probabilities   The share that is accepted by a rule that has the true probability of each
                     claim, which no recognizer can return.
reached              The number of claims whose share is at least half of that of the clairvoyant
                     rule, among claims of which this rule accepts 30 % or more.

The last two rules accept the largest number of images whose expected false share is at most the
level.

`thresholds` measures the guarantees of `surelabel tag`. A guarantee is violated in a draw if the
true risk of its threshold, computed from 100,000 images, is above the level.
`at_most_missed_on_average` bounds the mean of this risk over the draws.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from surelabel.decisions import GUARANTEES, record_validation
from surelabel.decisions.claim_selection import accept_claims
from surelabel.decisions.conformal_selection import (
    benjamini_hochberg,
    benjamini_yekutieli,
    conformal_p_values,
)

LEVELS, SIZES, NEW_IMAGES, MANY_IMAGES = (0.05, 0.1, 0.2), (100, 300, 1000), 500, 200_000
MEANS = np.array([0.5, -0.5, -1.5, -2.5, -4.0, -5.5])  # means of the log-odds of each label
RARE, EASY, CUT = 5, 10.0, 1.5  # the last label is positive where the factor is above a cut
FACTOR, OWN, COMMON = 2.0, 1.5, 0.5  # deviations of log-odds, share of images with common numbers
QUERIES = {"a & b": ((0, 1), (1, 1)), "a & !c": ((0, 1), (2, -1)), "b & !a": ((1, 1), (0, -1))}
RECOGNIZERS = (
    "calibrated",
    "overconfident",
    "shifted",
    "noisy",
    "one decimal",
    "useless",
)
SIGNS = (1, -1)
ALL, GOAL_SHARE = "all labels", 0.3


@dataclass(frozen=True)
class Sample:
    """Simulated images: true log-odds, log-odds of the recognizer, targets, common numbers."""

    truth: np.ndarray
    logits: np.ndarray
    is_positive: np.ndarray


def simulate(rng: np.random.Generator, recognizer: str, n: int) -> Sample:
    """Return ``n`` simulated images of a recognizer."""
    shape = (n, len(MEANS))
    factor = rng.normal(size=(n, 1))
    truth = MEANS + FACTOR * factor + OWN * rng.normal(size=shape)
    truth[:, RARE] += EASY * (factor[:, 0] > CUT) - FACTOR * factor[:, 0]
    common = rng.random((n, 1)) < COMMON
    numbers = np.where(common, rng.random((n, 1)), rng.random(shape))
    is_positive = numbers < expit(truth)
    noise = rng.normal(size=shape)
    logits = {
        "calibrated": truth,
        "overconfident": 2.5 * truth,
        "shifted": truth + 2,
        "noisy": truth + 1.5 * noise,
        "one decimal": np.log(rounded(expit(truth)) / (1 - rounded(expit(truth)))),
        "useless": MEANS + 2.5 * noise,
    }[recognizer]
    return Sample(truth, logits, is_positive)


def rounded(probabilities: np.ndarray) -> np.ndarray:
    """Return probabilities with one decimal, between 0.01 and 0.99, which have many ties."""
    return np.clip(probabilities.round(1), 0.01, 0.99)


def claims(sample: Sample) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the kinds of claims: name, rows, confidences, which are false, true probabilities."""
    for label in range(len(MEANS)):
        logits, truth = sample.logits[:, label], expit(sample.truth[:, label])
        for sign in SIGNS:
            rows = (logits >= 0) == (sign > 0)
            probability = truth if sign > 0 else 1 - truth
            is_false = sample.is_positive[:, label] != (sign > 0)
            name = f"{'abcdef'[label]} {'positive' if sign > 0 else 'negative'}"
            yield name, rows, expit(sign * logits), is_false, probability
    everything = np.ones(len(sample.truth), dtype=bool)
    for name, ((first, _), (second, sign)) in QUERIES.items():
        confidence = expit(sample.logits[:, first]) * expit(sign * sample.logits[:, second])
        p, q = expit(sample.truth[:, first]), expit(sample.truth[:, second])
        joint = COMMON * np.minimum(p, q) + (1 - COMMON) * p * q
        is_other = sample.is_positive[:, second] == (sign > 0)
        is_false = ~(sample.is_positive[:, first] & is_other)
        yield name, everything, confidence, is_false, joint if sign > 0 else p - joint


@dataclass
class Tally:
    """Sums over the draws of one kind of claim."""

    shares_false: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    def add(self, accepted: np.ndarray, is_false: np.ndarray) -> None:
        """Add a draw: which images were accepted, and whose claims are false."""
        n_accepted = int(accepted.sum())
        self.shares_false.append(float((accepted & is_false).sum()) / max(n_accepted, 1))
        self.shares.append(n_accepted / max(accepted.size, 1))

    def summary(self, level: float) -> tuple[float, float, float, float, float]:
        """Return the summary of the draws.

        Returns:
            Mean false share, its standard error, its excess over the level in standard errors,
            number of draws, and mean accepted share.
        """
        mean, n = float(np.mean(self.shares_false)), len(self.shares)
        error = float(np.std(self.shares_false, ddof=1)) / np.sqrt(n)
        excess = (mean - level) / error if error > 0 else (-np.inf if mean <= level else np.inf)
        return mean, error, excess, float(np.mean(np.array(self.shares) > 0)), np.mean(self.shares)


Tallies = dict[tuple[str, str, int, float], Tally]


def oracle_shares(recognizer: str, level: float) -> dict[str, tuple[float, float]]:
    """Return the shares accepted with the true probabilities, and by the clairvoyant rule."""
    sample = simulate(np.random.default_rng(1), recognizer, MANY_IMAGES)
    shares = {}
    for name, rows, confidence, _, probability in claims(sample):
        errors, values = 1 - probability[rows], confidence[rows]
        by_truth, by_confidence = np.argsort(errors), np.argsort(-values)
        is_last = np.diff(values[by_confidence], append=-np.inf) < 0  # last of equal confidences
        shares[name] = (
            longest_prefix(errors, by_truth, level, np.ones(len(errors), dtype=bool)),
            longest_prefix(errors, by_confidence, level, is_last),
        )
    return shares


def longest_prefix(
    errors: np.ndarray, order: np.ndarray, level: float, is_last: np.ndarray
) -> float:
    """Return the largest share of the first images whose mean error is at most a level."""
    lengths = np.arange(1, len(order) + 1)
    is_valid = (np.cumsum(errors[order]) / lengths <= level) & is_last
    return float(lengths[is_valid].max(initial=0)) / max(len(order), 1)


def add_draw(tallies: Tallies, calibration: Sample, new: Sample) -> None:
    """Accept the new images of one draw, for each number of calibration images and each level."""
    pooled: dict[int, list[np.ndarray]] = {n: [] for n in SIZES}
    false_of_pooled: list[np.ndarray] = []
    pairs = zip(claims(calibration), claims(new), strict=True)
    for (name, rows, confidence, is_false, _), (_, new_rows, values, new_false, _) in pairs:
        is_label = name not in QUERIES
        false_of_pooled += [new_false[new_rows]] if is_label else []
        for n in SIZES:
            reference = confidence[:n][rows[:n]], is_false[:n][rows[:n]]
            p_values = conformal_p_values(values[new_rows], *reference)
            pooled[n] += [p_values] if is_label else []
            for level in LEVELS:
                rules = {
                    "ours": accept_claims(values[new_rows], *reference, level=level),
                    "BH": benjamini_hochberg(p_values, level=level),
                }
                for rule, accepted in rules.items():
                    tallies[rule, name, n, level].add(accepted, new_false[new_rows])
    for n in SIZES:
        for level in LEVELS:
            accepted = benjamini_yekutieli(np.concatenate(pooled[n]), level=level)
            tallies["BY", ALL, n, level].add(accepted, np.concatenate(false_of_pooled))


def selection(draws: int, file: str | None) -> None:
    """Print the table of automatic labelling and search, and write all rows to a file."""
    print(
        "| recognizer | images | level | labels: largest false share ± 2 SE | queries: largest "
        "false share ± 2 SE | above (SE) | labels: share | BH alone | clairvoyant | true "
        "probabilities | reached | queries: share | BH alone | clairvoyant | all labels, BY: share "
        "| its false share |\n|---|" + "--:|" * 15
    )
    rows: list[tuple[object, ...]] = []
    for recognizer in RECOGNIZERS:
        rng = np.random.default_rng(0)
        tallies: Tallies = defaultdict(Tally)
        for _ in range(draws):
            calibration = simulate(rng, recognizer, max(SIZES))
            add_draw(tallies, calibration, simulate(rng, recognizer, NEW_IMAGES))
        oracles = {level: oracle_shares(recognizer, level) for level in LEVELS}
        for n in SIZES:
            for level in LEVELS:
                kinds = {
                    (rule, name): tally.summary(level)
                    for (rule, name, *key), tally in tallies.items()
                    if key == [n, level]
                }
                print_selection_row(recognizer, n, level, kinds, oracles[level])
                rows += [
                    (recognizer, n, level, *k, *s, *oracles[level].get(k[1], ("", "")))
                    for k, s in kinds.items()
                ]
    if file:
        with open(file, "w", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            header = "recognizer images level rule claim false_share error above draws share"
            writer.writerow([*header.split(), "true_probabilities", "clairvoyant"])
            writer.writerows(rows)


def print_selection_row(
    recognizer: str,
    n: int,
    level: float,
    kinds: dict[tuple[str, str], tuple[float, ...]],
    oracles: dict[str, tuple[float, float]],
) -> None:
    """Print a row with the largest false share, and means over labels and predicted targets."""
    labels, queries = [name for name in oracles if name not in QUERIES], list(QUERIES)
    cells = []
    for names in (labels, queries):
        worst = max((kinds["ours", name] for name in names), key=lambda value: value[0])
        cells.append(f"{100 * worst[0]:.2f} ± {200 * worst[1]:.2f}")
    cells.append(f"{max(value[2] for value in kinds.values()):.1f}")
    for names in (labels, queries):
        shares = [[kinds[rule, name][4] for name in names] for rule in ("ours", "BH")]
        best = [[oracles[name][i] for name in names] for i in (1, 0)]
        means = [f"{100 * np.mean(values):.1f}" for values in (*shares, *best)]
        is_goal = np.array(best[0]) >= GOAL_SHARE
        is_reached = is_goal & (np.array(shares[0]) >= 0.5 * np.array(best[0]))
        reached = f"{is_reached.sum()} of {is_goal.sum()}"
        cells += [*means, reached] if names is labels else means[:3]
    cells.append(f"{100 * kinds['BY', ALL][4]:.1f}")
    cells.append(f"{100 * kinds['BY', ALL][0]:.2f} ± {200 * kinds['BY', ALL][1]:.2f}")
    print(f"| {recognizer} | {n} | {level} | {' | '.join(cells)} |", flush=True)


def thresholds(draws: int) -> None:
    """Print the share of draws in which the guarantees of thresholds are violated."""
    print(
        "| guarantee | recognizer | images | level | violated, % | not reached, % | mean risk, % |"
    )
    print("|---|---|--:|--:|--:|--:|--:|")
    for recognizer in RECOGNIZERS:
        test = simulate(np.random.default_rng(1), recognizer, MANY_IMAGES // 2)
        truth = record_validation(test.logits, test.is_positive.astype(float))
        risks = {
            "wrong": truth.false_discovery_sum / np.maximum(truth.images_with_predictions, 1),
            "missed": truth.false_negative_sum / truth.images_with_positives,
        }
        for n in SIZES:
            rng = np.random.default_rng(0)
            samples = (simulate(rng, recognizer, n) for _ in range(draws))
            records = [record_validation(s.logits, s.is_positive.astype(float)) for s in samples]
            for name, guarantee in sorted(GUARANTEES.items()):
                risk = risks["wrong" if "wrong" in name else "missed"]
                for level in LEVELS:
                    results = [guarantee(record, level=level) for record in records]
                    index = [int(np.searchsorted(truth.thresholds, r.threshold)) for r in results]
                    reached = np.array([r.is_reached for r in results])
                    true_risk = np.where(reached, risk[index], 0.0)
                    violated = true_risk > level
                    print(
                        f"| `{name}` | {recognizer} | {n} | {level} | {percent(violated)} | "
                        f"{100 * (1 - reached.mean()):.1f} | {percent(true_risk)} |",
                        flush=True,
                    )


def percent(values: np.ndarray) -> str:
    """Return the mean in percent, with two standard errors."""
    return f"{100 * values.mean():.2f} ± {200 * values.std(ddof=1) / np.sqrt(len(values)):.2f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("draws", type=int, nargs="?", default=2000)
    parser.add_argument("--only", choices=("selection", "thresholds"))
    parser.add_argument("--csv", help="file for the rows of all labels and queries")
    options = parser.parse_args()
    if options.only != "thresholds":
        selection(options.draws, options.csv)
    if options.only != "selection":
        thresholds(options.draws)


if __name__ == "__main__":
    main()
