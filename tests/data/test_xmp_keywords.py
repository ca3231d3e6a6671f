from pathlib import Path

import pytest

from surelabel.data.xmp_keywords import (
    EMPTY_PACKET,
    XmpTags,
    add_xmp_tags,
    check_xmp_labels,
    remove_xmp_tags,
    xmp_user_keywords,
)
from surelabel.data.xmp_packets import (
    HIERARCHICAL_SUBJECT,
    RDF,
    SUBJECT,
    SURELABEL,
    parse_xmp_packet,
)
from surelabel.errors import InputError

PACKETS = {
    path.stem: path.read_bytes() for path in (Path(__file__).parent / "sidecars").glob("*.xmp")
}
PACKETS |= {
    "windows": PACKETS["lightroom"].replace(b"\n", b"\r\n"),
    "one line": b" ".join(PACKETS["darktable"].split()).replace(b"> <", b"><"),
    "empty": EMPTY_PACKET,
}


def tags(*labels, model="0123abcd"):
    values = [0.98765 / (rank + 1) for rank in range(len(labels))]
    return XmpTags(labels, labels, values, are_probabilities=True, model=model)


def ours(data, name):
    return parse_xmp_packet(data).texts((SURELABEL, name))


def all_keywords(data):
    packet = parse_xmp_packet(data)
    return [packet.texts(name) for name in (SUBJECT, HIERARCHICAL_SUBJECT)]


def test_there_are_packets_of_three_programs():
    assert {"lightroom", "darktable", "digikam"} <= PACKETS.keys()


@pytest.mark.parametrize("name", PACKETS)
def test_removal_restores_every_byte(name):
    data = PACKETS[name]
    written = add_xmp_tags(data, tags("wolf", 'the "black" <cat> & co'))
    assert all(texts[-2:] == ["wolf", 'the "black" <cat> & co'] for texts in all_keywords(written))
    assert remove_xmp_tags(written) == data


@pytest.mark.parametrize("name", PACKETS)
def test_an_addition_keeps_every_byte_of_the_packet_in_its_order(name):
    data = PACKETS[name]
    written = iter(add_xmp_tags(data, tags("wolf", "owl")))
    assert all(byte in written for byte in data)  # is a subsequence
    assert (b"\n" in data.replace(b"\r\n", b"")) == (
        b"\n" in add_xmp_tags(data, tags("wolf")).replace(b"\r\n", b"")
    )


HIERARCHICAL_TAGS = XmpTags(
    ["animal", "dog", "wolf"],
    ["animal", "animal|dog", "animal|dog|wolf"],
    [0.9, 0.8, 0.7],
    True,
    "m",
)


@pytest.mark.parametrize("name", PACKETS)
def test_hierarchical_keywords_are_removed_again_with_every_byte_restored(name):
    data = PACKETS[name]
    written = add_xmp_tags(data, HIERARCHICAL_TAGS)
    subject, hierarchy = all_keywords(written)
    assert subject[-1] == "wolf"
    assert hierarchy[-1] == "animal|dog|wolf"
    assert remove_xmp_tags(written) == data
    assert xmp_user_keywords(parse_xmp_packet(written)) == xmp_user_keywords(parse_xmp_packet(data))


def test_a_hierarchical_keyword_that_the_user_moves_is_no_longer_ours():
    written = add_xmp_tags(EMPTY_PACKET, HIERARCHICAL_TAGS)
    start, hierarchy = written.split(b"<lr:hierarchicalSubject>")
    moved = hierarchy.replace(b">animal|dog|wolf<", b">pets|wolf<", 1)
    edited = start + b"<lr:hierarchicalSubject>" + moved
    assert xmp_user_keywords(parse_xmp_packet(edited)) == ["wolf", "pets"]
    assert all_keywords(remove_xmp_tags(edited)) == [["wolf"], ["pets|wolf"]]


