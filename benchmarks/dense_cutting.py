"""What looking at parts of a picture costs and gives: crops that are encoded anew, and cheaper.

    python benchmarks/dense_cutting.py [--quick]

Both encoders of the package on validation pictures of scenes-80. A pass is one look at a whole
picture at the encoder's own size; passes compare multiplications and additions (FLOPs), also of
smaller and larger looks. Milliseconds are those of the encoder, on one thread, without decoding.
What pooling sub-grids again costs is left out of both. The best of three rules counts, in all rows.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import surelabel as sl
from surelabel.backbones import load_backbone
from surelabel.data import open_picture
from surelabel.methods import Wording
from surelabel.methods.places import telling_places
from surelabel.metrics import mean_average_precision
from surelabel.views import (
    Box,
    Crops,
    Regions,
    Tiles,
    attended,
    cut_out,
    last_map,
    max_with_margin,
    mean_of_centred,
    mean_of_patches,
    mean_of_standardised,
    random_crops,
    tiles,
)

SIZES = {"tiny-vit": (96, 132, 144, 192), "tiny-rn": (96, 128, 160, 192, 256)}  # of maps
SMALL = {"tiny-vit": (48, 60), "tiny-rn": (64,)}  # at which parts are encoded, beside its own
MAPPED = {"tiny-vit": 96, "tiny-rn": 128}  # where windows are looked for
PARTS = {48: 0.34, 60: 0.4, 64: 0.4, 96: 0.4}  # width of a window by its size in pixels
COUNTS = (2, 3, 4, 5, 6)  # windows
BASE = "20 random crops"
CHEAPER, LOSS = 10, 1.0
BATCH = 20


@dataclass(frozen=True)
class Look:
    """What was seen of all pictures: ``whole`` ``(n, d)``, ``parts`` ``(n, t, d)``, at a cost."""

    name: str
    whole: Tensor
    parts: Tensor | None
    flops: float
    seconds: float


def flops_of(encoder: Callable[[Tensor], Any], side: int) -> float:
    """Of one picture. Fused attention hides its own, so it is written out for the count."""
    torch.backends.mha.set_fastpath_enabled(False)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        encoder(torch.zeros(1, 3, side, side))
    torch.backends.mha.set_fastpath_enabled(True)
    return float(counter.get_total_flops())


def seen(
    encoder: Callable[[Tensor], Any], prepare: Any, pictures: Sequence[Image.Image]
) -> tuple[list[Any], float]:
    """What an encoder gives of pictures, batch by batch, and its seconds a picture."""
    found, seconds = [], 0.0
    for start in range(0, len(pictures), BATCH):
        pixels = torch.stack([prepare(p) for p in pictures[start : start + BATCH]])
        begun = time.perf_counter()
        found.append(encoder(pixels))
        seconds += time.perf_counter() - begun
    return found, seconds / len(pictures)


def parts_of(
    backbone: Any, pictures: Sequence[Image.Image], cuts: Sequence[Any]
) -> tuple[Any, ...]:
    """Vectors of parts encoded anew ``(n, t, d)``, FLOPs and seconds of them all, a picture."""
    side = backbone.least_side
    boxes = [
        cut.boxes(p.size, str(i)) for i, (p, cut) in enumerate(zip(pictures, cuts, strict=True))
    ]
    cut = [
        cut_out(p, box, size=(side, side))
        for p, row in zip(pictures, boxes, strict=True)
        for box in row
    ]
    found, seconds = seen(backbone.images, backbone.prepare, cut)
    t = len(boxes[0])
    vectors = torch.cat([f.pooled for f in found]).unflatten(0, (len(pictures), t))
    return vectors, t * flops_of(backbone.images, side), t * seconds


def anew(backbone: Any, pictures: Sequence[Image.Image], small: Sequence[int]) -> Iterator[Look]:
    """The whole picture, and crops and tiles that are encoded anew."""
    side = backbone.least_side
    found, seconds = seen(backbone.images, backbone.prepare, pictures)
    whole, once = torch.cat([f.pooled for f in found]), flops_of(backbone.images, side)
    yield Look("the whole", whole, None, once, seconds)
    for name, cut, size in (
        (BASE, Crops(20), side),
        *((f"3 by 3 tiles at {size} px", Tiles(3, 3), size) for size in (side, *small)),
    ):
        vectors, cost, spent = parts_of(backbone.at(size), pictures, [cut] * len(pictures))
        yield Look(name, whole, vectors, once + cost, seconds + spent)


def dense(backbone: Any, pictures: Sequence[Image.Image], sizes: Sequence[int]) -> Iterator[Look]:
    """One map a picture, looked at patch by patch or by sub-grids, alone or beside the whole."""
    side = backbone.least_side
    found, seconds = seen(backbone.images, backbone.prepare, pictures)
    whole, once = torch.cat([f.pooled for f in found]), flops_of(backbone.images, side)
    for size in sizes:
        large = backbone.at(size)
        found, spent = seen(large.self_aware, large.prepare, pictures)
        own, patches = (torch.cat([getattr(f, k) for f in found]) for k in ("pooled", "patches"))
        grid, cost = found[0].grid, flops_of(large.self_aware, size)
        boxes = sub_grids(grid)
        views = {"patches": patches, "means of sub-grids": mean_of_patches(patches, grid, boxes)}
        if hasattr(large.model.visual, "attnpool"):
            maps, _ = seen(lambda x, v=large.model.visual: last_map(v, x), large.prepare, pictures)
            views["pooled sub-grids"] = attended(
                large.model.visual.attnpool, torch.cat(maps), boxes
            )
        for name, parts in views.items():
            yield Look(f"{name} at {size} px", own, parts, cost, spent)
            if size != side:
                more = f"{name} at {size} px, whole at {side}"
                yield Look(more, whole, parts, cost + once, spent + seconds)


def sub_grids(grid: tuple[int, int]) -> list[Box]:
    """Nine tiles and twenty random ones, each once."""
    down, across = grid
    drawn = random_crops(
        (across, down), 20, generator=torch.Generator().manual_seed(0), area=(0.1, 0.3), flip=0.0
    )
    return list(dict.fromkeys([*tiles((across, down), down=3, across=3), *drawn]))


def windows(
    backbone: Any,
    pictures: Sequence[Image.Image],
    wording: Wording,
    *,
    seen_at: int,
    sizes: Sequence[int],
) -> Iterator[Look]:
    """A map first, then the places that say the most, encoded anew at one size or another."""
    large = backbone.at(seen_at)
    found, spent = seen(large.self_aware, large.prepare, pictures)
    own, cost = torch.cat([f.pooled for f in found]), flops_of(large.self_aware, seen_at)
    scores = wording(torch.cat([f.patches for f in found]))
    maps = scores.transpose(1, 2).unflatten(2, found[0].grid)
    for size in sizes:
        places = telling_places(maps, count=max(COUNTS), part=PARTS[size])
        most = min(len(row) for row in places)
        cuts = [Regions(row[:most]) for row in places]
        vectors, flops, seconds = parts_of(backbone.at(size), pictures, cuts)
        for k in (k for k in COUNTS if k <= most):
            name = f"{k} windows at {size} px, map at {seen_at}"
            more, longer = k / most * flops, k / most * seconds
            yield Look(name, own, vectors[:, :k], cost + more, spent + longer)


RULES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "max": lambda whole, parts: max_with_margin(whole, parts, margin=1.0),
    "centred": mean_of_centred,
    "standardised": mean_of_standardised,
}


def judged(look: Look, odds: Wording, plain: Wording, targets: Any) -> dict[str, float]:
    """mAP by each rule, in percent; ``odds`` in the softmax domain for the maximum."""
    found = {}
    for name, rule in RULES.items():
        wording = odds if name == "max" else plain
        whole = wording(look.whole)
        scores = whole if look.parts is None else rule(whole, wording(look.parts))
        found[name] = 100 * mean_average_precision(scores.double().numpy(), targets)
    return found


def study(name: str, count: int) -> None:
    """Print a line for each way of looking, and where the curve crosses the random crops."""
    validation = sl.collection("scenes-80", split="validation").take(range(count))
    backbone = load_backbone(name)
    finest = 3 * backbone.least_side
    pictures = [open_picture(path, least_side=finest) for path in validation.paths]
    odds = Wording(backbone, validation.names, domain="softmax", background="usual")
    plain = Wording(backbone, validation.names)
    print(f"\n{name}, {count} pictures: mAP by {', '.join(RULES)}")
    print(f"{'':44} {'passes':>6} {'MFLOP':>6} {'ms':>6}  mAP")
    rows: list[tuple[float, float, str]] = []
    base: tuple[float, float] | None = None
    ways = (
        anew(backbone, pictures, SMALL[name]),
        dense(backbone, pictures, SIZES[name]),
        windows(
            backbone,
            pictures,
            odds,
            seen_at=MAPPED[name],
            sizes=(*SMALL[name], backbone.least_side),
        ),
    )
    once = flops_of(backbone.images, backbone.least_side)
    for look in (look for way in ways for look in way):
        found = judged(look, odds, plain, validation.targets)
        best, cost = max(found.values()), look.flops / once
        values = "  ".join(f"{value:5.1f}" for value in found.values())
        line = f"{look.name:44} {cost:6.2f} {look.flops / 1e6:6.0f} {1000 * look.seconds:6.1f}"
        print(f"{line}  {values}", flush=True)
        rows.append((cost, best, look.name))
        base = (cost, best) if look.name == BASE else base
    assert base is not None
    conclude(rows, *base)


def conclude(rows: Sequence[tuple[float, float, str]], cost: float, best: float) -> None:
    """The best that costs a tenth of the crops, and the cheapest that loses a point at most."""
    print(f"{BASE}: {cost:.1f} passes, {best:.1f} mAP")
    cheap = max((row for row in rows if CHEAPER * row[0] <= cost), key=lambda row: row[1])
    print(
        f"best at a {CHEAPER}th of that: {cheap[2]}: {cost / cheap[0]:.1f} x cheaper, "
        f"{cheap[1] - best:+.1f}"
    )
    near = min(row for row in rows if row[1] >= best - LOSS)
    print(
        f"cheapest within {LOSS:.0f} point: {near[2]}: {cost / near[0]:.1f} x cheaper, "
        f"{near[1] - best:+.1f}"
    )
    ahead = -np.inf
    for price, value, name in sorted(rows):
        if value > ahead:
            print(f"  {price:6.2f} passes {value:5.1f}  {name}")
            ahead = value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="60 pictures instead of 300")
    torch.set_num_threads(1)
    quick = parser.parse_args().quick
    with torch.no_grad():
        for encoder in SIZES:
            study(encoder, 60 if quick else 300)
