import torch
import torch.nn.functional as F

from surelabel.backbones import load_backbone
from surelabel.methods import Linear
from surelabel.records import Features


def test_equals_the_formula():
    backbone = load_backbone("tiny-vit")
    it = Linear(backbone, ["a", "b"])
    with torch.no_grad():
        it.weight.normal_()
        it.level.normal_()
    x = F.normalize(torch.randn(3, backbone.width), dim=-1)
    root = backbone.width**0.5
    expected = [
        [root * float(r @ w) + float(b) for w, b in zip(it.weight, it.level, strict=True)]
        for r in x
    ]
    torch.testing.assert_close(it(Features(x)), torch.tensor(expected))
