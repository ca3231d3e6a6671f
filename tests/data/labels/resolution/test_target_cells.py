import math

import numpy as np
import pyarrow as pa
import pytest

from surelabel.data.labels.resolution.target_cells import target_of_cell, targets_of_column

CELLS = [("1", 1), ("0,25", 0.25), ("1e-1", 0.1), (" TRUE ", 1), ("-1.0", -1), ("n/a", math.nan)]
NO_TARGETS = ["yes", "2", "-0.5", "inf", "0_1", "1,000.0", "१", "1 0"]


@pytest.mark.parametrize(("cell", "target"), CELLS)
def test_a_cell_is_a_target_however_it_is_written(cell, target):
    assert target_of_cell(cell) == pytest.approx(target, nan_ok=True)


@pytest.mark.parametrize("cell", [*NO_TARGETS, 3, math.inf, -0.5, []])
def test_another_cell_is_no_target(cell):
    assert target_of_cell(cell) is None


@pytest.mark.parametrize("n", [4, 300])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.string()])
def test_a_column_has_the_targets_of_its_cells(kind, n):
    """Few and many distinct values take different paths; the first invalid cell has index 3."""
    values = [1, 0, -1, *range(7, n + 4)]
    cells = pa.chunked_array([pa.array(values).cast(kind), pa.array([None, 1]).cast(kind)])
    targets, first, count = targets_of_column(cells)
    np.testing.assert_array_equal(targets, [1, 0, -1, *[np.nan] * (n - 3), np.nan, 1])
    assert (str(first).removesuffix(".0"), count) == ("7", n - 3)
