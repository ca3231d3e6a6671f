"""Label texts are computed once, and the method itself is not changed."""

import torch

from surelabel.encoders import load_encoder
from surelabel.export.graphs.constant_texts import (
    ConstantTexts,
    copy_method_with_shared_tensors,
    store_label_texts,
)
from surelabel.methods import METHODS
from surelabel.records import Features


def test_the_copy_shares_its_weights_and_stores_the_texts():
    encoder = load_encoder("tiny-vit")
    method = METHODS["coop"](encoder, ["lion", "guitar"]).eval()
    features = Features(torch.nn.functional.normalize(torch.randn(3, encoder.width), dim=-1))
    with torch.no_grad():
        scores = method(features)
        copied = copy_method_with_shared_tensors(method)
        store_label_texts(copied, features)
        assert torch.equal(copied(features), scores)
    assert isinstance(copied.context, ConstantTexts)
    assert torch.equal(copied.context(), method.context())
    assert torch.equal(copied.context.latest(), copied.context())
    assert copied.level.bias is method.level.bias
    assert not isinstance(method.context, ConstantTexts)


def test_several_outputs_are_returned_as_a_tuple():
    texts = ConstantTexts((torch.ones(2), torch.zeros(3)))
    assert [len(each) for each in texts("any", "arguments")] == [2, 3]
