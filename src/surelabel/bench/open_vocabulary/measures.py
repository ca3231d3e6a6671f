"""What one answer is worth: on the test pictures, and on resamples of them."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel.bench.open_vocabulary.pictures import Pictures
from surelabel.bench.open_vocabulary.taught import Answer
from surelabel.bench.resampling import Resamples, resampled
from surelabel.evaluation import OpenVocabulary, open_vocabulary
from surelabel.evaluation.protocol import PLACES, Protocol
from surelabel.metrics.ratio import ratio
from surelabel.records import Array, Flags

SIDES = ("seen", "unseen")
WHAT = ("f1_at_3", "f1_at_5", "map")
RANKED = tuple(f"{part}_{what}" for part in ("zsl", "gzsl") for what in WHAT)
HONEST = tuple(f"{side}_{metric}" for side in SIDES for metric in ("ece", "brier_skill"))
MEASURES = RANKED + HONEST


def judged(pictures: Pictures, answer: Answer) -> OpenVocabulary:
    """By the protocol of papers, and by its probabilities."""
    targets, known, seen = labels_of(pictures)
    return open_vocabulary(answer.scores, targets, seen, known, expit(answer.logits))


def values(found: OpenVocabulary) -> dict[str, float]:
    """Name → number; what is not of probabilities stands under ``zsl_`` and ``gzsl_``."""
    ranked = _ranked("zsl", found.zsl) | _ranked("gzsl", found.gzsl)
    sides = {
        f"{side}_{metric}": value
        for metric, both in found.sides.items()
        for side, value in both.items()
    }
    by_chance = {f"{side}_ece_by_chance": found.floor["ece"][side] for side in SIDES}
    return {name: float(value) for name, value in (ranked | sides | by_chance).items()}


def ceilings(found: OpenVocabulary) -> dict[str, float]:
    """What a perfect ranking reaches: the same for all answers."""
    return {
        f"{part}_f1_at_{k}": one.ceiling.best[k].f1
        for part, one in (("zsl", found.zsl), ("gzsl", found.gzsl))
        for k in PLACES
    }


def drawn(pictures: Pictures, answer: Answer, *, draws: int) -> dict[str, Array]:
    """``MEASURES`` of the test pictures themselves, then of each resample, ``(1 + draws,)``."""
    targets, known, seen = labels_of(pictures)
    unseen = np.setdiff1d(np.arange(targets.shape[1]), seen)
    weights = resampled(len(targets), draws=draws)
    asked = (targets[:, unseen] > 0).any(axis=1)  # zero-shot looks at pictures with an unseen label
    found = _rankings("zsl", answer.scores[:, unseen], targets[:, unseen] > 0, weights * asked)
    found |= _rankings("gzsl", answer.scores, targets > 0, weights)
    for side, columns in (("seen", seen), ("unseen", unseen)):
        honest = Resamples(targets[:, columns], known[:, columns], draws=draws)
        metrics = honest.metrics(answer.logits[:, columns])
        found |= {f"{side}_{name}": metrics[name] for name in ("ece", "brier_skill")}
    return {name: found[name] for name in MEASURES}


def labels_of(pictures: Pictures) -> tuple[Array, Flags, npt.NDArray[np.intp]]:
    """Targets and what is known of them, seen names first, and the columns of these."""
    vocabulary, test = pictures.vocabulary, pictures.test
    columns = [list(test.names).index(name) for name in vocabulary.names]
    return test.targets[:, columns], test.known[:, columns], np.arange(len(vocabulary.seen))


def _ranked(part: str, one: Protocol) -> dict[str, float]:
    found = {f"{part}_f1_at_{k}": one.found.best[k].f1 for k in PLACES}
    found[f"{part}_map"] = one.found.mean_average_precision
    found[f"{part}_map_filled"] = one.found.mean_average_precision_filled
    return found


def _rankings(part: str, scores: Array, present: Flags, weights: Array) -> dict[str, Array]:
    """F1 at k and mean average precision by resample, for scores without ties."""
    order = np.argsort(-scores, axis=1, kind="stable")
    there = weights @ present.sum(axis=1)
    found = {}
    for k in PLACES:
        hits = np.take_along_axis(present, order[:, :k], axis=1).sum(axis=1)
        chosen = weights.sum(axis=1) * min(k, scores.shape[1])
        found[f"{part}_f1_at_{k}"] = ratio(2 * (weights @ hits), chosen + there)
    columns = zip(scores.T, present.T, strict=True)
    each = np.array([_precision(column, shown, weights) for column, shown in columns])
    found[f"{part}_map"] = ratio(np.nansum(each, axis=0), (~np.isnan(each)).sum(axis=0))
    return found


def _precision(scores: Array, present: Flags, weights: Array) -> Array:
    """Average precision of one label by resample; NaN where it is in no picture."""
    order = np.argsort(-scores, kind="stable")
    counts, there = weights[:, order], present[order]
    hits = (counts * there).cumsum(axis=1)[:, there]
    precision = ratio(hits, counts.cumsum(axis=1)[:, there])
    precision = np.nan_to_num(precision)  # before the first picture that counts
    shown = counts[:, there]
    return np.asarray(ratio((shown * precision).sum(axis=1), shown.sum(axis=1)))
