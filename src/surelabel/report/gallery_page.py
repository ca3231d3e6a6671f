"""Write an HTML page with thumbnails and probabilities, which needs no annotations."""

import os
from collections.abc import Sequence
from pathlib import Path

from surelabel.counts import format_count
from surelabel.files import atomic_file
from surelabel.markup import Markup, join_markup, markup_element
from surelabel.progress import Progress
from surelabel.report.alternative_texts import alternative_text_of_labels
from surelabel.report.gallery_images import GalleryImage, GalleryLabel
from surelabel.report.image_paths import common_image_folder, render_image_path
from surelabel.report.page_layout import render_page_layout
from surelabel.report.thumbnails import load_thumbnail, thumbnail_jpeg_data_uri
from surelabel.storage.image_paths import (
    absolute_image_path,
    is_object_url,
    split_container_path,
)

MAX_GALLERY_IMAGES = 1000  # maximum on a page, which is then at most about 15 MB
MAX_GALLERY_LABELS = 10  # maximum number of labels of an image
GALLERY_SIDE = 224  # pixels of the longer side of a thumbnail


def write_gallery_page(
    path: str | Path,
    title: str,
    sentences: Sequence[str],
    images: Sequence[GalleryImage],
    *,
    n_images: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Write an HTML page with a thumbnail of each image, and its labels with probabilities.

    The page contains the thumbnails of the first 1000 images and the first 10 labels of each image,
    and has no scripts and no external resources. An image that cannot be read is shown as a frame
    with its path. The thumbnail of a file is a link to the file; images in archives, tables and
    object stores have no link.

    Args:
        path: Path of the page. An existing file is replaced.
        title: Title of the page, such as the query of a search.
        sentences: Paragraphs below the title, such as the calibration of the probabilities.
        images: Images in the order of the page.
        n_images: Number of images of the result, of which ``images`` are the first ones. If None,
            ``images`` are all images of the result.
        progress: Function called with the number of finished thumbnails and their total number.

    Raises:
        DataError: If the file cannot be written.
    """
    page = render_gallery_page(title, sentences, images, n_images=n_images, progress=progress)
    with atomic_file(path) as file:
        # a file name may contain bytes that are not Unicode; these are written as escapes
        file.write_text(page, encoding="utf-8", errors="backslashreplace")


def render_gallery_page(
    title: str,
    sentences: Sequence[str],
    images: Sequence[GalleryImage],
    *,
    n_images: int | None = None,
    progress: Progress | None = None,
) -> str:
    """Return the HTML page of :func:`write_gallery_page`."""
    shown = images[:MAX_GALLERY_IMAGES]
    folder = common_image_folder(absolute_image_path(image.path) for image in shown)
    gallery = render_gallery_cards(shown, folder, progress=progress)
    paragraphs = [
        _gallery_count(len(shown), len(images) if n_images is None else n_images, folder),
        *(markup_element("p", sentence) for sentence in sentences),
    ]
    return render_page_layout(title, join_markup(*paragraphs), {("images", "Images"): gallery})


def render_gallery_cards(
    images: Sequence[GalleryImage], folder: str, *, progress: Progress | None = None
) -> Markup:
    """Return cards with a thumbnail of each image and its labels.

    Args:
        images: Images in the order of the page.
        folder: Folder of all images, which is left out of their paths, or an empty text.
        progress: Function called with the number of finished thumbnails and their total number.
    """
    cards = []
    for done, image in enumerate(images, start=1):
        cards.append(_gallery_card(image, folder))
        if progress:
            progress(done, len(images))
    return markup_element("div", *cards, class_="images gallery")


def _gallery_count(n_shown: int, n_images: int, folder: str) -> Markup:
    """Return a paragraph with the number of images and their folder."""
    if not n_images:
        return markup_element("p", "No images were found.")
    images = format_count(n_images, "image")
    count = images if n_shown == n_images else f"The first {n_shown:,} of {images}"
    location = [" in ", markup_element("code", folder)] if folder else []
    return markup_element("p", count, *location, class_="soft")


def _gallery_card(image: GalleryImage, folder: str) -> Markup:
    labels = [*map(_gallery_label_item, image.labels[:MAX_GALLERY_LABELS])]
    n_more = len(image.labels) - MAX_GALLERY_LABELS
    if n_more > 0:
        labels.append(markup_element("li", f"and {n_more:,} more labels", class_="soft"))
    children = [_gallery_thumbnail(image)]
    if image.title:
        children.append(markup_element("p", image.title, class_="value"))
    if labels:
        children.append(markup_element("ul", *labels, class_="tags terms"))
    elif not image.title and not image.reason:
        children.append(markup_element("p", "no label", class_="soft"))
    children.append(render_image_path(absolute_image_path(image.path), folder))
    return markup_element("div", *children, class_="card")


def _gallery_label_item(label: GalleryLabel) -> Markup:
    return markup_element(
        "li",
        markup_element("span", markup_element("bdi", label.name)),
        markup_element("b", label.value),
        style=None if label.share is None else f"--share:{100 * label.share:.0f}",
    )


def _gallery_alternative_text(image: GalleryImage) -> str:
    """Return the first labels of an image with their values, or its path without labels."""
    labels = alternative_text_of_labels((label.name, label.value) for label in image.labels)
    return labels or f"image {image.path}"


def _gallery_thumbnail(image: GalleryImage) -> Markup:
    """Return the thumbnail as a link to the image file, or a frame if the image cannot be read."""
    thumbnail = None if image.reason else load_thumbnail(image.path, side=GALLERY_SIDE)
    if thumbnail is None:
        reason = f": {image.reason}" if image.reason else ""
        return markup_element("div", f"This image cannot be read{reason}.", class_="unreadable")
    element = markup_element(
        "img",
        src=thumbnail_jpeg_data_uri(thumbnail),
        alt=_gallery_alternative_text(image),
        class_="image",
        loading="lazy",
    )
    path = os.path.abspath(image.path)
    is_file = not is_object_url(image.path) and split_container_path(path) is None
    return markup_element("a", element, href=Path(path).as_uri()) if is_file else element
