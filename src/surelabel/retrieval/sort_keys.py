"""Convert float32 values to sort keys, unsigned integers of equal order in two 16-bit planes.

For a value of at least 0, the sign bit is set; for a negative value, all bits are inverted.
The high plane alone orders values that differ by more than 1/128 of their absolute value.
Therefore, a scan for a threshold reads two bytes per row.
"""

import numpy as np
import numpy.typing as npt

Floats32 = npt.NDArray[np.float32]
SortKeys = npt.NDArray[np.uint32]
KeyPlane = npt.NDArray[np.uint16]

_SIGN_BIT = np.uint32(1 << 31)


def sort_keys_of_floats(values: npt.ArrayLike) -> SortKeys:
    """Return unsigned integers with the order of float32 values; -0.0 has the key of 0.0.

    Args:
        values: Finite values, which are rounded to float32.

    Example:
        >>> [f"{key:08x}" for key in sort_keys_of_floats([-1.0, -0.0, 0.0, 1.0]).tolist()]
        ['407fffff', '80000000', '80000000', 'bf800000']
    """
    bits = (np.asarray(values, np.float32) + np.float32(0.0)).view(np.uint32)  # -0.0 becomes 0.0
    return np.where(bits & _SIGN_BIT, ~bits, bits | _SIGN_BIT)


def sort_key_of_float(value: float | np.float32) -> int:
    """Return the sort key of one value, as `sort_keys_of_floats` does, in less time.

    Args:
        value: Value, which is rounded to float32; it can be infinite.

    Example:
        >>> [f"{sort_key_of_float(value):08x}" for value in (-1.0, -0.0, np.inf)]
        ['407fffff', '80000000', 'ff800000']
    """
    bits = int((np.float32(value) + np.float32(0.0)).view(np.uint32))  # -0.0 becomes 0.0
    return 0xFFFFFFFF - bits if bits >> 31 else bits | 1 << 31


def floats_of_sort_keys(keys: SortKeys) -> Floats32:
    """Return the float32 values of sort keys, as the inverse of `sort_keys_of_floats`."""
    return np.where(keys & _SIGN_BIT, keys ^ _SIGN_BIT, ~keys).view(np.float32)


def split_sort_keys(keys: SortKeys) -> tuple[KeyPlane, KeyPlane]:
    """Return the high and the low 16 bits of sort keys."""
    return (keys >> np.uint32(16)).astype(np.uint16), keys.astype(np.uint16)


def join_key_planes(high: KeyPlane, low: KeyPlane) -> SortKeys:
    """Return the sort keys with the given high and low 16 bits."""
    return (high.astype(np.uint32) << np.uint32(16)) | low


def rows_of_largest_keys(keys: SortKeys, count: int) -> npt.NDArray[np.int32]:
    """Return the rows with the largest keys, sorted by decreasing key, then by row number.

    Args:
        keys: Sort key of each row, ``(n,)``.
        count: Maximum number of rows, >= 0.

    Example:
        >>> rows_of_largest_keys(np.array([5, 7, 5, 9], np.uint32), 3).tolist()
        [3, 1, 0]
    """
    count = min(count, len(keys))
    if not count:
        return np.empty(0, np.int32)
    smallest = np.partition(keys, len(keys) - count)[len(keys) - count]
    above = np.flatnonzero(keys > smallest)
    equal = np.flatnonzero(keys == smallest)[: count - len(above)]
    order = np.argsort(~keys[above], kind="stable")
    return np.concatenate([above[order], equal]).astype(np.int32)
