from pathlib import Path

import numpy as np
import pytest

from surelabel.errors import DataError
from surelabel.export import pt2_file


def test_a_new_process_runs_a_file_and_its_errors_are_named(exports):
    file = Path(exports[".pt2"].paths[0])
    with pt2_file.open_runtimes(file) as runtimes:
        assert runtimes["torch"]([np.zeros((5, 3, 32, 32), np.float32)]).shape == (5, 4)
        with pytest.raises(DataError, match="running it failed"):
            runtimes["torch"]([np.zeros((1, 3, 31, 32), np.float32)])
