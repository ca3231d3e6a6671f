"""Draw heat maps of labels and the best label of each region, for the cards of the HTML page."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PIL import Image, ImageColor

from surelabel.arrays import Array
from surelabel.evaluation import RegionMaps
from surelabel.markup import Markup, join_markup, markup_element
from surelabel.report.heat_map_drawing import (
    blend_heat_map_colours,
    crop_image_for_heat_map_drawing,
    draw_heat_map,
    upsample_heat_map_patches,
)
from surelabel.report.thumbnails import thumbnail_jpeg_data_uri

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # Okabe and Ito
MAX_MAPS = 3  # heat maps in a row
MIN_OPACITY, MAX_OPACITY = 0.15, 0.7  # opacity at weight 0; at the average weight or more
HEAT_MAPS = "Heat map of each label"
FROZEN = "Similarity in the frozen encoder"
ADAPTED = "Similarity after adaptation"
STRONGEST_LABELS = "Strongest label of each region"
REGION_WEIGHTS = "Weight of each region"


def draw_region_overlay_of_strongest_labels(image: Image.Image, regions: RegionMaps) -> Image.Image:
    """Colour each region of an image by the label with the highest score.

    Args:
        image: RGB image.
        regions: Region maps of the image. The first six labels of ``maps`` have one colour each,
            in the order of ``COLOURS``. Regions below the average weight have a lower opacity.

    Returns:
        Image cropped to the part that the regions cover. Regions whose highest-scored label has no
        colour are grey.
    """
    names = list(regions.maps)[: len(COLOURS)]
    cropped, labels, box = crop_image_for_heat_map_drawing(
        image, regions.strongest_labels, regions.crop_mode
    )
    masks = [*(labels == name for name in names), ~np.isin(labels, names)]
    coverage = [
        upsample_heat_map_patches(mask.astype(np.float64), cropped.size, box) for mask in masks
    ]
    colour_index = np.argmax(coverage, axis=0)
    palette = [ImageColor.getrgb(colour)[:3] for colour in COLOURS[: len(names)]]
    colours = np.array([*palette, (0, 0, 0)], dtype=np.float64)[colour_index]
    opacity = np.where(colour_index < len(names), _region_overlay_opacity(image, regions), 0.0)
    return blend_heat_map_colours(cropped, colours, opacity)


def _region_overlay_opacity(image: Image.Image, regions: RegionMaps) -> Array | float:
    if regions.region_weights is None:
        return MAX_OPACITY
    relative_weights = (regions.region_weights * regions.region_weights.size).clip(max=1)
    cropped, weights, box = crop_image_for_heat_map_drawing(
        image, relative_weights, regions.crop_mode
    )
    pixel_weights = upsample_heat_map_patches(weights, cropped.size, box)
    return MIN_OPACITY + (MAX_OPACITY - MIN_OPACITY) * pixel_weights


def region_overlay_heat_map_groups(
    regions: RegionMaps,
) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Yield the title of each available kind of heat map, and the heat maps by label."""
    groups = (
        (HEAT_MAPS, regions.maps),
        (FROZEN, regions.frozen_similarities),
        (ADAPTED, regions.adapted_similarities),
    )
    return ((title, maps) for title, maps in groups if maps)


def render_region_overlay_maps(
    image: Image.Image, regions: RegionMaps, symbols: Mapping[str, Sequence[str]]
) -> Markup:
    """Return all heat maps of an image as HTML.

    Args:
        image: Thumbnail of the image.
        regions: Region maps of the image. Each row contains the maps of the first three labels.
        symbols: Mapping from label to the HTML in front of the label in a caption.
    """

    def figure(panel: Image.Image, alt: str, *caption: str) -> Markup:
        thumbnail = markup_element(
            "img", src=thumbnail_jpeg_data_uri(panel), alt=alt, class_="image", loading="lazy"
        )
        return markup_element("figure", thumbnail, markup_element("figcaption", *caption))

    def heat_map_figure(similarity: Array, alt: str, *caption: str) -> Markup:
        panel = draw_heat_map(image, similarity, crop_mode=regions.crop_mode)
        return figure(panel, alt, *caption)

    rows = [
        _region_overlay_heat_map_row(
            title,
            *(
                heat_map_figure(maps[name], f"{title}: {name}", *symbols.get(name, ()), name)
                for name in list(maps)[:MAX_MAPS]
            ),
        )
        for title, maps in region_overlay_heat_map_groups(regions)
    ]
    overview = [
        figure(
            draw_region_overlay_of_strongest_labels(image, regions),
            _describe_strongest_labels(regions),
            "all labels",
        )
    ]
    if regions.region_weights is not None:
        overview.append(
            heat_map_figure(regions.region_weights, REGION_WEIGHTS, REGION_WEIGHTS.lower())
        )
    overview_row = _region_overlay_heat_map_row(
        STRONGEST_LABELS, *overview, _region_overlay_label_legend(regions)
    )
    return markup_element("div", rows[0], overview_row, *rows[1:], data_only="html")


def _region_overlay_heat_map_row(title: str, *figures: Markup) -> Markup:
    return join_markup(
        markup_element("h4", title), markup_element("div", *figures, class_="heat-maps")
    )


def _describe_strongest_labels(regions: RegionMaps) -> str:
    """Return the title and the number of regions of each listed label.

    An example of a number is ``lion in 12 of 49 regions``. Labels without a region are left out.
    """
    n_regions = regions.strongest_labels.size
    counts = {name: int((regions.strongest_labels == name).sum()) for name in regions.maps}
    listed = [
        f"{name} in {count} of {n_regions} regions"
        for name, count in list(counts.items())[: len(COLOURS)]
        if count
    ]
    return f"{STRONGEST_LABELS}: {', '.join(listed) or 'none of the listed labels'}"


def _region_overlay_label_legend(regions: RegionMaps) -> Markup:
    items = [
        markup_element(
            "li", markup_element("span", "", class_="swatch", style=f"background: {colour}"), name
        )
        for name, colour in zip(regions.maps, COLOURS, strict=False)
    ]
    return markup_element("ul", *items, class_="colours")
