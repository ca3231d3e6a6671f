import pytest

from surelabel.errors import UnknownName
from surelabel.web.image_identifiers import (
    ImageIdentifier,
    image_path_checksum,
    parse_image_identifier,
)


def test_an_identifier_is_parsed_from_its_text():
    identifier = ImageIdentifier(3, 17, image_path_checksum("a/ä.jpg"))
    assert parse_image_identifier(str(identifier)) == identifier


@pytest.mark.parametrize(
    "text",
    ["", "..", "1-2", "1-2-xyz", "-1-2-0123456789abcdef", "1-2-0123456789ABCDEF", "1-2-" * 9],
)
def test_another_text_is_not_an_identifier(text):
    with pytest.raises(UnknownName, match="is not in the index"):
        parse_image_identifier(text)


def test_different_paths_have_different_checksums():
    assert image_path_checksum("a.jpg") != image_path_checksum("b.jpg")
