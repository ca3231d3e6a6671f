import pytest

from surelabel.counts import format_count


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 images"), (1, "1 image"), (2, "2 images"), (12_345, "12,345 images")],
)
def test_only_one_item_has_the_singular(count, text):
    assert format_count(count, "image") == text


def test_an_irregular_plural_is_given():
    assert format_count(1, "query", "queries") == "1 query"
    assert format_count(3, "query", "queries") == "3 queries"
