from io import BytesIO

import pytest
from PIL import Image

from surelabel.bench.calibrated.curves import plot_calibrated_curves


def test_the_figure_has_a_line_of_plots_for_each_data_set(results):
    one, two = (Image.open(BytesIO(plot_calibrated_curves([results] * n))).size for n in (1, 2))
    assert one[0] == two[0]
    assert two[1] == pytest.approx(2 * one[1], abs=2)
