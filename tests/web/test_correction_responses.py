import pytest
from pydantic import ValidationError

from surelabel.web.correction_responses import (
    CurrentTargets,
    Proposals,
    ProposedImage,
    ProposedTarget,
)


def test_a_proposal_has_a_target_or_none():
    image = {"id": "0-0-0", "path": "/a.jpg", "labels": [], "reason": "text"}
    target = image | {"label": "fork", "target": 1, "error_probability": 0.9}
    values = {"kind": "audit", "images": [image, target], "sentence": "text"}
    proposals = Proposals.model_validate(values)
    assert [type(one) for one in proposals.images] == [ProposedImage, ProposedTarget]


@pytest.mark.parametrize("target", [2, -1, None, 0.5])
def test_a_current_target_is_positive_or_negative(target):
    with pytest.raises(ValidationError, match=r"Input should be"):
        CurrentTargets.model_validate({"labels": {"fork": target}, "is_checked": False})
