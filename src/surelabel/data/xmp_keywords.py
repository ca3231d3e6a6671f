"""Read the keywords of the user in XMP packets, and add or remove the tags of this package.

The tags of an image are keywords in ``dc:subject`` and ``lr:hierarchicalSubject``. Properties in
the namespace of this package record the labels, their probabilities, the recognizer, and the
keywords that the packet did not have before. Only these keywords are removed again.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from surelabel.data.label_names import has_control_character
from surelabel.data.xmp_edits import (
    XmpEdit,
    apply_xmp_edits,
    attribute_removal_edit,
    insertion_edit,
    removal_edit,
)
from surelabel.data.xmp_packets import (
    DUBLIN_CORE,
    HIERARCHICAL_SUBJECT,
    KEYWORD_LISTS,
    LIGHTROOM,
    RDF,
    SUBJECT,
    SURELABEL,
    XmpElement,
    XmpName,
    XmpPacket,
    list_items,
    parse_writable_xmp_packet,
)
from surelabel.errors import InputError

LEVEL_SEPARATOR = "|"  # of the levels of a hierarchical keyword
INTERNAL_ROOT = "darktable"  # root of the hierarchical keywords that darktable adds by itself
EMPTY_PACKET = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="surelabel">\n'
    f' <rdf:RDF xmlns:rdf="{RDF}">\n'
    " </rdf:RDF>\n"
    "</x:xmpmeta>\n"
    '<?xpacket end="w"?>\n'
).encode()

_RECORD_OF: dict[XmpName, XmpName] = {  # record of the keywords that were added to a list
    SUBJECT: (SURELABEL, "addedKeywords"),
    HIERARCHICAL_SUBJECT: (SURELABEL, "addedHierarchicalKeywords"),
}
_ABOUT: tuple[XmpName, ...] = ((RDF, "about"), ("", "about"))  # the second is of early XMP files
_PREFIXES = {DUBLIN_CORE: "dc", LIGHTROOM: "lr", SURELABEL: "surelabel"}
_NOT_IN_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True)
class XmpTags:
    """Labels that are written to a packet.

    Attributes:
        labels: Labels, the most probable first.
        paths: Hierarchical keyword of each label, such as ``animal|dog``.
        values: Probability of each label, or its score if there are no calibrated probabilities.
        are_probabilities: Whether the values are probabilities.
        model: Fingerprint of the recognizer.
    """

    labels: Sequence[str]
    paths: Sequence[str]
    values: Sequence[float]
    are_probabilities: bool
    model: str


def check_xmp_labels(labels: Sequence[str]) -> None:
    """Check that labels can be keywords in XMP.

    Raises:
        InputError: If a label contains ``|``, which separates the levels of a hierarchical
            keyword, or a character that XML cannot contain, or is empty.
    """
    for label in labels:
        if LEVEL_SEPARATOR in label:
            raise InputError(
                f"A keyword in XMP must not contain {LEVEL_SEPARATOR!r}, which separates the "
                f"levels of a hierarchical keyword; got the label {label!r}. Rename the label."
            )
        if not label.strip() or has_control_character(label) or _NOT_IN_XML.search(label):
            raise InputError(
                "A keyword in XMP must contain visible characters and no control characters; got "
                f"the label {label!r}. Rename the label."
            )


def comparable_keyword(keyword: str) -> str:
    """Return a keyword in the form for comparisons: NFC, case-folded, no surrounding spaces."""
    return unicodedata.normalize("NFC", keyword).strip().casefold()


def xmp_user_keywords(packet: XmpPacket) -> list[str]:
    """Return the distinct keywords of the user, without those that this package has added.

    Each level of a hierarchical keyword is a keyword. Keywords that darktable adds by itself
    (``darktable|…``) are omitted.
    """
    keywords = [
        text
        for name in KEYWORD_LISTS
        for text in Counter(packet.texts(name)) - Counter(_added_keywords(packet, name))
        if text.split(LEVEL_SEPARATOR)[0] != INTERNAL_ROOT
    ]
    levels = (level.strip() for text in keywords for level in text.split(LEVEL_SEPARATOR))
    return list(dict.fromkeys(level for level in levels if level))


def remove_xmp_tags(data: bytes) -> bytes:
    """Return a packet without the tags that this package has added, and without their record.

    A list that has no other keyword is removed too. If the user has moved a keyword to a lower
    level of a hierarchy, the keyword belongs to the user and remains.

    Args:
        data: Bytes of an XMP file.

    Raises:
        ValueError: If the bytes are no XMP packet, or the packet is marked as read-only.
    """
    packet = parse_writable_xmp_packet(data)
    removed = {item.start for name in KEYWORD_LISTS for item in _items_to_remove(packet, name)}
    edits = [edit for d in packet.descriptions for edit in _description_edits(data, d, removed)]
    return apply_xmp_edits(data, edits)


def add_xmp_tags(data: bytes, tags: XmpTags) -> bytes:
    """Return a packet with tags as keywords, and with their record.

    A label that is already a keyword of the packet, ignoring case, is recorded, but is not added.
    If the packet has no hierarchical keywords, its keywords are copied to the list of hierarchical
    keywords.

    Args:
        data: Bytes of an XMP file without tags of this package.
        tags: Labels that can be keywords; see ``check_xmp_labels``.

    Raises:
        ValueError: If the bytes are no XMP packet, or the packet is marked as read-only.
    """
    packet = parse_writable_xmp_packet(data)
    keywords_of = _keywords_to_add(packet, tags)
    edits, properties = [], []
    for name, keywords in keywords_of.items():
        lists = [element.children[0] for element in packet.properties(name) if element.children]
        if lists:
            edits.append(_items_edit(data, lists[0], keywords))
        else:
            edits += [removal_edit(data, element) for element in packet.properties(name)]
            properties += _list_lines(packet, _PREFIXES[name[0]], name[1], "Bag", keywords)
    kind = "probabilities" if tags.are_probabilities else "scores"
    values = [f"{value:.4f}" for value in tags.values]
    properties += _list_lines(packet, "surelabel", "labels", "Seq", tags.labels)
    properties += _list_lines(packet, "surelabel", kind, "Seq", values)
    for name, keywords in keywords_of.items():
        properties += _list_lines(packet, "surelabel", _RECORD_OF[name][1], "Bag", keywords)
    properties.append((1, f"<surelabel:model>{escape(tags.model)}</surelabel:model>"))
    edits.append(insertion_edit(data, packet.rdf, _description_lines(packet, properties)))
    return apply_xmp_edits(data, edits)


def _keywords_to_add(packet: XmpPacket, tags: XmpTags) -> dict[XmpName, list[str]]:
    """Return the keywords to add to each list, or an empty mapping if the packet has all labels.

    If the packet has keywords and no hierarchical keyword, its keywords are added to the
    hierarchical keywords too, because programs that find this list do not read the other.
    """
    existing = {comparable_keyword(keyword) for keyword in xmp_user_keywords(packet)}
    added = {
        label: path
        for label, path in zip(tags.labels, tags.paths, strict=True)
        if comparable_keyword(label) not in existing
    }
    if not added:
        return {}
    copied = [] if packet.texts(HIERARCHICAL_SUBJECT) else packet.texts(SUBJECT)
    copied = [text for text in dict.fromkeys(copied) if text]
    return {SUBJECT: list(added), HIERARCHICAL_SUBJECT: [*copied, *added.values()]}


def _added_keywords(packet: XmpPacket, name: XmpName) -> list[str]:
    """Return the recorded keywords of a list, without those that the user has adopted.

    The user adopts a keyword in ``dc:subject`` by moving it to a level of a hierarchy that this
    package has not added.
    """
    recorded = list(dict.fromkeys(packet.texts(_RECORD_OF[name])))
    if name != SUBJECT:
        return recorded
    ours = Counter(packet.texts(_RECORD_OF[HIERARCHICAL_SUBJECT]))
    texts = Counter(packet.texts(HIERARCHICAL_SUBJECT)) - ours
    hierarchies = [text.split(LEVEL_SEPARATOR) for text in texts]
    moved = {level.strip() for levels in hierarchies if len(levels) > 1 for level in levels}
    return [text for text in recorded if text not in moved]


def _items_to_remove(packet: XmpPacket, name: XmpName) -> list[XmpElement]:
    """Return one item for each keyword that was added to a list: the last one with its text."""
    last_item = {item.text.strip(): item for item in packet.items(name)}
    return [last_item[text] for text in _added_keywords(packet, name) if text in last_item]


def _description_edits(data: bytes, description: XmpElement, removed: set[int]) -> list[XmpEdit]:
    """Return the edits that remove the properties of this package, and the items at ``removed``.

    A description in which nothing remains is removed as a whole.
    """
    edits: list[XmpEdit] = []
    n_removed = 0
    for element in description.children:
        items = list_items(element)
        removed_items = [item for item in items if item.start in removed]
        if element.name[0] == SURELABEL or (items and len(removed_items) == len(items)):
            edits.append(removal_edit(data, element))
            n_removed += 1
        else:
            edits += [removal_edit(data, item) for item in removed_items]
    ours = [name for name in description.attributes if name[0] == SURELABEL]
    edits += [attribute_removal_edit(data, description, name) for name in ours]
    others = description.attributes.keys() - {*ours, *_ABOUT}
    if edits and n_removed == len(description.children) and not others:
        return [removal_edit(data, description)]
    return edits


def _items_edit(data: bytes, container: XmpElement, keywords: Sequence[str]) -> XmpEdit:
    """Return the edit that appends keywords to a list."""
    tag = container.tag("li")
    return insertion_edit(
        data, container, [(0, f"<{tag}>{escape(keyword)}</{tag}>") for keyword in keywords]
    )


def _description_lines(
    packet: XmpPacket, properties: list[tuple[int, str]]
) -> list[tuple[int, str]]:
    """Return the lines of a description with properties, for the resource of the packet."""
    values = [d.attributes.get(name) for d in packet.descriptions for name in _ABOUT]
    about = next(filter(None, values), "")
    rdf = _rdf_prefix(packet)
    namespaces = [
        f'xmlns:{prefix}="{uri}"'
        for uri, prefix in _PREFIXES.items()
        if any(line.startswith(f"<{prefix}:") for _, line in properties)
    ]
    if not packet.rdf.prefix:
        namespaces.insert(0, f'xmlns:{rdf}="{RDF}"')
    start = f"<{rdf}:Description {rdf}:about={quoteattr(about)} {' '.join(namespaces)}>"
    return [(0, start), *properties, (0, f"</{rdf}:Description>")]


def _list_lines(
    packet: XmpPacket, prefix: str, name: str, container: str, texts: Sequence[str]
) -> list[tuple[int, str]]:
    """Return the lines of a list of texts, as a property of a description."""
    rdf = _rdf_prefix(packet)
    return [
        (1, f"<{prefix}:{name}>"),
        (2, f"<{rdf}:{container}>"),
        *((3, f"<{rdf}:li>{escape(text)}</{rdf}:li>") for text in texts),
        (2, f"</{rdf}:{container}>"),
        (1, f"</{prefix}:{name}>"),
    ]


def _rdf_prefix(packet: XmpPacket) -> str:
    return packet.rdf.prefix or "rdf"
