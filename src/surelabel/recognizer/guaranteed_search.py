"""Search an index with a bound on the expected share of images that do not match the query."""

import warnings
from dataclasses import dataclass

import numpy as np

from surelabel.arrays import Array, Flags
from surelabel.counts import format_count
from surelabel.decisions import (
    accept_claims,
    fewest_calibration_images,
)
from surelabel.errors import InputError
from surelabel.progress import Progress
from surelabel.recognizer.calibration_sample import (
    CalibrationSample,
    are_calibration_rows,
    make_calibration_sample,
)
from surelabel.recognizer.index_recognizer import check_recognizer_of_index, recognizer_of_index
from surelabel.recognizer.inputs import LabelledInput
from surelabel.recognizer.recognizer import Recognizer
from surelabel.recognizer.used_rows import image_keys
from surelabel.retrieval import HitList, Index, Query, parse
from surelabel.retrieval.formula import is_formula_true
from surelabel.retrieval.formula_probability import formula_log_probability, read_logits_of_columns
from surelabel.retrieval.query_resolution import ResolvedQuery, resolve_label_query
from surelabel.storage.image_paths import absolute_image_path

ROUNDING = 1e-6  # relative difference of probabilities of one image in two batches


@dataclass(frozen=True, eq=False)
class GuaranteedSearch:
    """Result of :func:`search_with_guarantee`.

    Attributes:
        hits: Accepted images, sorted by decreasing probability.
        max_wrong: Bound of the expected share of accepted images that do not match the query.
        images: Number of images among which the search selected.
        left_out: Number of images of the index that were left out, because they are calibration
            images or images of the fit.
        calibration_images: Number of calibration images with known targets of all queried labels.
        matches: Number of calibration images that match the query.
    """

    hits: HitList
    max_wrong: float
    images: int
    left_out: int
    calibration_images: int
    matches: int

    @property
    def guarantee(self) -> str:
        """Return sentences that state the bound for the hits and its condition."""
        return (
            "The expected share of hits that do not match the query is at most "
            f"{100 * self.max_wrong:g} %. The bound requires that the "
            f"{format_count(self.calibration_images, 'calibration image')} are a random sample of "
            "the indexed images. The bound holds for the list of all hits, not for a single image."
        )


def search_with_guarantee(
    index: Index,
    query: str | Query,
    calibration: LabelledInput,
    *,
    recognizer: Recognizer | None = None,
    max_wrong: float = 0.1,
    progress: Progress | None = None,
) -> GuaranteedSearch:
    """Search an index such that few returned images do not match the query.

    The images with the highest probabilities are returned. The expected share of images that do not
    match is at most ``max_wrong``, if the calibration images are a random sample of the images of
    the index. Calibration images and images of the fit are left out of the result, because their
    targets are known. If a strategy chose images for the fit, sample the calibration images after
    the fit.

    If few images match, many calibration images are needed: some of them must have a high
    probability for the query, at least 4 with ``max_wrong`` 0.1 and 7 with 0.05.

    Args:
        index: Index of images.
        query: Query of labels such as ``"fork & (apple | pear) & !knife"``; see
            ``Index.search``.
        calibration: Annotated random sample. The function leaves out images without a known target
            of each queried label, rows that a strategy chose, and images that the recognizer was
            fitted or calibrated on.
        recognizer: Recognizer of the index. If None, the recorded recognizer is loaded.
        max_wrong: Bound of the expected share of images that do not match, in (0, 1).
        progress: Function called with the number of encoded calibration images and the number of
            all calibration images.

    Raises:
        InputError: If too few calibration images remain to accept any image, if a target of a
            calibration image is neither 0 nor 1, or if the index contains only calibration images
            and images of the fit. Also if the query is invalid or contains sentences or filters, or
            if the recognizer is not that of the index. Also if the index is in sparse form, because
            its probabilities differ from those of the calibration images.
        UnknownName: If a label of the query is not in the index.
        ConfigError: If ``max_wrong`` is outside (0, 1).
        DataError: If no calibration image can be read, or the index is damaged.

    Source:
        Conformal selection for retrieval, arXiv:2510.08075, after Jin and Candès, Selection by
        Prediction with Conformal p-values, Journal of Machine Learning Research 24, 2023.

    Differs:
        The function was written without the code of the papers. The confidence is the probability
        of the query. For queries with few matching calibration images, one test replaces
        Benjamini-Hochberg; see ``decisions.claim_selection``.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import surelabel as sl
        >>> rng = np.random.default_rng(0)
        >>> logits = rng.normal(scale=4, size=(900, 2))
        >>> targets = (rng.random((900, 2)) < 1 / (1 + np.exp(-logits))) * 1.0
        >>> paths = [f"{row}.jpg" for row in range(900)]
        >>> scores = sl.LabelledScores(
        ...     logits, "logits", columns=["dog", "car"], targets=targets, paths=paths)
        >>> recognizer = sl.Recognizer.from_scores("logits", ["dog", "car"])
        >>> with TemporaryDirectory() as folder:
        ...     index = sl.Index.create(folder, recognizer.predict(scores))
        ...     found = sl.search_with_guarantee(
        ...         index, "dog & !car", scores.take(range(300)), recognizer=recognizer)
        >>> found.images, found.left_out, len(found.hits)
        (600, 300, 114)
    """
    query = parse(query) if isinstance(query, str) else query
    if index.drop_below is not None:
        raise InputError(
            f"max_wrong requires an index with all probabilities; {index.folder} does not store "
            f"probabilities below {index.drop_below:g}. Compute the probabilities again "
            "(`surelabel index INDEX --rescore`), or build the index again (`surelabel index`)."
        )
    resolved = resolve_label_query(query, index.names)
    fewest = fewest_calibration_images(max_wrong)
    recognizer = recognizer_of_index(index) if recognizer is None else recognizer
    check_recognizer_of_index(index, recognizer)
    sample = make_calibration_sample(recognizer, calibration, progress=progress)
    rows = sample.known[:, resolved.columns].all(axis=1)
    if rows.sum() < fewest:
        raise InputError(
            f"max_wrong {max_wrong:g} requires at least "
            f"{format_count(fewest, 'calibration image')} with known targets for all labels of the "
            f"query; got {int(rows.sum())}. Annotate more random images, or increase max_wrong."
        )
    confidences = _query_probabilities(sample, resolved)
    is_false = ~is_formula_true(resolved.formula, sample.is_positive.T)
    probabilities = index.probabilities(query)
    is_new = _is_new_in_index(index, probabilities, sample, confidences, recognizer)
    if not is_new.any():
        raise InputError(
            "At least one image of the index must be new, that is, not used for the fit or the "
            f"calibration; got no new image among {format_count(len(is_new), 'image')}. Index "
            "other images."
        )
    accepted = accept_claims(
        probabilities[is_new], confidences[rows], is_false[rows], level=max_wrong
    )
    return GuaranteedSearch(
        _accepted_hits(index, query, probabilities, is_new, accepted),
        max_wrong,
        int(is_new.sum()),
        int((~is_new).sum()),
        int(rows.sum()),
        int((rows & ~is_false).sum()),
    )


