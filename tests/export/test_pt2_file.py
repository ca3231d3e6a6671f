import numpy as np
import pytest

from surelabel.errors import DataError


@pytest.mark.usefixtures("exports")
def test_a_new_process_runs_a_file_and_its_errors_are_named(pt2_runtimes):
    run = pt2_runtimes["torch"]
    assert run([np.zeros((5, 3, 32, 32), np.float32)]).shape == (5, 4)
    with pytest.raises(DataError, match="running it failed"):
        run([np.zeros((1, 3, 31, 32), np.float32)])
