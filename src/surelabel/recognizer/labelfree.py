"""A calibration without a label: from what single parts of unlabelled pictures show."""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from surelabel.backbones import Backbone, prompt_templates, reference_names
from surelabel.config import Run
from surelabel.data import FeatureCache
from surelabel.decisions import track
from surelabel.encoding import Progress, encode, encode_views
from surelabel.errors import DataError, InputError
from surelabel.methods.wording import BACKGROUNDS, spelled
from surelabel.pseudolabels import seen_in_parts
from surelabel.recognizer.calibrating import FEW, Calibration
from surelabel.records import Array
from surelabel.shapes import check_shapes
from surelabel.views import Regions

STARTS = (0.0, 0.25, 0.5)
PARTS = Regions([(x, y, x + 0.5, y + 0.5) for y in STARTS for x in STARTS])
AT_ONCE = 256  # pictures whose parts are compared with all words at once


def calibrated_without_labels(
    run: Run,
    backbone: Backbone,
    spellings: Sequence[str],
    raw: Array,
    paths: Sequence[str],
    *,
    cache: FeatureCache | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Fit the run's calibrator on unlabelled pictures, whatever method gave their scores.

    How likely each name is in each picture is taken from the encoder's softmax, of the whole
    picture and of nine overlapping parts half as wide and high, over the names and all everyday
    things; the calibrator learns to say so of the scores. The record that comes with it is what
    the probabilities promise, not what anybody saw.

    Args:
        run: Says which calibrator, templates and background words.
        backbone: Of pictures and texts.
        spellings: One text a name. An everyday thing that is spelled like a name is not held
            against it; one that means the same is, so write ``sofa|couch``.
        raw: What the calibrator is to be given: log-odds, or scores where there is no link, of
            the same pictures, ``(n, c)``.
        paths: Of these pictures, ``n``; those that cannot be read are left out.
        cache: Where vectors are kept.
        progress: Called with whole pictures done and their total, then with those whose parts are.

    Raises:
        InputError: ``raw`` is not one row a picture and one column a name.
        DataError: no picture can be read.
        ConfigError: the encoder knows no texts, or takes no pictures.

    Source:
        none; ours. Measured beside labelled pictures, sewn pictures and mixtures:
        docs/calibrators.md.
    """
    raw = np.asarray(raw, dtype=np.float64)
    check_shapes(raw=(raw, "n c"))
    if raw.shape != (len(paths), len(spellings)):
        raise InputError(
            f"raw must have one row a picture and one column a name, ({len(paths)}, "
            f"{len(spellings)}). Got {raw.shape}."
        )
    rows, vectors = _looked_at(backbone, paths, cache, progress)
    targets = _seen(run, backbone, spellings, vectors)
    fitted = run.make("calibrator")().fit(raw[rows], targets)
    about = f"{run.calibrator.name} without labels: from what parts of {len(rows)} pictures show"
    logits = fitted.logits(raw[rows])
    promised = track(logits, expit(logits)) if len(rows) >= FEW else None
    return Calibration(run.calibrator.name, fitted, about, promised, labelled=False)


def _looked_at(
    backbone: Backbone,
    paths: Sequence[str],
    cache: FeatureCache | None,
    progress: Progress | None,
) -> tuple[list[int], Tensor]:
    """Row numbers of the pictures that can be read, and vectors of wholes and parts ``(n, t, d)``.

    Raises:
        DataError: no picture can be read.
    """
    whole = encode(backbone, paths, cache=cache, progress=progress)
    read = [paths[r] for r in whole.rows]
    parts = encode_views(backbone, read, PARTS, hashes=whole.hashes, cache=cache, progress=progress)
    good = [i for i in range(len(read)) if i not in parts.unread]
    if not good:
        raise DataError(f"None of {len(read)} pictures could be read again, such as {read[0]}.")
    together = torch.cat([whole.features.pooled[:, None], parts.views], dim=1)
    return whole.rows[good].tolist(), together[good]


def _seen(run: Run, backbone: Backbone, spellings: Sequence[str], vectors: Tensor) -> Array:
    """How likely each name is in each picture, ``(n, c)``."""
    sentences = prompt_templates(run.method.settings.get("templates", "one"))
    names = spelled(backbone, spellings, sentences).cpu()
    others = backbone.texts(_other_words(run, spellings), sentences).cpu()
    found = [
        seen_in_parts(*(backbone.scale * (block @ texts.T).double() for texts in (names, others)))
        for block in vectors.split(AT_ONCE)
    ]
    return torch.cat(found).numpy()


def _other_words(run: Run, spellings: Sequence[str]) -> list[str]:
    """Everyday things and backgrounds, and the run's own background words, that are no name."""
    own = run.method.settings.get("background", ())
    words = (*reference_names(), *BACKGROUNDS["usual"], *(() if isinstance(own, str) else own))
    taken = {one.strip().casefold() for name in spellings for one in name.split("|")}
    return [word for word in dict.fromkeys(words) if word.casefold() not in taken]
