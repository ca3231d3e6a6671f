"""Which region of a picture speaks for which label, in small pictures on a page."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PIL import Image, ImageColor

from surelabel.evaluation import Regions
from surelabel.records import Array
from surelabel.report.markup import Markup, element, joined
from surelabel.report.pictures import covered, enlarged, heat_map, jpeg, painted

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # of Okabe and Ito
MAPS = 3  # heat maps in a row
FAINT, PLAIN = 0.15, 0.7  # how much colour covers a region that counts nothing, and an average one
PLANS = "Which region speaks for which label"
BEFORE = "Before: the encoder's own regions"
AFTER = "After: the regions of the method"
OWNERS = "The strongest label of each region"
PRESENCE = "How much each counts"


def owner_map(picture: Image.Image, regions: Regions) -> Image.Image:
    """Colour each region by the label that it speaks for most, where that is one of ``maps``.

    Args:
        picture: RGB.
        regions: Its first labels have a colour each, in the order of ``COLOURS``. A
            region that counts less than the average is fainter.

    Returns:
        The part that the regions cover, grey where they speak for other labels.
    """
    names = list(regions.maps)[: len(COLOURS)]
    part, owners, box = covered(picture, regions.owners, regions.cover)
    whose = [*(owners == name for name in names), ~np.isin(owners, names)]
    spread = [enlarged(flags.astype(np.float64), part.size, box) for flags in whose]
    first = np.argmax(spread, axis=0)
    palette = [ImageColor.getrgb(colour)[:3] for colour in COLOURS[: len(names)]]
    colour = np.array([*palette, (0, 0, 0)], dtype=np.float64)[first]
    return painted(part, colour, np.where(first < len(names), _opaque(picture, regions), 0.0))


def _opaque(picture: Image.Image, regions: Regions) -> Array | float:
    if regions.presence is None:
        return PLAIN
    even = (regions.presence * regions.presence.size).clip(max=1)
    part, counts, box = covered(picture, even, regions.cover)
    return FAINT + (PLAIN - FAINT) * enlarged(counts, part.size, box)


def rows_of(regions: Regions) -> Iterator[tuple[str, Mapping[str, Array]]]:
    """Each kind of heat map that there is, first ``maps``: what it shows, and of each label."""
    found = ((PLANS, regions.maps), (BEFORE, regions.before), (AFTER, regions.after))
    return ((title, maps) for title, maps in found if maps)


def by_region(
    picture: Image.Image, path: str, regions: Regions, signs: Mapping[str, Sequence[str]]
) -> Markup:
    """All that is known of the regions of one picture.

    Args:
        picture: A thumbnail.
        path: Of the picture, for those who cannot see it.
        regions: Its maps; the first labels are shown.
        signs: Label → what stands before its name.
    """

    def drawn(image: Image.Image, about: str, *caption: str) -> Markup:
        alt = f"{about} in {path}"
        seen = element("img", src=jpeg(image), alt=alt, class_="picture", loading="lazy")
        return element("figure", seen, element("figcaption", *caption))

    def heat(strength: Array, about: str, *caption: str) -> Markup:
        return drawn(heat_map(picture, strength, cover=regions.cover), about, *caption)

    rows = [
        _row(
            title,
            *(
                heat(maps[name], f"{title}: {name}", *signs.get(name, ()), name)
                for name in list(maps)[:MAPS]
            ),
        )
        for title, maps in rows_of(regions)
    ]
    together = [drawn(owner_map(picture, regions), OWNERS, "all labels")]
    if regions.presence is not None:
        together.append(heat(regions.presence, PRESENCE, PRESENCE.lower()))
    return joined(rows[0], _row(OWNERS, *together, _legend(regions)), *rows[1:])


def _row(title: str, *figures: Markup) -> Markup:
    return joined(element("h4", title), element("div", *figures, class_="where"))


def _legend(regions: Regions) -> Markup:
    """The colours of ``owner_map``."""
    labels = [
        element("li", element("span", "", class_="swatch", style=f"background: {colour}"), name)
        for name, colour in zip(regions.maps, COLOURS, strict=False)
    ]
    return element("ul", *labels, class_="colours")
