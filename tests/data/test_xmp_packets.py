import pytest

from surelabel.data import xmp_packets
from surelabel.data.xmp_packets import (
    HIERARCHICAL_SUBJECT,
    PHOTOSHOP,
    RDF,
    SUBJECT,
    parse_writable_xmp_packet,
    parse_xmp_packet,
)

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


def bag(name, *texts, container="rdf:Bag"):
    items = "".join(f"<rdf:li>{text}</rdf:li>" for text in texts)
    return f"<{name}><{container}>{items}</{container}></{name}>"


@pytest.mark.parametrize("container", ["rdf:Bag", "rdf:Seq", "rdf:Alt"])
def test_the_texts_of_lists_are_read(container):
    data = packet(
        bag("dc:subject", "dog", " caf&#233; &amp; bar ", "<![CDATA[a<b]]>", container=container)
        + bag("lr:hierarchicalSubject", "Animals|dog")
    )
    it = parse_xmp_packet(data)
    assert it.texts(SUBJECT) == ["dog", "café & bar", "a<b"]
    assert it.texts(HIERARCHICAL_SUBJECT) == ["Animals|dog"]


def test_a_list_in_a_second_description_and_other_prefixes_are_read():
    data = (
        f'<RDF xmlns="{RDF}" xmlns:r="{RDF}"><Description r:about="u"/>'
        '<Description><s:subject xmlns:s="http://purl.org/dc/elements/1.1/"><Bag><li>dog</li></Bag>'
        "</s:subject></Description></RDF>"
    ).encode()
    assert parse_xmp_packet(data).texts(SUBJECT) == ["dog"]


def test_a_simple_property_is_an_attribute_or_an_element():
    name = (PHOTOSHOP, "SidecarForExtension")
    for data in (
        packet("", "photoshop:SidecarForExtension='CR2'"),
        packet("<photoshop:SidecarForExtension>CR2</photoshop:SidecarForExtension>"),
    ):
        assert parse_xmp_packet(data).simple_value(name) == "CR2"
    assert parse_xmp_packet(packet("")).simple_value(name) is None


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]>'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (packet("", start=BOMB), "a document type or an entity, which is unsafe"),
        (packet("<!-- <!ENTITY b 'c'> -->"), "a document type or an entity"),
        (packet(bag("dc:subject", "&b;")), "not well-formed .undefined entity"),
        (packet(bag("dc:subject", "dog"))[:-9], "not well-formed"),
        (b"", "not well-formed .no element found"),
        (b"\x00" * 100, "a NUL byte, as in UTF-16"),
        (packet("", start=BOMB).decode().encode("utf-16"), "a NUL byte, as in UTF-16"),
        (packet(bag("dc:subject", "dog")).replace(b"dog", b"\xe9"), "not UTF-8 at position 304"),
        (
            packet("", start='<?xml version="1.0" encoding="ISO-8859-1"?>'),
            "the encoding 'ISO-8859-1' in place of UTF-8",
        ),
        (b"<svg/>", "<svg> with 0 elements rdf:RDF"),
        (b'<x:xmpmeta xmlns:x="adobe:ns:meta/"/>', "<x:xmpmeta> with 0 elements rdf:RDF"),
        (packet("", 'dc:subject="dog"'), "subject as an attribute in place of a list"),
        (packet("<dc:subject>dog</dc:subject>"), "subject with other content than a list"),
        (packet("<dc:subject><rdf:Bag/><rdf:Bag/></dc:subject>"), "subject with other content"),
        (
            packet("<lr:hierarchicalSubject><dc:x/></lr:hierarchicalSubject>"),
            "hierarchicalSubject with other content",
        ),
    ],
)
def test_what_is_no_safe_packet_is_refused(data, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse_xmp_packet(data)
    assert "\n" not in str(caught.value)


def test_a_packet_that_is_marked_as_read_only_is_read_but_not_changed():
    data = packet(bag("dc:subject", "dog"), end="<?xpacket end='r'?>")
    assert parse_xmp_packet(data).texts(SUBJECT) == ["dog"]
    with pytest.raises(ValueError, match="a packet that is marked as read-only"):
        parse_writable_xmp_packet(data)
    parse_writable_xmp_packet(packet("", end="<?xpacket end='w'?>"))


def test_the_number_of_stored_elements_is_limited_and_other_properties_do_not_count(monkeypatch):
    monkeypatch.setattr(xmp_packets, "MAX_ELEMENTS", 50)
    steps = "<dc:history><rdf:Seq>" + "<rdf:li/>" * 200 + "</rdf:Seq></dc:history>"
    assert parse_xmp_packet(packet(steps + bag("dc:subject", *"abc"))).texts(SUBJECT) == [*"abc"]
    with pytest.raises(ValueError, match="more than 50 properties and keywords"):
        parse_xmp_packet(packet(bag("dc:subject", *"a" * 60)))


def test_a_deep_packet_is_read():
    deep = "<dc:deep>" + "<dc:a>" * 50_000 + "</dc:a>" * 50_000 + "</dc:deep>"
    assert parse_xmp_packet(packet(deep + bag("dc:subject", "dog"))).texts(SUBJECT) == ["dog"]
