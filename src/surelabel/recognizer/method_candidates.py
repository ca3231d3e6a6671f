"""List the methods that a model selection can compare, and estimate the time of each method."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
from torch import Tensor

from surelabel.config import TEACHERS
from surelabel.encoders.image_only.precomputed_features import PrecomputedFeatures
from surelabel.errors import ConfigError, InputError, NoReadableImage
from surelabel.features import EncodedImages, FeatureCache
from surelabel.features.cache import Float16Array
from surelabel.links import Sigmoid
from surelabel.methods import (
    METHODS,
    FitsTargets,
    LearnsFromImages,
    SelectsPenalties,
    TunesTexts,
)
from surelabel.recognizer.compatibility import check_fit_compatibility
from surelabel.recognizer.feature_extraction import max_encoder_passes
from surelabel.recognizer.fitting import (
    FittingData,
    fit_recognizer_method,
    make_link_for_fitting,
    make_method_for_fitting,
)
from surelabel.recognizer.inputs import (
    LabelledInput,
    check_recognizer_vector_inputs,
    encode_recognizer_input,
)
from surelabel.recognizer.penalty_fitting import expected_penalty_fit_seconds
from surelabel.recognizer.recognizer import Recognizer
from surelabel.records import Features, LabelledFeatures
from surelabel.training import feature_batch_tensors

SAMPLE_IMAGES = 8  # images whose encoding is timed
SLOW_SECONDS = 1.0  # time of the first image above which no further image is timed
TIMED_EPOCHS = 3  # of one step; the first epoch is not timed, because it includes initialization
MAX_FEATURE_BYTES = 4 * 2**30  # limit for the features of all training images in memory


@dataclass(frozen=True)
class MethodCandidate:
    """Method that is compared with other methods.

    Attributes:
        recognizer: Recognizer with the method, not fitted on the images.
        encoder_passes: Largest number of encoder passes of an image.
        expected_seconds: Expected time for encoding the images and for the fits of all folds. The
            features that a previous candidate needs are encoded only once.
    """

    recognizer: Recognizer
    encoder_passes: int
    expected_seconds: float


def selectable_methods() -> list[str]:
    """Return the keys of the methods that a model selection compares.

    The selection compares methods that need no annotations, and methods that are fitted on
    annotated images from cached features. It does not compare methods that train a tower of the
    encoder or encode prompts in training steps. Methods that are trained on pseudo-labels, on texts
    or on pairs are not compared either.
    """
    trained = [
        name
        for name, entry in METHODS.items()
        if entry.learns_from == "labels"
        and "pixels" not in entry.needs
        and not issubclass(entry, TunesTexts)
    ]
    return [*TEACHERS, *trained]


def time_method_candidates(
    source: LabelledInput,
    recognizers: Iterable[Recognizer],
    *,
    folds: int,
    minutes: float,
    max_passes: int | None,
) -> tuple[list[MethodCandidate], dict[str, str]]:
    """Return the methods that can be compared within a time limit, and the methods left out.

    The function measures the time of encoding a few images and of a few training steps. Nothing is
    written to the cache, so that a second call does not become faster.

    Args:
        source: Images or features with labels.
        recognizers: Recognizers with the same encoder and the same labels.
        folds: Number of cross-validation folds.
        minutes: Maximum expected time of a method, in minutes.
        max_passes: Maximum number of encoder passes of an image. If None, there is no maximum.

    Returns:
        Candidates, fewest encoder passes first, and the reason why each other method is left out,
        by key of the method.

    Raises:
        DataError: If no image can be read.
    """
    candidates, left_out = list[MethodCandidate](), dict[str, str]()
    cache: SampleCache | None = None
    for recognizer in sorted(recognizers, key=lambda r: max_encoder_passes(r.method)):
        name, encoder_passes = recognizer.run.method.name, max_encoder_passes(recognizer.method)
        if max_passes is not None and encoder_passes > max_passes:
            left_out[name] = (
                f"needs {encoder_passes} encoder passes, more than the maximum of {max_passes}"
            )
            continue
        cache = cache or SampleCache(recognizer.cache)
        attempt = cache.copy()
        try:
            check_candidate_compatibility(recognizer, source, folds)
            seconds, n_bytes = _expected_cost(recognizer, source, attempt, folds)
        except (ConfigError, InputError) as error:
            left_out[name] = first_sentence_of(error)
            continue
        if seconds > 60 * minutes:
            left_out[name] = (
                f"takes about {describe_seconds(seconds)}, more than the maximum of {minutes:g} "
                "minutes"
            )
        elif recognizer.method.learns_from != "nothing" and n_bytes > MAX_FEATURE_BYTES:
            left_out[name] = (
                f"needs {n_bytes / 2**30:.0f} GiB of memory for features, more than the maximum of "
                f"{MAX_FEATURE_BYTES // 2**30} GiB"
            )
        else:
            cache = attempt
            candidates.append(MethodCandidate(recognizer, encoder_passes, seconds))
    return candidates, left_out


def check_candidate_compatibility(
    recognizer: Recognizer, source: LabelledInput, folds: int
) -> None:
    """Check that a method can be fitted on or score the images of a model selection.

    Raises:
        ConfigError: If a setting is not compatible with the method or the encoder. Also if the
            method needs images and ``source`` contains vectors, or if the method is fitted without
            gradients and the encoder encodes images.
        InputError: If there are fewer images than a regularizer compares.
    """
    is_of_images = not isinstance(recognizer.encoder, PrecomputedFeatures)
    if isinstance(recognizer.method, FitsTargets) and is_of_images:
        raise ConfigError(
            f"The comparison includes {recognizer.run.method.name} only for precomputed vectors; "
            f"got the encoder {recognizer.encoder.name}. To use this method, give --method "
            f"{recognizer.run.method.name}."
        )
    if isinstance(source, LabelledFeatures):
        check_recognizer_vector_inputs(recognizer.method)
    if recognizer.method.learns_from != "nothing":
        check_fit_compatibility(
            recognizer.run,
            recognizer.method,
            recognizer.encoder,
            recognizer.names_with_aliases,
            source,
            folds if recognizer.method.learns_from == "labels" else 0,
        )


def first_sentence_of(error: Exception) -> str:
    """Return the first sentence of an error, without the full stop."""
    return str(error).partition(". ")[0].removesuffix(".")


def describe_seconds(seconds: float) -> str:
    """Return a time in seconds or minutes, such as ``40 seconds`` or ``7 minutes``.

    Example:
        >>> describe_seconds(0.2), describe_seconds(59), describe_seconds(400)
        ('1 second', '59 seconds', '7 minutes')
    """
    number, unit = (seconds, "second") if seconds < 90 else (seconds / 60, "minute")
    count = max(1, math.ceil(number))
    return f"{count} {unit}" if count == 1 else f"{count:,} {unit}s"


class SampleCache(FeatureCache):
    """Cache that reads features from another cache, and keeps new features in memory only.

    Args:
        cache: Cache of features, which is not changed.
    """

    def __init__(self, cache: FeatureCache):
        super().__init__(cache.folder, limit_bytes=cache.limit_bytes)
        self._cache = cache
        self._new_arrays: dict[tuple[str, str], dict[str, Float16Array]] = defaultdict(dict)

    def copy(self) -> "SampleCache":
        """Return a cache with the same features, to which features can be added separately."""
        other = SampleCache(self._cache)
        for key, arrays in self._new_arrays.items():
            other._new_arrays[key] = dict(arrays)
        return other

    def keys(self, fingerprint: str, kind: str) -> frozenset[str]:
        """Return the cached keys of an encoder fingerprint and a kind of features."""
        return self._cache.keys(fingerprint, kind) | self._new_arrays[fingerprint, kind].keys()

    def get(self, fingerprint: str, kind: str, keys: Iterable[str]) -> dict[str, Float16Array]:
        """Return the cached arrays of ``keys``."""
        requested, new_arrays = list(keys), self._new_arrays[fingerprint, kind]
        arrays = {key: new_arrays[key] for key in requested if key in new_arrays}
        others = [key for key in requested if key not in arrays]
        return arrays | self._cache.get(fingerprint, kind, others)

    def put(self, fingerprint: str, kind: str, arrays: Mapping[str, npt.ArrayLike]) -> None:
        """Store arrays in memory in fp16."""
        self._new_arrays[fingerprint, kind] |= {
            key: np.asarray(array, dtype=np.float16) for key, array in arrays.items()
        }


def _expected_cost(
    recognizer: Recognizer, source: LabelledInput, cache: SampleCache, folds: int
) -> tuple[float, float]:
    """Return the expected time of a method in seconds, and the size of its features in bytes.

    Raises:
        NoReadableImage: If no image can be read.
    """
    n_images = len(source)
    n_train = math.ceil(n_images * (folds - 1) / folds)
    sample, encoded, seconds_per_image = _time_encoding(recognizer, source, cache)
    n_encoded = len(encoded.rows)
    seconds = n_images * seconds_per_image
    n_bytes = n_images / n_encoded * _n_bytes_of_features(encoded.features)
    run, names = recognizer.run, recognizer.names_with_aliases
    if recognizer.method.learns_from == "images":
        method = make_method_for_fitting(run, recognizer.encoder, names)
        assert isinstance(method, LearnsFromImages)  # students are not selectable
        start = time.perf_counter()
        method.fit_unlabelled(encoded.features)
        seconds += folds * n_train / n_encoded * (time.perf_counter() - start)
    elif isinstance(recognizer.method, FitsTargets):
        seconds += folds * _seconds_of_fit_at_once(recognizer, source, cache, n_train)
    elif recognizer.method.learns_from == "labels":
        labelled = recognizer.align_labels(sample)
        targets, known = feature_batch_tensors(
            labelled.targets[encoded.rows], labelled.known[encoded.rows]
        )
        data = FittingData([str(row) for row in encoded.rows], encoded.features, targets, known)
        seconds += folds * _expected_fit_seconds(recognizer, data, n_train)
    return seconds, n_bytes


def _expected_fit_seconds(recognizer: Recognizer, sample: FittingData, n_images: int) -> float:
    """Return the expected time of a fit on n images, from steps on repeated sample images.

    For heads whose penalties are chosen by folds, the time is that of a fit on random vectors.

    Args:
        recognizer: Recognizer of the fit.
        sample: Training data of a few images.
        n_images: Number of training images.
    """
    run, method = recognizer.run, recognizer.method
    if isinstance(method, SelectsPenalties) and method.penalty_folds:
        link = make_link_for_fitting(run) or Sigmoid()
        return expected_penalty_fit_seconds(
            sample.features.pooled.shape[1],
            sample.targets.shape[1],
            n_images,
            folds=method.penalty_folds,
            loss=run.entry("loss"),
            link=link,
        )
    rows = np.arange(len(sample.targets))
    batch = sample.take(np.resize(rows, min(run.batch_size, n_images)))
    steps = run.epochs * math.ceil(n_images / run.batch_size)
    return steps * _seconds_per_step(recognizer, batch)


def _time_encoding(
    recognizer: Recognizer, source: LabelledInput, cache: SampleCache
) -> tuple[LabelledInput, EncodedImages, float]:
    """Encode a sample of the images; return the sample, its features and the seconds per image.

    Raises:
        NoReadableImage: If no image can be read.
    """
    order = np.random.default_rng(recognizer.run.seed).permutation(len(source))
    error: NoReadableImage | None = None
    for start in range(0, len(order), SAMPLE_IMAGES):
        sample = source.take(order[start : start + SAMPLE_IMAGES])
        try:
            return _time_encoding_of_sample(recognizer, sample, cache)
        except NoReadableImage as sample_error:
            error = error or sample_error
    assert error is not None
    raise error


def _time_encoding_of_sample(
    recognizer: Recognizer, sample: LabelledInput, cache: SampleCache
) -> tuple[LabelledInput, EncodedImages, float]:
    """Return a sample, its features and the seconds per image.

    The first call encodes one image, and its time is not counted. If this call takes more than one
    second, the sample contains only this image, and its time is returned.
    """
    first, others = sample.take(range(1)), sample.take(range(1, len(sample)))
    arguments = (recognizer.method, recognizer.encoder, cache)
    with suppress(NoReadableImage):
        start = time.perf_counter()
        encoded = encode_recognizer_input(first, *arguments)
        seconds = time.perf_counter() - start
        if seconds > SLOW_SECONDS or not len(others):
            return first, encoded, seconds
    start = time.perf_counter()
    encode_recognizer_input(others, *arguments)
    seconds = (time.perf_counter() - start) / len(others)
    return sample, encode_recognizer_input(sample, *arguments), seconds


def _seconds_per_step(recognizer: Recognizer, batch: FittingData) -> float:
    """Return the time of one training step in seconds, without the initialization."""
    times = list[float]()
    fit_recognizer_method(
        replace(recognizer.run, epochs=TIMED_EPOCHS),
        recognizer.encoder,
        recognizer.names_with_aliases,
        batch,
        progress=lambda _done, _total: times.append(time.perf_counter()),
    )
    return (times[-1] - times[0]) / (TIMED_EPOCHS - 1)


def _seconds_of_fit_at_once(
    recognizer: Recognizer, source: LabelledInput, cache: SampleCache, n_train: int
) -> float:
    """Return the expected seconds of a fit without gradients on a sample of ``n_train`` vectors."""
    method = recognizer.method
    assert isinstance(method, FitsTargets)
    rows = np.random.default_rng(recognizer.run.seed).permutation(len(source))[:n_train]
    sample = source.take(rows)
    encoded = encode_recognizer_input(sample, method, recognizer.encoder, cache)
    labelled = recognizer.align_labels(sample)
    targets, known = feature_batch_tensors(labelled.targets, labelled.known)
    return method.expected_fit_seconds(encoded.features, targets, known, recognizer.run.seed)


def _n_bytes_of_features(features: Features) -> int:
    """Return the size of all tensors in bytes."""
    values = [getattr(features, field.name) for field in fields(features)]
    tensors = [value for value in values if isinstance(value, Tensor)]
    tensors += (features.layers or {}).values()
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
