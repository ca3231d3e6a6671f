import pytest

from surelabel.data.xmp_edits import (
    apply_xmp_edits,
    attribute_removal_edit,
    insertion_edit,
    removal_edit,
)
from surelabel.data.xmp_packets import RDF, SUBJECT, parse_xmp_packet

NAMESPACES = (
    f'xmlns:rdf="{RDF}" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:lr="http://ns.adobe.com/lightroom/1.0/" '
    'xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"'
)


def packet(properties, attributes="", *, start="", end=""):
    return (
        f'{start}<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {NAMESPACES}>'
        f'<rdf:Description rdf:about="" {attributes}>{properties}</rdf:Description></rdf:RDF>'
        f"</x:xmpmeta>{end}"
    ).encode()


def test_an_element_and_an_attribute_are_removed_with_the_space_before_them():
    data = packet("\n  <dc:title a='>'/>\n  <dc:format />\n", "  dc:source = '>' xmlns:b='c'")
    (description,) = parse_xmp_packet(data).descriptions
    edits = [
        removal_edit(data, description.children[1]),
        attribute_removal_edit(data, description, ("http://purl.org/dc/elements/1.1/", "source")),
    ]
    assert apply_xmp_edits(data, edits) == packet("\n  <dc:title a='>'/>\n", "xmlns:b='c'")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<rdf:Bag/>", "<rdf:Bag><rdf:li/></rdf:Bag>"),
        ("<rdf:Bag><rdf:li>a</rdf:li></rdf:Bag>", "<rdf:Bag><rdf:li>a</rdf:li><rdf:li/></rdf:Bag>"),
        (
            "\r\n\t<rdf:Bag a='b' />",
            "\r\n\t<rdf:Bag a='b'>\r\n\t <rdf:li/>\r\n\t</rdf:Bag>",
        ),
        (
            "\n <rdf:Bag>\n\n   <rdf:li>a</rdf:li>\n </rdf:Bag>",
            "\n <rdf:Bag>\n\n   <rdf:li>a</rdf:li>\n   <rdf:li/>\n </rdf:Bag>",
        ),
    ],
)
def test_a_new_item_is_indented_like_the_last_one(before, after):
    data = packet(f"<dc:subject>{before}</dc:subject>")
    (container,) = parse_xmp_packet(data).properties(SUBJECT)[0].children
    edit = insertion_edit(data, container, [(0, "<rdf:li/>")])
    assert apply_xmp_edits(data, [edit]) == packet(f"<dc:subject>{after}</dc:subject>")
