"""What operating points promise and keep, with and without shrinkage, on simulated archives.

80 labels of prevalence 0.4 to 20 %, some easy and some hard; their log-odds are calibrated, or each
label is off by a draw of standard deviation 0.5. Thresholds from 300 or 1,000 pictures are judged
on 20,000 others. `python benchmarks/operating_points.py` takes a minute.
"""

import numpy as np
from scipy.special import logit

from surelabel.decisions import OPERATING_POINTS, TrackRecord, track

GOALS = {"precision": {"at_least": 0.8}, "recall": {"at_least": 0.8}, "f1": {}}
LABELS, FRESH, SEEDS = 80, 20_000, 6


def drawn(rng, pictures, prevalence, skill, shift) -> TrackRecord:
    """The track record of as many pictures."""
    targets = rng.random((pictures, LABELS)) < prevalence
    noise = rng.normal(size=targets.shape) + skill * targets
    return track(skill * noise - skill**2 / 2 + logit(prevalence) + shift, targets)


def outcome(found, test: TrackRecord) -> list[float]:
    """Expected and achieved precision and recall, and F1, as means over labels."""
    place = np.searchsorted(test.thresholds, found.values)
    rows = np.arange(LABELS)
    right, shown = test.present[rows, place], test.shown[rows, place]
    precision = np.divide(right, shown, out=np.full(LABELS, np.nan), where=shown > 0)
    f1 = 2 * right / (shown + test.support)
    shares = (found.precision, precision, found.recall, right / test.support, f1)
    return [float(np.nanmean(share)) for share in shares]


def main() -> None:
    print(
        "pictures  off  goal       shrinkage  precision: expected, achieved  recall: the same  F1"
    )
    for pictures in (300, 1000):
        for off in (0.0, 0.5):
            rows: dict[tuple[str, float], list[list[float]]] = {}
            for seed in range(SEEDS):
                rng = np.random.default_rng(seed)
                prevalence = np.exp(rng.uniform(np.log(0.004), np.log(0.2), LABELS))
                kind = prevalence, rng.uniform(1, 4, LABELS), off * rng.normal(size=LABELS)
                record, test = drawn(rng, pictures, *kind), drawn(rng, FRESH, *kind)
                for goal, setting in GOALS.items():
                    for weight in (0.0, 5.0, 10.0, 20.0, 50.0):
                        found = OPERATING_POINTS[goal](record, shrinkage=weight, **setting)
                        rows.setdefault((goal, weight), []).append(outcome(found, test))
            for (goal, weight), values in sorted(rows.items()):
                shown = "  ".join(f"{v:.3f}" for v in np.mean(values, axis=0))
                print(f"{pictures:8}  {off:3}  {goal:9}  {weight:9}  {shown}", flush=True)


if __name__ == "__main__":
    main()
