"""Parse XMP packets: properties and keyword lists, with their positions in the bytes of a file."""

import re
from dataclasses import dataclass, field
from xml.parsers import expat

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
LIGHTROOM = "http://ns.adobe.com/lightroom/1.0/"
PHOTOSHOP = "http://ns.adobe.com/photoshop/1.0/"
SURELABEL = "surelabel:ns:xmp/1.0/"
META = "adobe:ns:meta/"
MAX_ELEMENTS = 100_000  # properties and keywords of a packet
MAX_TEXT = 10_000  # characters of a text; the rest of a longer text is not stored

XmpName = tuple[str, str]  # namespace and local name


SUBJECT: XmpName = (DUBLIN_CORE, "subject")
HIERARCHICAL_SUBJECT: XmpName = (LIGHTROOM, "hierarchicalSubject")
KEYWORD_LISTS = (SUBJECT, HIERARCHICAL_SUBJECT)

_LIST_DEPTH = 5  # list items: xmpmeta > RDF > Description > property > Bag > li
_CONTAINERS = {(RDF, "Bag"), (RDF, "Seq"), (RDF, "Alt")}
_START_TAG = re.compile(rb"""<[^\s/>]++(?:\s++[^\s=]++\s*+=\s*+(?:"[^"]*+"|'[^']*+'))*+\s*+/?>""")
_READ_ONLY = re.compile(r"""\bend\s*=\s*["']r["']""")


@dataclass(slots=True)
class XmpElement:
    """Element of a packet.

    Attributes:
        name: Namespace and local name.
        prefix: Prefix of the namespace in the file; empty for the default namespace.
        start: Position of the first byte of the element.
        content_start: Position after the start tag.
        content_end: Position of the end tag. In an empty element ``<a/>``, it is ``content_start``.
        end: Position after the element.
        attributes: Values of the attributes by namespace and local name.
        attribute_tags: Names of the attributes in the file, with prefix, by namespace and local
            name.
        text: Text directly inside the element, without child elements.
        children: Child elements, except the children of properties that are not lists of keywords.
    """

    name: XmpName
    prefix: str
    start: int
    attributes: dict[XmpName, str]
    attribute_tags: dict[XmpName, str]
    content_start: int = 0
    content_end: int = 0
    end: int = 0
    text: str = ""
    children: list["XmpElement"] = field(default_factory=list)

    @property
    def is_empty_tag(self) -> bool:
        """Return whether the element has no end tag, as ``<a/>``."""
        return self.content_start == self.end

    def tag(self, name: str) -> str:
        """Return a qualified name in the namespace of the element."""
        return _qualified_tag(("", name), self.prefix)


@dataclass(frozen=True)
class XmpPacket:
    """XMP packet with the positions of its properties.

    Attributes:
        data: Bytes of the file.
        rdf: Element ``rdf:RDF``.
        is_read_only: Whether the packet wrapper states that the packet is read-only.
    """

    data: bytes
    rdf: XmpElement
    is_read_only: bool

    @property
    def descriptions(self) -> list[XmpElement]:
        """Return the elements ``rdf:Description``, whose children are properties."""
        return [child for child in self.rdf.children if child.name == (RDF, "Description")]

    def properties(self, name: XmpName) -> list[XmpElement]:
        """Return the property elements with a name, in the order of the packet."""
        return [p for d in self.descriptions for p in d.children if p.name == name]

    def items(self, name: XmpName) -> list[XmpElement]:
        """Return the items of the lists with a name."""
        return [item for p in self.properties(name) for item in list_items(p)]

    def texts(self, name: XmpName) -> list[str]:
        """Return the texts of the items of the lists with a name, without surrounding spaces."""
        return [item.text.strip() for item in self.items(name)]

    def simple_value(self, name: XmpName) -> str | None:
        """Return the text of a simple property, an element or an attribute, or None without one."""
        for description in self.descriptions:
            if name in description.attributes:
                return description.attributes[name].strip()
        return next((p.text.strip() for p in self.properties(name)), None)


def list_items(element: XmpElement) -> list[XmpElement]:
    """Return the items ``rdf:li`` of a property that is a list."""
    return [i for container in element.children for i in container.children if i.name[1] == "li"]


def parse_xmp_packet(data: bytes) -> XmpPacket:
    """Return the packet in the bytes of an XMP file.

    Args:
        data: Bytes of an XMP file in UTF-8, with or without a packet wrapper.

    Raises:
        ValueError: If the bytes are not well-formed XML in UTF-8, or declare a document type or an
            entity. Also if there is not exactly one element ``rdf:RDF``, if there are more than
            100,000 elements, or if a property of keywords is not a list. The message is a clause on
            one line, which states what was found.
    """
    _check_utf8(data)  # otherwise, expat can choose another encoding
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise ValueError("a document type or an entity, which is unsafe")
    parser = _PacketParser(data)
    try:
        parser.expat.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"XML that is not well-formed ({error})") from error
    packet = XmpPacket(data, _rdf_of_root(parser.root), parser.is_read_only)
    for name in KEYWORD_LISTS:
        if any(name in description.attributes for description in packet.descriptions):
            raise ValueError(f"{name[1]} as an attribute in place of a list of keywords")
        if not all(map(_is_list, packet.properties(name))):
            raise ValueError(f"{name[1]} with other content than a list of keywords")
    return packet


