"""Store hashes of the annotated images that a recognizer was fitted or calibrated on."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.arrays import Flags
from surelabel.encoders import Encoder
from surelabel.errors import DataError
from surelabel.features.cache import content_hash_for_cache
from surelabel.recognizer.score_calibration import score_row_keys
from surelabel.records import LabelledFeatures, LabelledImages, PairFeatures, Pairs

Keys = npt.NDArray[np.uint64]
NO_KEYS: Keys = np.empty(0, dtype=np.uint64)
HASH_DIGITS = 16  # hexadecimal digits of 8 bytes


@dataclass(frozen=True, eq=False)
class UsedRows:
    """Annotated images or rows whose targets a recognizer was fitted or calibrated on.

    Attributes:
        fit: Hash of the content of each image of the fit, ``(n,)``.
        calibration: Hash of the content of each image of the last calibration and of later
            recalibrations, ``(m,)``.
    """

    fit: Keys = field(default_factory=lambda: NO_KEYS)
    calibration: Keys = field(default_factory=lambda: NO_KEYS)

    def contain(self, keys: Keys) -> Flags:
        """Return a mask of the images that were used, ``(n,)``, from their hashes."""
        used: Flags = np.isin(keys, np.concatenate([self.fit, self.calibration]))
        return used

    def with_calibration(self, keys: Keys) -> "UsedRows":
        """Return the used images after a new calibration."""
        return replace(self, calibration=keys)

    def with_recalibration(self, keys: Keys) -> "UsedRows":
        """Return the used images after a recalibration, which keeps the earlier calibration."""
        return replace(self, calibration=np.union1d(self.calibration, keys))

    def state(self) -> dict[str, Keys]:
        """Return the arrays for a file."""
        return {"fit": self.fit, "calibration": self.calibration}

    @classmethod
    def restore(cls, arrays: dict[str, npt.NDArray[Any]]) -> "UsedRows":
        """Return the hashes from the arrays of a file.

        Raises:
            DataError: If an array is missing, or has another type or shape.
        """
        fit, calibration = arrays.get("fit"), arrays.get("calibration")
        if not all(
            a is not None and a.dtype == np.uint64 and a.ndim == 1 for a in (fit, calibration)
        ):
            raise DataError(
                "Hashes of used images must be two uint64 arrays (n,), fit and calibration; got "
                f"{', '.join(f'{k} {a.dtype} {a.shape}' for k, a in arrays.items()) or 'none'}. "
                "Fit again."
            )
        assert fit is not None  # checked above
        assert calibration is not None  # checked above
        return cls(fit, calibration)


def labelled_row_keys(encoder: Encoder, source: object) -> Keys:
    """Return the hashes of the images or rows of a dataset that have a known target.

    Args:
        encoder: Encoder of the recognizer.
        source: Annotated images, vectors or scores, or images with captions, all of which are used.
            Other data have no hashes. Images that cannot be read are left out.
    """
    if isinstance(source, Pairs):
        return _keys_of_files([str(path) for path in source.paths])
    if isinstance(source, PairFeatures):
        return vector_row_keys(source.image_vectors)
    if isinstance(source, LabelledImages):
        is_labelled = source.known.any(axis=1)
        return _keys_of_files(
            [str(source.paths[row]) for row in np.flatnonzero(is_labelled).tolist()]
        )
    if isinstance(source, LabelledFeatures):
        return feature_row_keys(encoder, source)[source.known.any(axis=1)]
    return NO_KEYS


def feature_row_keys(encoder: Encoder, source: LabelledFeatures) -> Keys:
    """Return the hash of each row of vectors or scores, ``(n,)``.

    The hash of scores includes the file name of the image, because images often have equal scores
    if there are few labels.
    """
    keys = score_row_keys(encoder, source)
    return vector_row_keys(source.features) if keys is None else keys


def vector_row_keys(vectors: npt.NDArray[np.floating]) -> Keys:
    """Return the hash of each vector in single precision, ``(n,)``."""
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    return np.array(
        [int.from_bytes(blake2b(row.tobytes(), digest_size=8).digest(), "little") for row in rows],
        dtype=np.uint64,
    )


def image_keys(content_hashes: Sequence[str]) -> Keys:
    """Return the first 8 bytes of content hashes, given as hexadecimal digits, ``(n,)``."""
    return np.array([int(text[:HASH_DIGITS], 16) for text in content_hashes], dtype=np.uint64)


def _keys_of_files(paths: list[str]) -> Keys:
    """Return the hashes of the contents of files; files that cannot be read are left out."""
    hashes = []
    for path in paths:
        with suppress(DataError):  # the fit left this image out, with a warning
            hashes.append(content_hash_for_cache(path))
    return image_keys(hashes)
