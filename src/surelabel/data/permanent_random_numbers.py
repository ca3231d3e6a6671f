"""Compute permanent random numbers: a reproducible uniform number of each row of a dataset."""

import os
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from surelabel.arrays import Array
from surelabel.records import LabelledFeatures, LabelledImages
from surelabel.storage.image_paths import (
    PARQUET_SUFFIX,
    TAR_SUFFIX,
    absolute_image_path,
    is_container_path,
    is_object_url,
    split_container_path,
)

_BITS = 53  # of a float64 in [0, 1)


def permanent_random_numbers(identifiers: Sequence[str], key: str) -> Array:
    """Return a uniform random number in [0, 1) for each row, ``(n,)``.

    The number depends only on the identifier and the key, not on the other rows. Samples of the
    rows whose number is at most a threshold are therefore nested, and new rows do not change them.

    Args:
        identifiers: Identifiers of n rows. Rows with equal identifiers have equal numbers.
        key: Text of the seed. Numbers of different keys are independent.

    Source:
        Permanent random numbers: Ohlsson, Coordination of samples using permanent random numbers,
        in Business Survey Methods, 1995.

    Differs:
        The numbers are hash values, so that no number has to be stored.

    Example:
        >>> one, two = permanent_random_numbers(["a.jpg", "b.jpg"], "seed 0")
        >>> bool(permanent_random_numbers(["b.jpg"], "seed 0")[0] == two), bool(one == two)
        (True, False)
    """
    prefix = key.encode() + b"\0"
    digests = b"".join(
        blake2b(prefix + text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        for text in identifiers
    )
    integers = np.frombuffer(digests, dtype="<u8") >> (64 - _BITS)
    numbers: Array = integers.astype(np.float64) / 2**_BITS
    return numbers


def row_identifiers(source: LabelledImages | LabelledFeatures) -> list[str]:
    """Return the folder name and the file name of each image, or the name of each other row.

    For an image in an archive or a table, the identifier is the name of the archive or table,
    followed by the path of the image inside.

    The identifiers do not change if a folder with the images is moved.

    Args:
        source: Images, vectors or scores of n rows.

    Example:
        >>> row_identifiers(LabelledImages(["/data/animals/a.jpg"], [], np.zeros((1, 0))))
        ['animals/a.jpg']
    """
    if not isinstance(source, LabelledImages):
        return [str(path) for path in source.paths]
    return [image_identifier(absolute_image_path(path)) for path in source.paths]


def image_identifier(path: str) -> str:
    """Return folder and name of a file, or the name of an archive or table and the path in it.

    Args:
        path: Absolute path of an image, or URL of an object.

    Example:
        >>> image_identifier("/data/animals/a.jpg")
        'animals/a.jpg'
    """
    lower_case = path.lower()
    if TAR_SUFFIX in lower_case or PARQUET_SUFFIX in lower_case:
        is_file = is_container_path if is_object_url(path) else os.path.isfile
        container = split_container_path(path, is_file=is_file)
        if container is not None:
            return "/".join([os.path.basename(container[0]), container[1]])
    return "/".join(path.replace(os.sep, "/").rsplit("/", 2)[-2:])
