"""Edit the bytes of XMP packets: add elements, and remove elements and attributes.

An edit changes only the bytes of the elements that are added or removed, so that all other
properties, namespaces, comments and the packet wrapper remain as they are.
"""

import re
from collections.abc import Iterable

from surelabel.data.xmp_packets import XmpElement, XmpName

XmpEdit = tuple[int, int, bytes]  # start and end of the replaced bytes, and the new bytes

_SPACE = b" \t\r\n"
_ATTRIBUTE = re.compile(rb"""\s++([^\s=]++)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")


def apply_xmp_edits(data: bytes, edits: Iterable[XmpEdit]) -> bytes:
    """Return the bytes after edits, whose positions do not overlap."""
    parts, position = [], 0
    for start, end, replacement in sorted(edits):
        parts += [data[position:start], replacement]
        position = end
    return b"".join([*parts, data[position:]])


def space_before(data: bytes, position: int) -> bytes:
    """Return the white space that ends at a position."""
    start = position
    while start and data[start - 1] in _SPACE:
        start -= 1
    return data[start:position]


def removal_edit(data: bytes, element: XmpElement) -> XmpEdit:
    """Return the edit that removes an element and the white space before it."""
    return element.start - len(space_before(data, element.start)), element.end, b""


def attribute_removal_edit(data: bytes, element: XmpElement, name: XmpName) -> XmpEdit:
    """Return the edit that removes an attribute of an element and the white space before it."""
    tag = element.attribute_tags[name].encode()
    matches = _ATTRIBUTE.finditer(data, element.start, element.content_start)
    match = next(match for match in matches if match[1] == tag)
    return match.start(), match.end(), b""


def insertion_edit(data: bytes, parent: XmpElement, lines: list[tuple[int, str]]) -> XmpEdit:
    """Return the edit that appends lines after the last child of an element.

    The lines are indented like the last child. If the children are not on separate lines, the new
    lines are joined, too.

    Args:
        data: Bytes of the file.
        parent: Element that contains the lines.
        lines: Level of each line relative to the children, and its text.
    """
    outer_space = _indentation(data, parent)
    if parent.children:
        position = parent.children[-1].end
        space = _indentation(data, parent.children[-1])
    else:
        position = parent.content_start
        space = outer_space + b" " if outer_space else b""
    text = b"".join(
        (space + b" " * level if space else b"") + line.encode() for level, line in lines
    )
    if not parent.is_empty_tag:
        return position, position, text
    start_tag = data[parent.start : parent.end - 2].rstrip(_SPACE)
    end_tag = f"</{parent.tag(parent.name[1])}>".encode()
    return parent.start, parent.end, start_tag + b">" + text + outer_space + end_tag


def _indentation(data: bytes, element: XmpElement) -> bytes:
    """Return the line break and the spaces before an element, or nothing without a line break."""
    space = space_before(data, element.start)
    newline = space.rfind(b"\r\n") if b"\r\n" in space else space.rfind(b"\n")
    return space[newline:] if newline >= 0 else b""
