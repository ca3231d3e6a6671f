import torch

from surelabel.records import Features
from surelabel.views import image_and_view_vectors


def test_the_image_precedes_its_views():
    pooled, views = torch.randn(2, 4), torch.randn(2, 3, 4)
    vectors = image_and_view_vectors(Features(pooled, views=views))
    assert torch.equal(vectors[:, 0], pooled)
    assert torch.equal(vectors[:, 1:], views)


def test_without_views_the_image_is_the_only_vector():
    pooled = torch.randn(2, 4)
    assert torch.equal(image_and_view_vectors(Features(pooled)), pooled[:, None])
