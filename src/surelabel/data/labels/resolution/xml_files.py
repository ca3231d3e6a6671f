"""Parse XML annotations, which can be damaged or untrusted."""

from pathlib import Path
from xml.etree import ElementTree

from surelabel.errors import DataError
from surelabel.file_readers import read_text


def parse_annotation_xml(file: Path) -> ElementTree.Element:
    """Return the root element of an XML file in UTF-8.

    Args:
        file: Path of the file.

    Raises:
        DataError: If the file cannot be read, is not XML in UTF-8, or declares a document type or
            an entity. A declaration is refused, because an entity can refer to other files and can
            expand to a text that exceeds the memory.
    """
    try:
        text = read_text(file, kind="an XML file in UTF-8")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise DataError(
                f"{file} must not declare a document type or an entity, because such declarations "
                "are unsafe. Remove the declaration."
            )
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, RecursionError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{file} must be an XML file in UTF-8; got: {error}. Correct the file."
        ) from error
