import json
from io import BytesIO

import pytest
from PIL import Image

from surelabel.bench.calibrated import write_calibration_comparison
from surelabel.bench.calibrated.curves import plot_calibrated_curves
from surelabel.errors import DataError


def test_page_numbers_and_figure_are_written(dataset, plan, folder, results):
    page, value = write_calibration_comparison([dataset], plan, folder)
    assert (folder / "calibrated.md").read_text(encoding="utf-8") == page
    assert json.loads((folder / "calibrated.json").read_text(encoding="utf-8")) == value
    assert page.startswith(f"## {dataset.name}")
    assert "### Published" in page
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_figure_has_a_line_of_plots_for_each_data_set(results):
    one, two = (Image.open(BytesIO(plot_calibrated_curves([results] * n))).size for n in (1, 2))
    assert one[0] == two[0]
    assert two[1] == pytest.approx(2 * one[1], abs=2)


def test_a_place_that_cannot_be_written_is_refused(dataset, plan, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_calibration_comparison([dataset], plan, tmp_path / "file")