def test_a_label_that_the_user_has_is_recorded_and_is_never_ours():
    written = add_xmp_tags(PACKETS["lightroom"], tags("dog", "MÜLLER & SÖHNE", "animals", "wolf"))
    subject, hierarchy = all_keywords(written)
    assert subject == ["Animals", "Dog", "Müller & Söhne", "wolf"]
    assert hierarchy == ["Animals|Dog", "Müller & Söhne", "wolf"]
    assert ours(written, "labels") == ["dog", "MÜLLER & SÖHNE", "animals", "wolf"]
    assert ours(written, "addedKeywords") == ["wolf"]
    assert remove_xmp_tags(written) == PACKETS["lightroom"]


def test_probabilities_and_the_recognizer_are_recorded():
    written = add_xmp_tags(PACKETS["digikam"], tags("wolf", "owl"))
    assert ours(written, "probabilities") == ["0.9877", "0.4938"]
    assert parse_xmp_packet(written).simple_value((SURELABEL, "model")) == "0123abcd"
    assert ours(written, "scores") == []
    scores = add_xmp_tags(EMPTY_PACKET, XmpTags(["owl"], ["owl"], [-1.5], False, "m"))
    assert (ours(scores, "scores"), ours(scores, "probabilities")) == (["-1.5000"], [])


def test_the_new_description_is_of_the_same_resource():
    packet = parse_xmp_packet(add_xmp_tags(PACKETS["digikam"], tags("wolf")))
    first, second = (d.attributes[RDF, "about"] for d in packet.descriptions)
    assert first == second == "uuid:faf5bdd5-ba3d-11da-ad31-d33d75182f1b"


def test_new_items_follow_in_the_list_of_the_user_of_either_kind():
    packet = parse_xmp_packet(add_xmp_tags(PACKETS["darktable"], tags("wolf")))
    (subject,) = packet.properties(SUBJECT)
    assert subject.children[0].name == (RDF, "Seq")


def test_keywords_of_the_user_are_the_levels_of_both_lists_without_those_of_darktable():
    assert xmp_user_keywords(parse_xmp_packet(PACKETS["lightroom"])) == [
        "Animals",
        "Dog",
        "Müller & Söhne",
    ]
    assert xmp_user_keywords(parse_xmp_packet(PACKETS["darktable"])) == [
        "Berlin",
        "Places",
        "Germany",
    ]
    written = add_xmp_tags(PACKETS["darktable"], tags("wolf", "berlin"))
    assert xmp_user_keywords(parse_xmp_packet(written)) == ["Berlin", "Places", "Germany"]


def test_a_keyword_that_the_user_adds_beside_ours_remains():
    written = add_xmp_tags(EMPTY_PACKET, tags("wolf"))
    item = b"<rdf:li>wolf</rdf:li>"
    edited = written.replace(item, item + b"<rdf:li>Rex</rdf:li>", 1)
    assert xmp_user_keywords(parse_xmp_packet(edited)) == ["Rex"]
    left = remove_xmp_tags(edited)
    assert all_keywords(left) == [["Rex"], []]
    assert SURELABEL.encode() not in left.replace(f'xmlns:surelabel="{SURELABEL}"'.encode(), b"")
    assert all_keywords(add_xmp_tags(left, tags("owl"))) == [["Rex", "owl"]] * 2


def test_a_keyword_that_the_user_moves_in_the_hierarchy_is_no_longer_ours():
    written = add_xmp_tags(EMPTY_PACKET, tags("wolf", "owl"))
    start, hierarchy = written.split(b"<lr:hierarchicalSubject>")
    moved = start + b"<lr:hierarchicalSubject>" + hierarchy.replace(b">wolf<", b">Animals|wolf<", 1)
    assert all_keywords(moved) == [["wolf", "owl"], ["Animals|wolf", "owl"]]
    assert xmp_user_keywords(parse_xmp_packet(moved)) == ["wolf", "Animals"]
    assert all_keywords(remove_xmp_tags(moved)) == [["wolf"], ["Animals|wolf"]]


