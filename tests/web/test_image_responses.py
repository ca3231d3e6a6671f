import pytest
from pydantic import ValidationError

from surelabel.web.image_responses import (
    ImageDescription,
    TaggedUpload,
    UnreadableUpload,
    UploadResult,
)


def test_an_uploaded_image_has_labels_or_an_error():
    labels = [{"label": "fork", "probability": 0.7}]
    images = [{"name": "a.jpg", "labels": labels}, {"name": "b.jpg", "error": "unreadable"}]
    tagged = UploadResult.model_validate({"images": images, "threshold": 0.5})
    assert [type(image) for image in tagged.images] == [TaggedUpload, UnreadableUpload]
    with pytest.raises(ValidationError, match="Field required"):
        UploadResult.model_validate({"images": [{"name": "c.jpg"}], "threshold": 0.5})


@pytest.mark.parametrize(
    ("name", "value"), [("width", 0), ("labels", [{"label": "fork", "probability": 1.5}])]
)
def test_a_value_out_of_range_is_no_description_of_an_image(name, value):
    values = {"id": "0-0-0", "path": "/a.jpg", "date": None, "width": 1, "height": 1, "labels": []}
    assert ImageDescription.model_validate(values).path == "/a.jpg"
    with pytest.raises(ValidationError, match=r"should be (greater|less) than or equal to"):
        ImageDescription.model_validate(values | {name: value})
