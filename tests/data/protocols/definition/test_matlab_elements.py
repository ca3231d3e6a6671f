"""MATLAB files: agreement with SciPy, and damaged bytes, at which SciPy can end the process."""

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from surelabel.data.protocols.definition.matlab_elements import (
    HEADER_BYTES,
    MatlabCells,
    parse_matlab_variables,
)

CELLS = np.empty((2, 2), dtype=object)
CELLS[:] = [["left", np.arange(3.0)], [np.zeros((0, 0)), "é…"]]
VARIABLES = {
    "integers": np.arange(-3, 3, dtype=np.int16).reshape(2, 3),
    "bytes": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "floats": np.linspace(0, 1, 24).reshape(2, 3, 4),
    "single": np.float32([[1.5, 2.5]]),
    "flags": np.array([[True, False]]),
    "text": "pedestrian",
    "cells": CELLS,
    "one": {"first": np.ones((1, 2)), "second": "b"},
}


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def file(request, tmp_path):
    savemat(tmp_path / "a.mat", VARIABLES, do_compression=request.param)
    return tmp_path / "a.mat"


def as_scipy(value):
    """Return a value as nested lists, in the order of the file."""
    if isinstance(value, MatlabCells):
        return [as_scipy(cell) for cell in value.values]
    if isinstance(value, np.ndarray) and value.dtype.names:
        return [as_scipy(field) for field in value.item()]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [as_scipy(cell) for cell in value.ravel(order="F")]
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_values_agree_with_scipy(file):
    read = dict(parse_matlab_variables(file.read_bytes()))
    expected = loadmat(file)
    assert read.keys() == VARIABLES.keys()
    for name in VARIABLES:
        assert as_scipy(read[name]) == as_scipy(expected[name]), name
    assert read["one"].n_fields == 2


def with_bytes(content, position, new):
    return content[:position] + new + content[position + len(new) :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "no header of version 5"),
        (lambda content: content[:127], "no header of version 5"),
        (lambda content: with_bytes(content, 126, b"XX"), "no header of version 5"),
        (lambda content: with_bytes(content, 125, b"\2"), "the version is 2.0, not 1.0"),
        (lambda content: content[:-1], "an element has .* bytes, and"),
        (lambda content: content + b"\0\0", "no complete tag"),
        (lambda content: with_bytes(content, HEADER_BYTES, b"\7"), "the element type 7"),
        (lambda content: with_bytes(content, HEADER_BYTES + 4, b"\xff" * 4), "bytes, and"),
        (lambda content: with_bytes(content, HEADER_BYTES + 16, b"\x63"), "class 99"),
        (lambda content: with_bytes(content, HEADER_BYTES + 17, b"\x08"), "complex numbers"),
        (lambda content: with_bytes(content, HEADER_BYTES + 32, b"\x09"), "and the shape"),
        (lambda content: with_bytes(content, HEADER_BYTES + 35, b"\xff"), "flags or shape"),
    ],
)
def test_damaged_bytes_are_described(tmp_path, change, message):
    savemat(tmp_path / "a.mat", {"x": np.arange(6.0).reshape(2, 3)})
    content = change((tmp_path / "a.mat").read_bytes())
    with pytest.raises(ValueError, match=message):
        list(parse_matlab_variables(content))


def test_nested_cells_are_limited(tmp_path):
    value = "a"
    for _ in range(20):
        cell = np.empty((1, 1), dtype=object)
        cell[0, 0] = value
        value = cell
    savemat(tmp_path / "a.mat", {"x": value})
    with pytest.raises(ValueError, match="nested more than 16 times"):
        list(parse_matlab_variables((tmp_path / "a.mat").read_bytes()))


def test_bytes_changed_at_random_give_a_value_error_or_values(file):
    content, random, n_errors = file.read_bytes(), np.random.default_rng(0), 0
    for _ in range(400):
        changed = bytearray(content)
        for position in random.integers(HEADER_BYTES, len(content), 3):
            changed[position] = random.integers(0, 256)
        try:
            list(parse_matlab_variables(bytes(changed)))
        except ValueError:
            n_errors += 1
    assert n_errors > 100
