"""Heat maps and strongest labels of the regions of an image, for the cards of a page."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PIL import Image, ImageColor

from surelabel.evaluation import RegionMaps
from surelabel.records import Array
from surelabel.report.heat_map_drawing import (
    blend_colours,
    crop_to_patches,
    draw_heat_map,
    upsample_patches,
)
from surelabel.report.markup import Markup, html_element, join_markup
from surelabel.report.thumbnails import jpeg_data_uri

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # Okabe and Ito
MAX_MAPS = 3  # heat maps in a row
MIN_OPACITY, MAX_OPACITY = 0.15, 0.7  # at weight 0; at the average weight or more
HEAT_MAPS = "Heat map of each label"
FROZEN = "Similarity in the frozen encoder"
ADAPTED = "Similarity after adaptation"
STRONGEST_LABELS = "Strongest label of each region"
REGION_WEIGHTS = "Weight of each region"


def draw_strongest_labels(image: Image.Image, regions: RegionMaps) -> Image.Image:
    """Colour each region of an image by its strongest label.

    Args:
        image: RGB image.
        regions: Region maps of the image. The first six labels of ``maps`` have one colour each,
            in the order of ``COLOURS``. Regions with less than the average weight are fainter.

    Returns:
        The part of the image that the regions cover. Regions of other labels are grey.
    """
    names = list(regions.maps)[: len(COLOURS)]
    cropped, labels, box = crop_to_patches(image, regions.strongest_labels, regions.crop_mode)
    masks = [*(labels == name for name in names), ~np.isin(labels, names)]
    coverage = [upsample_patches(mask.astype(np.float64), cropped.size, box) for mask in masks]
    colour_index = np.argmax(coverage, axis=0)
    palette = [ImageColor.getrgb(colour)[:3] for colour in COLOURS[: len(names)]]
    colours = np.array([*palette, (0, 0, 0)], dtype=np.float64)[colour_index]
    opacity = np.where(colour_index < len(names), _region_opacity(image, regions), 0.0)
    return blend_colours(cropped, colours, opacity)


def _region_opacity(image: Image.Image, regions: RegionMaps) -> Array | float:
    if regions.region_weights is None:
        return MAX_OPACITY
    relative_weights = (regions.region_weights * regions.region_weights.size).clip(max=1)
    cropped, weights, box = crop_to_patches(image, relative_weights, regions.crop_mode)
    pixel_weights = upsample_patches(weights, cropped.size, box)
    return MIN_OPACITY + (MAX_OPACITY - MIN_OPACITY) * pixel_weights


def heat_map_groups(regions: RegionMaps) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Return the title and the maps (label → map) of each kind of heat map that is available."""
    groups = (
        (HEAT_MAPS, regions.maps),
        (FROZEN, regions.frozen_similarities),
        (ADAPTED, regions.adapted_similarities),
    )
    return ((title, maps) for title, maps in groups if maps)


def render_region_maps(
    image: Image.Image, path: str, regions: RegionMaps, symbols: Mapping[str, Sequence[str]]
) -> Markup:
    """Return all maps of the regions of an image as HTML.

    Args:
        image: Thumbnail of the image.
        path: Path of the image, for the alternative text.
        regions: Region maps; the first labels are shown.
        symbols: Label → HTML before the label in a caption.
    """

    def figure(panel: Image.Image, description: str, *caption: str) -> Markup:
        alt = f"{description} in {path}"
        thumbnail = html_element(
            "img", src=jpeg_data_uri(panel), alt=alt, class_="image", loading="lazy"
        )
        return html_element("figure", thumbnail, html_element("figcaption", *caption))

    def heat_map_figure(similarity: Array, description: str, *caption: str) -> Markup:
        panel = draw_heat_map(image, similarity, crop_mode=regions.crop_mode)
        return figure(panel, description, *caption)

    rows = [
        _titled_heat_map_row(
            title,
            *(
                heat_map_figure(maps[name], f"{title}: {name}", *symbols.get(name, ()), name)
                for name in list(maps)[:MAX_MAPS]
            ),
        )
        for title, maps in heat_map_groups(regions)
    ]
    overview = [figure(draw_strongest_labels(image, regions), STRONGEST_LABELS, "all labels")]
    if regions.region_weights is not None:
        overview.append(
            heat_map_figure(regions.region_weights, REGION_WEIGHTS, REGION_WEIGHTS.lower())
        )
    overview_row = _titled_heat_map_row(
        STRONGEST_LABELS, *overview, _strongest_label_legend(regions)
    )
    return join_markup(rows[0], overview_row, *rows[1:])


def _titled_heat_map_row(title: str, *figures: Markup) -> Markup:
    return join_markup(html_element("h4", title), html_element("div", *figures, class_="heat-maps"))


def _strongest_label_legend(regions: RegionMaps) -> Markup:
    items = [
        html_element(
            "li", html_element("span", "", class_="swatch", style=f"background: {colour}"), name
        )
        for name, colour in zip(regions.maps, COLOURS, strict=False)
    ]
    return html_element("ul", *items, class_="colours")
