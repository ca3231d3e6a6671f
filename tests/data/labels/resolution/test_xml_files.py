import pytest

from surelabel.data.labels.resolution.xml_files import parse_annotation_xml
from surelabel.errors import DataError


def test_the_root_element_is_returned(tmp_path):
    (tmp_path / "a.xml").write_text('<?xml version="1.0"?>\n<a><b c="é &amp; d"/></a>', "utf-8-sig")
    root = parse_annotation_xml(tmp_path / "a.xml")
    assert (root.tag, root.find("b").get("c")) == ("a", "é & d")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "must not declare a document type or"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "must not declare a document type or"),
        (b"<a>&b;</a>", "got: undefined entity"),
        ("<a>é</a>".encode("latin-1"), "must be an XML file in UTF-8; got: bytes that are not"),
        ("<a/>".encode("utf-16"), "must be an XML file in UTF-8; got: text in UTF-16"),
        (b"<a><b></a>", "got: mismatched tag: line 1, column 8"),
        (b"", "got: no element found"),
    ],
)
def test_unsafe_and_damaged_files_are_refused(tmp_path, content, message):
    (tmp_path / "a.xml").write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.xml must .*{message}|a\.xml {message}"):
        parse_annotation_xml(tmp_path / "a.xml")
