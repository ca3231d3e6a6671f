"""Compare cost and mAP of separately encoded image parts with cheaper alternatives.

    python benchmarks/dense_views.py [--quick]

Both embedded encoders are measured on validation images of scenes-80. One pass is the cost of
encoding a whole image at the input size of the encoder. The number of passes is the ratio of
multiplications and additions (FLOPs), also at smaller and larger sizes. Milliseconds are those of
the encoder on one thread, without decoding. The cost of pooling sub-grids is not included. The
comparison uses the best of three fusion rules in all rows.
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
from surelabel.data import open_image
from surelabel.encoders import load_encoder
from surelabel.methods import TextScorer
from surelabel.methods.dense_regions.windows import select_windows
from surelabel.metrics import mean_average_precision
from surelabel.views import (
    Box,
    CropLayout,
    RegionLayout,
    TileLayout,
    attention_pool_subgrids,
    crop_and_resize_box,
    last_feature_map_for_subgrids,
    max_fusion_with_margin,
    mean_fusion_of_centred,
    mean_fusion_of_standardized,
    mean_pool_subgrids,
    random_crop_boxes,
    tile_grid_boxes,
)

MAP_SIZES = {"tiny-vit": (96, 132, 144, 192), "tiny-rn": (96, 128, 160, 192, 256)}  # pixels
SMALL_SIZES = {"tiny-vit": (48, 60), "tiny-rn": (64,)}  # pixels of parts, besides the input size
WINDOW_MAP_SIZES = {"tiny-vit": 96, "tiny-rn": 128}  # pixels, for the map that selects windows
WINDOW_WIDTHS = {
    48: 0.34,
    60: 0.4,
    64: 0.4,
    96: 0.4,
}  # fraction of the image, by window size in pixels
WINDOW_COUNTS = (2, 3, 4, 5, 6)
REFERENCE = "20 random crops"
COST_FACTOR, MAX_LOSS = 10, 1.0
BATCH_SIZE = 20


@dataclass(frozen=True)
class ViewFeatures:
    """Features of whole images ``(n, d)`` and of parts ``(n, t, d)``, with the cost per image."""

    name: str
    whole: Tensor
    parts: Tensor | None
    flops: float
    seconds: float


def count_flops(encoder: Callable[[Tensor], Any], side: int) -> float:
    """Return the FLOPs per image, without fused attention, whose FLOPs are not counted."""
    torch.backends.mha.set_fastpath_enabled(False)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        encoder(torch.zeros(1, 3, side, side))
    torch.backends.mha.set_fastpath_enabled(True)
    return float(counter.get_total_flops())


def encode_timed(
    encoder: Callable[[Tensor], Any], preprocess: Any, images: Sequence[Image.Image]
) -> tuple[list[Any], float]:
    """Return the encoder output of each batch, and the seconds per image."""
    outputs, seconds = [], 0.0
    for start in range(0, len(images), BATCH_SIZE):
        pixels = torch.stack([preprocess(p) for p in images[start : start + BATCH_SIZE]])
        started = time.perf_counter()
        outputs.append(encoder(pixels))
        seconds += time.perf_counter() - started
    return outputs, seconds / len(images)


def encode_parts(
    encoder: Any, images: Sequence[Image.Image], layouts: Sequence[Any]
) -> tuple[Tensor, float, float]:
    """Return the features of encoded parts ``(n, t, d)``, and FLOPs and seconds per image."""
    side = encoder.input_side
    boxes = [
        layout.boxes(image.size, str(i))
        for i, (image, layout) in enumerate(zip(images, layouts, strict=True))
    ]
    parts = [
        crop_and_resize_box(image, box, size=(side, side))
        for image, image_boxes in zip(images, boxes, strict=True)
        for box in image_boxes
    ]
    outputs, seconds = encode_timed(encoder.encode_images, encoder.preprocess, parts)
    t = len(boxes[0])
    features = torch.cat([output.pooled for output in outputs]).unflatten(0, (len(images), t))
    return features, t * count_flops(encoder.encode_images, side), t * seconds


def separate_views(
    encoder: Any, images: Sequence[Image.Image], sizes: Sequence[int]
) -> Iterator[ViewFeatures]:
    """Iterate over the whole image, and over crops and tiles that are encoded separately."""
    side = encoder.input_side
    outputs, seconds = encode_timed(encoder.encode_images, encoder.preprocess, images)
    whole = torch.cat([output.pooled for output in outputs])
    whole_flops = count_flops(encoder.encode_images, side)
    yield ViewFeatures("whole image", whole, None, whole_flops, seconds)
    for name, layout, size in (
        (REFERENCE, CropLayout(20), side),
        *((f"3 by 3 tiles at {size} px", TileLayout(3, 3), size) for size in (side, *sizes)),
    ):
        resized = encoder.with_image_size(size)
        parts, flops, part_seconds = encode_parts(resized, images, [layout] * len(images))
        yield ViewFeatures(name, whole, parts, whole_flops + flops, seconds + part_seconds)


def dense_views(
    encoder: Any, images: Sequence[Image.Image], sizes: Sequence[int]
) -> Iterator[ViewFeatures]:
    """Iterate over patches and sub-grids of one feature map, with and without the whole image."""
    side = encoder.input_side
    outputs, seconds = encode_timed(encoder.encode_images, encoder.preprocess, images)
    whole = torch.cat([output.pooled for output in outputs])
    whole_flops = count_flops(encoder.encode_images, side)
    for size in sizes:
        large = encoder.with_image_size(size)
        outputs, map_seconds = encode_timed(
            large.encode_self_aware_patches, large.preprocess, images
        )
        large_whole = torch.cat([output.pooled for output in outputs])
        patches = torch.cat([output.patches for output in outputs])
        grid, flops = outputs[0].grid, count_flops(large.encode_self_aware_patches, size)
        boxes = sub_grid_boxes(grid)
        views = {"patches": patches, "means of sub-grids": mean_pool_subgrids(patches, grid, boxes)}
        visual = large.model.visual
        if hasattr(visual, "attnpool"):
            maps, _ = encode_timed(
                lambda x, visual=visual: last_feature_map_for_subgrids(visual, x),
                large.preprocess,
                images,
            )
            views["pooled sub-grids"] = attention_pool_subgrids(
                visual.attnpool, torch.cat(maps), boxes
            )
        for name, parts in views.items():
            yield ViewFeatures(f"{name} at {size} px", large_whole, parts, flops, map_seconds)
            if size != side:
                with_whole = f"{name} at {size} px, whole at {side}"
                yield ViewFeatures(
                    with_whole, whole, parts, flops + whole_flops, map_seconds + seconds
                )


def sub_grid_boxes(grid: tuple[int, int]) -> list[Box]:
    """Return nine tiles and twenty random crops of a grid, without duplicates."""
    rows, columns = grid
    crops = random_crop_boxes(
        (columns, rows), 20, generator=torch.Generator().manual_seed(0), area=(0.1, 0.3), flip=0.0
    )
    return list(dict.fromkeys([*tile_grid_boxes((columns, rows), rows=3, columns=3), *crops]))


def window_views(
    encoder: Any,
    images: Sequence[Image.Image],
    scorer: TextScorer,
    *,
    map_size: int,
    sizes: Sequence[int],
) -> Iterator[ViewFeatures]:
    """Iterate over windows with the highest scores on a feature map, encoded separately."""
    large = encoder.with_image_size(map_size)
    outputs, map_seconds = encode_timed(large.encode_self_aware_patches, large.preprocess, images)
    whole = torch.cat([output.pooled for output in outputs])
    map_flops = count_flops(large.encode_self_aware_patches, map_size)
    scores = scorer(torch.cat([output.patches for output in outputs]))
    maps = scores.transpose(1, 2).unflatten(2, outputs[0].grid)
    for size in sizes:
        windows = select_windows(maps, count=max(WINDOW_COUNTS), window_size=WINDOW_WIDTHS[size])
        n_windows = min(len(image_windows) for image_windows in windows)
        layouts = [RegionLayout(image_windows[:n_windows]) for image_windows in windows]
        parts, flops, seconds = encode_parts(encoder.with_image_size(size), images, layouts)
        for k in (k for k in WINDOW_COUNTS if k <= n_windows):
            share = k / n_windows
            yield ViewFeatures(
                f"{k} windows at {size} px, map at {map_size}",
                whole,
                parts[:, :k],
                map_flops + share * flops,
                map_seconds + share * seconds,
            )


RULES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "max": lambda whole, parts: max_fusion_with_margin(whole, parts, margin=1.0),
    "centred": mean_fusion_of_centred,
    "standardized": mean_fusion_of_standardized,
}


def measure_map(
    view: ViewFeatures, softmax_scorer: TextScorer, cosine_scorer: TextScorer, targets: Any
) -> dict[str, float]:
    """Return the mAP of each fusion rule in percent; the maximum is that of softmax scores."""
    values = {}
    for name, rule in RULES.items():
        scorer = softmax_scorer if name == "max" else cosine_scorer
        whole = scorer(view.whole)
        scores = whole if view.parts is None else rule(whole, scorer(view.parts))
        values[name] = 100 * mean_average_precision(scores.double().numpy(), targets)
    return values


def compare_views(name: str, count: int) -> None:
    """Print one line for each kind of view, and a comparison with 20 random crops."""
    validation = sl.collection("scenes-80", split="validation").take(range(count))
    encoder = load_encoder(name)
    images = [open_image(path, min_side=3 * encoder.input_side) for path in validation.paths]
    softmax_scorer = TextScorer(encoder, validation.names, domain="softmax", background="usual")
    cosine_scorer = TextScorer(encoder, validation.names)
    print(f"\n{name}, {count} images: mAP by {', '.join(RULES)}")
    print(f"{'':44} {'passes':>6} {'MFLOP':>6} {'ms':>6}  mAP")
    rows: list[tuple[float, float, str]] = []
    reference: tuple[float, float] | None = None
    views = (
        separate_views(encoder, images, SMALL_SIZES[name]),
        dense_views(encoder, images, MAP_SIZES[name]),
        window_views(
            encoder,
            images,
            softmax_scorer,
            map_size=WINDOW_MAP_SIZES[name],
            sizes=(*SMALL_SIZES[name], encoder.input_side),
        ),
    )
    flops_per_pass = count_flops(encoder.encode_images, encoder.input_side)
    for view in (view for kind in views for view in kind):
        by_rule = measure_map(view, softmax_scorer, cosine_scorer, validation.targets)
        best, passes = max(by_rule.values()), view.flops / flops_per_pass
        values = "  ".join(f"{value:5.1f}" for value in by_rule.values())
        line = f"{view.name:44} {passes:6.2f} {view.flops / 1e6:6.0f} {1000 * view.seconds:6.1f}"
        print(f"{line}  {values}", flush=True)
        rows.append((passes, best, view.name))
        reference = (passes, best) if view.name == REFERENCE else reference
    assert reference is not None
    print_summary(rows, *reference)


def print_summary(
    rows: Sequence[tuple[float, float, str]], reference_passes: float, reference_map: float
) -> None:
    """Print the most accurate cheap kind of view, and the cheapest accurate kind of view.

    A cheap kind has at most a tenth of the cost of the random crops. The mAP of an accurate kind is
    at most one point below that of the random crops.
    """
    print(f"{REFERENCE}: {reference_passes:.1f} passes, {reference_map:.1f} mAP")
    cheap_rows = (row for row in rows if COST_FACTOR * row[0] <= reference_passes)
    passes, value, name = max(cheap_rows, key=lambda row: row[1])
    print(
        f"best at a {COST_FACTOR}th of the cost: {name}: {reference_passes / passes:.1f} x "
        f"cheaper, {value - reference_map:+.1f}"
    )
    passes, value, name = min(row for row in rows if row[1] >= reference_map - MAX_LOSS)
    print(
        f"cheapest within {MAX_LOSS:.0f} point: {name}: {reference_passes / passes:.1f} x cheaper, "
        f"{value - reference_map:+.1f}"
    )
    best = -np.inf
    for passes, value, name in sorted(rows):
        if value > best:
            print(f"  {passes:6.2f} passes {value:5.1f}  {name}")
            best = value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="60 images instead of 300")
    torch.set_num_threads(1)
    quick = parser.parse_args().quick
    with torch.no_grad():
        for encoder_name in MAP_SIZES:
            compare_views(encoder_name, 60 if quick else 300)
