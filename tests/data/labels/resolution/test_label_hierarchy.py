import json

import pytest

from surelabel.data.labels.resolution.label_hierarchy import read_label_hierarchy
from surelabel.errors import DataError


def node(label, *children, part=()):
    value = {"LabelName": label}
    if children:
        value["Subcategory"] = list(children)
    return value | ({"Part": list(part)} if part else {})


def read(tmp_path, value):
    path = tmp_path / "tree.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read_label_hierarchy(path)


def test_a_label_in_several_places_has_all_ancestors_and_parts_have_none_of_the_whole(tmp_path):
    toy = node("toy", node("doll"), node("teddy"))
    bear = node("bear", node("teddy"), part=[node("paw", node("claw"))])
    hierarchy = read(tmp_path, node("root", toy, node("animal", bear)))
    assert hierarchy.root == "root"
    assert hierarchy.ancestors == {
        "root": set(),
        "toy": {"root"},
        "doll": {"toy", "root"},
        "teddy": {"toy", "bear", "animal", "root"},
        "animal": {"root"},
        "bear": {"animal", "root"},
        "paw": set(),
        "claw": {"paw"},
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"LabelName": ', "must be a label hierarchy in JSON; got: Expecting"),
        ([], r"the root: a node must be an object with the text LabelName; got \[\]"),
        ({"Subcategory": []}, "the root: a node must be an object"),
        (node("a", node("b", node(3))), r"Subcategory\[0\] of 'b': a node must be an object"),
        (node("a", part=[node("b"), "c"]), r"Part\[1\] of 'a': a node must be .*; got 'c'"),
        (
            node("a", {"LabelName": "b", "Subcategory": "c"}),
            r"Subcategory\[0\] of 'a': S.*'c'",
        ),
        (
            node("a", node("b", node("c", node("b")))),
            "a subcategory of itself; got 'b' > 'c'",
        ),
    ],
)
def test_an_invalid_hierarchy_is_refused_with_the_place_of_the_node(tmp_path, value, message):
    with pytest.raises(DataError, match=rf"tree\.json.*{message}"):
        read(tmp_path, value)
