"""Check that no image is in two indexes, with a hash of 8 bytes of each path."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.counts import format_count
from surelabel.errors import DataError

PathHashes = npt.NDArray[np.int64]
MODULUS = 2**61 - 1  # a prime, so that each byte of a path changes the hash
HASHES_PER_CALL = 1000  # hashes whose paths are compared at once


def hash_paths_of_index(paths: Iterable[str]) -> PathHashes:
    """Return a hash of each path, its bytes as a number modulo a prime, int64, ``(n,)``.

    Every process computes the same hashes. Different paths can have the same hash.

    Args:
        paths: Paths of n images.

    Example:
        >>> hash_paths_of_index(["a", "ab"]).tolist() == [ord("a"), ord("a") + 256 * ord("b")]
        True
    """
    numbers = (
        int.from_bytes(path.encode(errors="surrogatepass"), "little") % MODULUS for path in paths
    )
    return np.fromiter(numbers, np.int64)


def check_no_image_is_in_two_indexes(
    call: Callable[[str, Sequence[tuple[Any, ...]]], list[Any]], folders: Sequence[str]
) -> None:
    """Check that the images of several indexes have different absolute paths.

    The hashes of all images are in memory, 8 bytes per image. If hashes are equal, the paths are
    compared, so that the result is exact.

    Args:
        call: Function that calls a method of ``IndexSearcher`` for each index with its arguments,
            and returns the results in the order of the indexes.
        folders: Folders of the indexes.

    Raises:
        DataError: If an image is in two indexes, or an index is damaged.
    """
    if len(folders) < 2:
        return
    hashes = np.concatenate(call("path_hashes", [()] * len(folders)))
    hashes.sort()
    repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    for start in range(0, len(repeated), HASHES_PER_CALL):
        arguments = [(repeated[start : start + HASHES_PER_CALL],)] * len(folders)
        folder_of_path = dict[str, str]()
        for folder, paths in zip(folders, call("paths_with_hashes", arguments), strict=True):
            for path in paths:
                first = folder_of_path.setdefault(path, folder)
                if first != folder:
                    raise DataError(
                        f"Each image must be in only one of the indexes; {path} is in {first} and "
                        f"in {folder} ({format_count(len(repeated), 'common image')} in total). "
                        "Build one of these indexes without the common images."
                    )