def test_keywords_of_the_user_are_copied_to_a_new_list_of_hierarchical_keywords():
    start, _, end = PACKETS["lightroom"].partition(b"<lr:hierarchicalSubject>")
    data = start.rstrip() + end.partition(b"</lr:hierarchicalSubject>")[2]
    assert all_keywords(data) == [["Animals", "Dog", "Müller & Söhne"], []]
    written = add_xmp_tags(data, tags("wolf"))
    assert all_keywords(written) == [["Animals", "Dog", "Müller & Söhne", "wolf"]] * 2
    assert xmp_user_keywords(parse_xmp_packet(written)) == ["Animals", "Dog", "Müller & Söhne"]
    assert remove_xmp_tags(written) == data
    by_hand = written.replace(b"<rdf:li>Dog</rdf:li>", b"<rdf:li>Rex</rdf:li>", 1)
    again = add_xmp_tags(remove_xmp_tags(by_hand), tags("owl"))
    assert all_keywords(again) == [["Animals", "Rex", "Müller & Söhne", "owl"]] * 2
    assert add_xmp_tags(data, tags("dog")).count(b"hierarchical") == 0  # nothing to add


def test_a_second_item_with_the_same_text_is_the_one_that_is_removed():
    data = PACKETS["lightroom"].replace(b">Dog<", b">wolf<", 1).replace(b"Animals|Dog", b"Pets")
    written = add_xmp_tags(data.replace(b">wolf<", b">Wolf<"), tags("owl"))
    doubled = written.replace(b">Animals<", b">owl<")  # by hand, before ours
    assert all_keywords(remove_xmp_tags(doubled))[0] == ["owl", "Wolf", "Müller & Söhne"]
    assert "owl" in xmp_user_keywords(parse_xmp_packet(doubled))


def test_a_record_that_another_program_wrote_as_attributes_is_removed():
    data = PACKETS["lightroom"].replace(
        b'xmp:Rating="4"', f'xmlns:sl="{SURELABEL}" sl:model="0123" xmp:Rating="4"'.encode()
    )
    left = remove_xmp_tags(data)
    assert left == data.replace(b' sl:model="0123"', b"")
    assert remove_xmp_tags(PACKETS["lightroom"]) == PACKETS["lightroom"]


@pytest.mark.parametrize("empty", ["<dc:subject/>", "<dc:subject> </dc:subject>"])
def test_an_empty_property_is_replaced_by_a_list(empty):
    data = PACKETS["digikam"].replace(
        b"<digiKam:TagsList>",
        empty.replace("subject", 'subject xmlns:dc="http://purl.org/dc/elements/1.1/"', 1).encode()
        + b"<digiKam:TagsList>",
    )
    assert all_keywords(add_xmp_tags(data, tags("wolf"))) == [["wolf"], ["wolf"]]


def test_a_packet_with_the_default_namespace_gets_tags():
    data = f'<RDF xmlns="{RDF}"><Description xmlns:r="{RDF}" r:about=""/></RDF>'.encode()
    written = add_xmp_tags(data, tags("wolf"))
    assert all_keywords(written) == [["wolf"], ["wolf"]]
    assert remove_xmp_tags(written) == data


def test_a_packet_without_a_description_gets_tags():
    data = f'<rdf:RDF xmlns:rdf="{RDF}"/>'.encode()
    assert all_keywords(add_xmp_tags(data, tags("wolf"))) == [["wolf"], ["wolf"]]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("sofa|couch", r"must not contain '\|', which separates the levels .* 'sofa\|couch'"),
        ("a\nb", r"no control characters; got the label 'a\\nb'"),
        ("a\x00", "no control character"),
        ("\ud800", "no control character"),
        ("a\uffff", "no control character"),
        (" ", "must contain visible characters"),
    ],
)
def test_a_label_that_cannot_be_a_keyword_is_refused(label, message):
    with pytest.raises(InputError, match=message):
        check_xmp_labels(["dog", label])


def test_labels_with_commas_quotes_and_marks_of_direction_are_written_unchanged():
    labels = ["a, b", '"q"', "it's", "<b>", "&amp;", "]]>", "שלום\u200f", "🐕", "a; b", "e\u0301"]
    check_xmp_labels(labels)
    written = add_xmp_tags(PACKETS["one line"], tags(*labels))
    assert all(texts[-len(labels) :] == labels for texts in all_keywords(written))
    assert ours(written, "addedKeywords") == labels
