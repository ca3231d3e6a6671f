"""Published spellings of attributes, which differ in case, spaces and typing errors."""

import pytest

from surelabel.data.protocols.definition.attribute_labels import attribute_labels
from surelabel.errors import DataError

RAP, PA100K = attribute_labels("rap"), attribute_labels("pa100k")


def test_misspelt_labels_are_corrected_in_the_order_of_the_file():
    assert RAP.match("file", ["Pusing", "OtherAttchment", "SSBag"]) == [
        *("Pushing", "Other Attachment", "Single Shoulder Bag"),
    ]
    assert PA100K.match("file", ["Skirt&Dress", "boots", "AgeOver60"]) == [
        *("Skirt and Dress", "Boots", "Age Over 60"),
    ]
    assert attribute_labels("mlrsnet").match("file", ["habor"]) == ["harbor"]
    assert attribute_labels("multiscene").match("f", ["Wind Trubine", "OilFiled", "Solar Pannel"])[
        ::2
    ] == ["Wind Turbine", "Solar Panel"]


def test_an_unknown_spelling_is_not_changed():
    assert RAP.match("file", ["faceFront", "hat"]) == ["faceFront", "Hat"]


def test_two_spellings_of_a_label_are_refused():
    with pytest.raises(DataError, match="file: each label must occur once; got 'Pusing' and 'pu"):
        RAP.match("file", ["Pusing", "pushing"])


def test_columns_of_another_order_are_found_and_missing_labels_are_named():
    reordered = RAP.names[::-1]
    assert RAP.columns_of("file", reordered) == list(range(51))[::-1]
    with pytest.raises(DataError, match=r"1 other label \('boat'\), and 1 missing label"):
        RAP.columns_of("file", [*RAP.names[1:], "boat"])