def parse_writable_xmp_packet(data: bytes) -> XmpPacket:
    """Return the packet in the bytes of an XMP file, if the packet may be changed.

    Raises:
        ValueError: For the reasons of :func:`parse_xmp_packet`, or if the packet is marked as
            read-only.
    """
    packet = parse_xmp_packet(data)
    if packet.is_read_only:
        raise ValueError("a packet that is marked as read-only")
    return packet


class _PacketParser:
    """Handlers that build the elements of a packet from the events of expat."""

    def __init__(self, data: bytes):
        self.root: XmpElement | None = None
        self.is_read_only = False
        self.expat = expat.ParserCreate("UTF-8", " ")
        self.expat.namespace_prefixes = True
        self.expat.buffer_text = True
        self.expat.XmlDeclHandler = self._check_declaration
        self.expat.StartDoctypeDeclHandler = self._refuse_document_type
        self.expat.ProcessingInstructionHandler = self._read_wrapper
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._add_text
        self._data = data
        self._open: list[XmpElement | None] = []
        self._n_elements = 0

    def _check_declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":
            raise ValueError(f"the encoding {encoding[:20]!r} in place of UTF-8")

    def _refuse_document_type(self, *declaration: object) -> None:
        raise ValueError("a document type or an entity, which is unsafe")

    def _read_wrapper(self, target: str, text: str) -> None:
        if target == "xpacket" and _READ_ONLY.search(text):
            self.is_read_only = True

    def _start(self, qualified_name: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else None
        if self._open and (parent is None or not self._is_stored(parent)):
            self._open.append(None)
            return
        self._n_elements += 1
        if self._n_elements > MAX_ELEMENTS:
            raise ValueError(f"more than {MAX_ELEMENTS} properties and keywords")
        name, prefix = _split_name(qualified_name)
        start = self.expat.CurrentByteIndex
        names = {key: _split_name(key) for key in attributes}
        element = XmpElement(
            name,
            prefix,
            start,
            {names[key][0]: value for key, value in attributes.items()},
            {names[key][0]: _qualified_tag(*names[key]) for key in attributes},
        )
        match = _START_TAG.match(self._data, start)
        assert match is not None  # expat has accepted the tag
        element.content_start = match.end()
        if parent is not None:
            parent.children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _is_stored(self, parent: XmpElement) -> bool:
        """Return whether the children of an element are stored."""
        depth = len(self._open)
        if self.root is not None and self.root.name == (RDF, "RDF"):
            depth += 1
        if depth <= _LIST_DEPTH - 2:
            return True
        is_list = parent.name in KEYWORD_LISTS or parent.name[0] in (SURELABEL, RDF)
        return depth <= _LIST_DEPTH and is_list

    def _end(self, qualified_name: str) -> None:
        element = self._open.pop()
        if element is None:
            return
        if self._data.endswith(b"/>", 0, element.content_start):
            element.content_end = element.end = element.content_start
        else:
            element.content_end = self.expat.CurrentByteIndex
            element.end = self._data.index(b">", element.content_end) + 1

    def _add_text(self, text: str) -> None:
        element = self._open[-1]
        if element is not None and len(element.text) < MAX_TEXT:
            element.text += text[:MAX_TEXT]


def _check_utf8(data: bytes) -> None:
    """Check that bytes are text in UTF-8 without NUL bytes.

    Raises:
        ValueError: If they are not.
    """
    if b"\0" in data:
        raise ValueError("a NUL byte, as in UTF-16")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"bytes that are not UTF-8 at position {error.start}") from error


def _split_name(qualified_name: str) -> tuple[XmpName, str]:
    """Return the namespace and local name, and the prefix, of a name of expat."""
    parts = qualified_name.split(" ")
    if len(parts) == 1:
        return ("", parts[0]), ""
    return (parts[0], parts[1]), parts[2] if len(parts) > 2 else ""


def _qualified_tag(name: XmpName, prefix: str) -> str:
    return f"{prefix}:{name[1]}" if prefix else name[1]


def _rdf_of_root(root: XmpElement | None) -> XmpElement:
    """Return the element ``rdf:RDF``.

    Raises:
        ValueError: If there is not exactly one.
    """
    assert root is not None  # well-formed XML has a root
    candidates = root.children if root.name[0] == META else [root]
    elements = [element for element in candidates if element.name == (RDF, "RDF")]
    if len(elements) != 1:
        raise ValueError(f"<{root.tag(root.name[1])}> with {len(elements)} elements rdf:RDF")
    return elements[0]


def _is_list(element: XmpElement) -> bool:
    """Return whether a property is empty, or one list of items."""
    names = [child.name for child in element.children]
    return not element.text.strip() and (not names or (len(names) == 1 and names[0] in _CONTAINERS))
