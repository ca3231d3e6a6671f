import pytest

from surelabel.cli.input_paths import validate_terminal_input_paths
from surelabel.errors import DataError


def test_sources_that_exist_or_are_checked_later_are_returned(tmp_path):
    for sources in (None, "-", "scenes-80:test", (str(tmp_path), "xmp:nowhere", "v.npz:train"), ()):
        assert validate_terminal_input_paths(None, None, sources) == sources


@pytest.mark.parametrize("sources", ["gone.csv", (".", "gone.csv")])
def test_a_missing_source_is_named(sources):
    with pytest.raises(DataError, match=r"^gone\.csv does not exist\. Check the path\.$"):
        validate_terminal_input_paths(None, None, sources)


def test_a_collection_without_a_split_gets_the_splits():
    with pytest.raises(DataError, match=r"needs a split; got scenes-80\. Give one of scenes-80:t"):
        validate_terminal_input_paths(None, None, "scenes-80")