def _query_probabilities(sample: CalibrationSample, query: ResolvedQuery) -> Array:
    """Return the probability that each calibration image matches a query, ``(n,)``."""
    read_logits = read_logits_of_columns(sample.logits.T)
    log_probabilities = formula_log_probability(query.formula, read_logits, slice(None))
    probabilities: Array = np.exp(log_probabilities)
    return probabilities


def _is_new_in_index(
    index: Index,
    probabilities: Array,
    sample: CalibrationSample,
    confidences: Array,
    recognizer: Recognizer,
) -> Flags:
    """Return which images of an index are neither calibration images nor images of the fit.

    Image files are compared by their content. Vectors and scores are compared by their name and
    their probability, because the index does not store their values.
    """
    has_files = sample.predictions.hashes is not None  # False for vectors and scores
    hashes = [text if has_files else None for text in index.content_hashes]
    is_file = np.array([text is not None for text in hashes], dtype=bool)
    keys = image_keys([text for text in hashes if text is not None])
    paths = index.paths_of_rows(np.flatnonzero(is_file).tolist())
    is_used = are_calibration_rows(keys, paths, sample)
    used_rows = recognizer.used_rows
    if used_rows is not None:
        is_used |= used_rows.contain(keys)
        if not is_file.all() and len(used_rows.fit) + len(used_rows.calibration):
            warnings.warn(
                "The index stores no hashes of vectors and scores, so rows of the fit or an "
                "earlier calibration are not detected. The bound holds only if the index contains "
                "no such rows.",
                stacklevel=3,
            )
    is_new = np.ones(len(hashes), dtype=bool)
    is_new[is_file] = ~is_used
    named = dict(zip(map(absolute_image_path, sample.predictions.paths), confidences, strict=True))
    rows = np.flatnonzero(~is_file)
    expected = np.array([named.get(path, np.nan) for path in index.paths_of_rows(rows.tolist())])
    is_new[rows] = ~np.isclose(probabilities[rows], expected, rtol=ROUNDING, atol=0)
    return is_new


def _accepted_hits(
    index: Index, query: Query, probabilities: Array, is_new: Flags, accepted: Flags
) -> HitList:
    """Return the accepted images, with the probability of each label of the query."""
    if not accepted.any():
        return HitList([], query)
    rows = np.flatnonzero(is_new)[accepted]
    paths = set(index.paths_of_rows(rows.tolist()))
    lowest = float(probabilities[rows].min()) * (1 - ROUNDING)
    hits = index.search(query, None, min_probability=lowest)
    return HitList([hit for hit in hits if hit.path in paths], query)
