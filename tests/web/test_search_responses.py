from dataclasses import fields

import pytest
from pydantic import ValidationError

from surelabel.retrieval import Hit
from surelabel.web.search_responses import LabelPage, SearchHit


def test_a_hit_has_the_fields_of_the_library_and_an_identifier():
    assert SearchHit.model_fields.keys() == {field.name for field in fields(Hit)} | {"id"}


def test_the_fields_that_a_hit_leaves_out_are_not_required():
    values = Hit("a.jpg", 0.7, {"fork": 0.9}).as_dict()
    required = {name for name, field in SearchHit.model_fields.items() if field.is_required()}
    assert required == {"id", *values}


def test_an_expected_number_can_be_missing_but_not_its_field():
    page = {"labels": [{"name": "fork"}], "n_labels": 1, "n_images": 1, "is_complete": False}
    with pytest.raises(ValidationError, match=r"expected_images\s+Field required"):
        LabelPage.model_validate(page)
    page["labels"][0]["expected_images"] = None
    assert LabelPage.model_validate(page).labels[0].expected_images is None
