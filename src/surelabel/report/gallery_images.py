"""Convert search hits and tags to the images and labels of a gallery page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surelabel.records import SkippedImage
from surelabel.report.metric_descriptions import format_described_probability
from surelabel.retrieval import Hit, Query
from surelabel.retrieval.hits import hit_term_probabilities


@dataclass(frozen=True)
class GalleryLabel:
    """Label of an image of a gallery.

    Attributes:
        name: Label, or another quantity such as ``similarity``.
        value: Formatted value, such as ``93 %``.
        share: Probability in [0, 1], which is drawn as a bar. If the value is no probability, there
            is no bar, and the share is None.
    """

    name: str
    value: str
    share: float | None = None


@dataclass(frozen=True)
class GalleryImage:
    """Image of a gallery with its labels.

    Attributes:
        path: Path of the image.
        labels: Labels in the order of the page.
        title: Value of the whole image, such as the probability of a query. If there is no such
            value, the text is empty.
        reason: Reason why the image could not be read. If the image was read, the reason
            is empty.
    """

    path: str
    labels: Sequence[GalleryLabel] = ()
    title: str = ""
    reason: str = ""


def gallery_image_of_hit(hit: Hit, query: Query) -> GalleryImage:
    """Return a hit with the probability of each term of the query, ``!NAME`` for unwanted labels.

    If the method of the index estimates an uncertainty, the labels include the uncertainty of each
    sentence. If the query has an example image, the labels include the similarity to this image.

    Args:
        hit: Hit of a search, whose terms are in the order of the query.
        query: Query of the search.
    """
    signs = [sign for _, sign in query.signed_terms]
    labels = [
        _gallery_probability(name if sign >= 0 else f"!{name}", p)
        for name, p, sign in zip(hit.terms, hit_term_probabilities(hit, query), signs, strict=False)
    ]
    labels += [
        GalleryLabel(f"uncertainty of {name}", f"{variance:.3g}")
        for name, variance in hit.uncertainties.items()
    ]
    if hit.similarity is not None:
        labels.append(GalleryLabel("similarity", f"{hit.similarity:.3f}"))
    return GalleryImage(hit.path, labels, title=format_described_probability(hit.probability))


def gallery_image_of_tags(path: str, tags: Sequence[Mapping[str, Any]]) -> GalleryImage:
    """Return an image with its tags.

    Args:
        path: Path of the image.
        tags: Tags of the image, as ``select_tags`` returns them.
    """
    return GalleryImage(path, list(map(_gallery_label_of_tag, tags)))


def gallery_image_of_skipped(skipped: SkippedImage) -> GalleryImage:
    """Return an image that could not be read, with the reason."""
    return GalleryImage(skipped.path, reason=skipped.reason)


def _gallery_label_of_tag(tag: Mapping[str, Any]) -> GalleryLabel:
    """Return a tag with its probability, or with its score if there is no probability."""
    uncertainty = f" ({tag['uncertainty']:.2g})" if "uncertainty" in tag else ""
    if tag["probability"] is None:
        return GalleryLabel(tag["label"], f"{tag['score']:.3f}{uncertainty}")
    label = _gallery_probability(tag["label"], tag["probability"])
    return GalleryLabel(label.name, f"{label.value}{uncertainty}", label.share)


def _gallery_probability(name: str, probability: float) -> GalleryLabel:
    return GalleryLabel(name, format_described_probability(probability), probability)
