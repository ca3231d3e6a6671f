"""Propose images to correct next, and corrected targets that are probably wrong."""

from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.data.facility_location import facility_location_order
from surelabel.data.labels.resolution.correction_history import CorrectionHistory, target_array
from surelabel.errors import DataError
from surelabel.evaluation import LabelErrors, find_label_errors
from surelabel.retrieval import Index
from surelabel.web.index_session import IndexedImage
from surelabel.web.indexed_images import (
    describe_images,
    find_images_by_path,
    images_at_positions,
    positions_of_images,
    rows_of_positions,
    stored_logits,
)

MIN_AUDIT_IMAGES = 20  # fewest corrected images for an audit, as for `surelabel audit`
MAX_CONSIDERED_IMAGES = 2048  # sampled, and as many corrected; about one second
SEED = 0


def propose_representative_images(
    index: Index, history: CorrectionHistory, count: int
) -> dict[str, Any]:
    """Return images that represent images far from the corrected ones, as a JSON object.

    The images are chosen by greedy facility location on the stored image vectors, as by
    ``surelabel label-next``. Of a large index, 2,048 images sampled with a seed are considered, and
    the last 2,048 corrected images.

    Args:
        index: Index of the images.
        history: Corrections.
        count: Maximum number of images.

    Raises:
        DataError: If the index is damaged.
    """
    if index.vector_width is None:
        return {
            "images": [],
            "sentence": "The index contains no image vectors. Build the index with "
            "`surelabel index --model`.",
        }
    corrected = list(find_images_by_path(index, history.targets).values())
    selected = positions_of_images(index, corrected[-MAX_CONSIDERED_IMAGES:])
    candidates = np.setdiff1d(_sample_positions(len(index)), positions_of_images(index, corrected))
    positions = np.concatenate([selected, candidates])
    order = facility_location_order(
        _stored_vectors(index, positions),
        np.arange(len(selected)),
        np.arange(len(selected), len(positions)),
        count,
        seed=SEED,
    )
    images = images_at_positions(index, positions[order])
    reason = (
        "This image represents images whose vectors are far from those of the corrected images."
        if corrected
        else "This image represents many images with similar vectors."
    )
    noun = "image" if len(index) <= MAX_CONSIDERED_IMAGES else "sampled image"
    return {
        "images": [{**image, "reason": reason} for image in describe_images(index, images)],
        "sentence": f"{format_count(len(images), 'image')} of "
        f"{format_count(len(candidates), noun)} without corrections. With the "
        f"{format_count(len(corrected), 'corrected image')}, they are chosen to represent all "
        "images well (facility location).",
    }


def propose_target_checks(index: Index, history: CorrectionHistory, count: int) -> dict[str, Any]:
    """Return corrected targets that are probably wrong, as a JSON object.

    The probabilities of errors are estimated from the stored log-odds. They are biased if the
    recognizer was fitted on the corrections.

    Args:
        index: Index of the images.
        history: Corrections.
        count: Maximum number of targets.

    Raises:
        DataError: If the index is damaged.
    """
    images = [*find_images_by_path(index, history.targets).values()]
    targets = target_array(history.targets, [image.path for image in images], index.names)
    rows = np.flatnonzero(~np.isnan(targets).all(axis=1))
    used_images, targets = [images[row] for row in rows], targets[rows]
    if missing := _missing_targets(targets):
        return {"images": [], "sentence": missing}
    errors = find_label_errors(stored_logits(index, used_images), targets)
    cells = np.argwhere(errors.flagged)
    order = np.argsort(-errors.error_probabilities[tuple(cells.T)], kind="stable")[:count]
    request = " Check each of these targets." if len(cells) else ""
    return {
        "images": _describe_errors(index, used_images, errors, cells[order]),
        "sentence": f"{format_count(len(cells), 'target')} of "
        f"{format_count(int(errors.known.sum()), 'corrected target')} "
        f"{'is' if len(cells) == 1 else 'are'} more likely wrong than correct, according to the "
        f"stored probabilities.{request}",
    }


def _describe_errors(
    index: Index,
    images: list[IndexedImage],
    errors: LabelErrors,
    cells: npt.NDArray[np.int64],
) -> list[dict[str, Any]]:
    """Return one JSON object for each pair of an image and a label."""
    descriptions = describe_images(index, [images[row] for row, _ in cells])
    results = []
    for description, (row, column) in zip(descriptions, cells.tolist(), strict=True):
        target = int(errors.is_positive[row, column])
        probability = float(errors.probabilities[row, column])
        results.append(
            {
                **description,
                "label": index.names[column],
                "target": target,
                "error_probability": float(errors.error_probabilities[row, column]),
                "reason": f"The corrected target is {'positive' if target else 'negative'}, but "
                f"the stored probability is {probability:.3g}.",
            }
        )
    return results


def _missing_targets(targets: npt.NDArray[np.float64]) -> str:
    """Return a sentence about the targets that an audit lacks, or an empty text."""
    if len(targets) < MIN_AUDIT_IMAGES:
        return (
            f"An audit requires at least {MIN_AUDIT_IMAGES} corrected images; there are "
            f"{len(targets)}. Correct more images."
        )
    for target, name in ((1, "positive"), (0, "negative")):
        if not (targets == target).any():
            return (
                "An audit requires positive and negative corrected targets; there is no "
                f"{name} one. Correct images with {name} labels."
            )
    return ""


def _sample_positions(n_images: int) -> npt.NDArray[np.int64]:
    """Return the positions of all images, or of a sample of a large index, ``(m,)``."""
    if n_images <= MAX_CONSIDERED_IMAGES:
        return np.arange(n_images)
    rng = np.random.default_rng(SEED)
    return np.sort(rng.choice(n_images, MAX_CONSIDERED_IMAGES, replace=False))


def _stored_vectors(index: Index, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return the stored image vectors at positions of ``index.paths``, ``(k, d)``.

    The checksums of the vectors are not verified, because that would read all rows.

    Raises:
        DataError: If a file was truncated, or a value is not finite.
    """
    assert index.vector_width is not None  # checked by the caller
    vectors = np.empty((len(positions), index.vector_width), np.float32)
    start = 0
    for shard in index.searcher.shards:
        places = np.flatnonzero((positions >= start) & (positions < start + len(shard)))
        if len(places):
            shard.mapped_files.check_not_truncated()
            rows = rows_of_positions(shard, positions[places] - start)
            vectors[places] = shard.mapped_files.arrays["features"][rows]
        start += len(shard)
    if not np.isfinite(vectors).all():
        raise DataError(
            "The stored image vectors must be finite; the index is damaged. Build the index again "
            "(`surelabel index`)."
        )
    return vectors
