import math

from surelabel.records import SkippedImage
from surelabel.report import (
    GalleryImage,
    GalleryLabel,
    gallery_image_of_hit,
    gallery_image_of_skipped,
    gallery_image_of_tags,
)
from surelabel.retrieval import Hit, Query, parse


def test_the_terms_of_a_hit_multiply_to_its_probability():
    hit = Hit("a.jpg", 0.72, {"fork": 0.9, "knife": 0.2})
    image = gallery_image_of_hit(hit, Query.of_labels(("fork",), ("knife",)))
    assert image == GalleryImage(
        "a.jpg",
        [GalleryLabel("fork", "90 %", 0.9), GalleryLabel("!knife", "80 %", 0.8)],
        title="72 %",
    )
    assert math.isclose(math.prod(label.share for label in image.labels), hit.probability)


def test_labels_of_another_unicode_form_than_the_query_keep_their_sign():
    hit = Hit("a.jpg", 0.25, {"caf\u00e9": 0.75})
    image = gallery_image_of_hit(hit, Query.of_labels((), ("cafe\u0301",)))
    assert [(label.name, label.value) for label in image.labels] == [("!caf\u00e9", "25 %")]


def test_a_similarity_and_an_uncertainty_have_no_bar():
    hit = Hit("a.jpg", 0.8, {'~"a lion"': 0.8}, {'~"a lion"': 0.0123}, 0.25)
    image = gallery_image_of_hit(hit, parse('like:b.jpg & ~"a lion"'))
    assert image.labels == [
        GalleryLabel('~"a lion"', "80 %", 0.8),
        GalleryLabel('uncertainty of ~"a lion"', "0.0123"),
        GalleryLabel("similarity", "0.250"),
    ]


def test_tags_have_probabilities_or_scores_without_a_bar():
    tags = [
        {"label": "lion", "score": 3.0, "probability": 0.97, "uncertainty": 0.1234},
        {"label": "bear", "score": 2.0, "probability": None},
    ]
    assert gallery_image_of_tags("a.jpg", tags).labels == [
        GalleryLabel("lion", "97.0 % (0.12)", 0.97),
        GalleryLabel("bear", "2.000"),
    ]


def test_a_skipped_image_has_its_reason():
    image = gallery_image_of_skipped(SkippedImage("a.jpg", "empty file"))
    assert image == GalleryImage("a.jpg", reason="empty file")
