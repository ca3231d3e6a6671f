"""Compare dense features for ``region_statistics`` by the attention weights of the last layer.

    python benchmarks/region_features.py [--train N]

``region_statistics`` is fitted on the first N training images of scenes-80 (1,000 by default) and
evaluated on the 500 validation images. The rows differ in the weights with which the values of the
last attention layer are averaged, in a ViT (tiny-vit) and in attention pooling (tiny-rn). Each row
is evaluated with the default ``pooling_window`` and without pooling of neighbouring patches. For
the default window, the difference from the default features is printed with a 95 % interval over
200 bootstrap samples of validation images.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from surelabel.arrays import Array
from surelabel.bench.resampling import bench_resampling_weights
from surelabel.data import collection
from surelabel.encoders import Encoder, load_encoder
from surelabel.encoders.towers.patch_features import resnet_tokens_for_patch_features
from surelabel.features import encode_image_files
from surelabel.methods.region_statistics.region_statistics import RegionStatistics
from surelabel.metrics import mean_average_precision
from surelabel.records import Features

WINDOWS, BATCH, RESAMPLES = (0.2, 0.0), 50, 200
DEFAULT = "value-to-value (default)"
SHARPNESS = 10.0  # factor of the cosines of tokens in the SC-CLIP-like weights

Mixtures = dict[str, Tensor]


def attention_weights(
    query: Tensor, key: Tensor, value: Tensor, tokens: Tensor, grid: Sequence[int]
) -> Mixtures:
    """Return attention weights ``(n, heads, t, t)`` by name, without those of plain features.

    Args:
        query, key, value: Queries, keys and values, ``(n, heads, t, e)``; token 0 is not a patch.
        tokens: Tokens whose cosines are the similarities of SC-CLIP, ``(n, t, w)``.
        grid: Numbers of rows and columns of the patches.
    """
    scale = query.shape[-1] ** -0.5

    def scores(first: Tensor, second: Tensor) -> Tensor:
        return scale * first @ second.transpose(-1, -2)

    positions = torch.cartesian_prod(*(torch.arange(float(side)) for side in grid))
    distances = torch.cdist(positions, positions)
    near = torch.zeros(len(positions) + 1, len(positions) + 1)
    near[1:, 1:] = torch.exp(-((distances / max(grid[0] / 6, 1)) ** 2) / 2)
    centred = F.normalize(tokens - tokens.mean(dim=1, keepdim=True), dim=-1)
    similarity = (SHARPNESS * centred @ centred.transpose(1, 2)).softmax(dim=-1)[:, None]
    self_aware = scores(value, value).softmax(dim=-1)
    both = scores(query, query).softmax(dim=-1) + scores(key, key).softmax(dim=-1)
    return {
        DEFAULT: self_aware,
        "query-to-query and key-to-key (SCLIP)": both / 2,
        "key-to-key, near patches (NACLIP)": (scores(key, key) + near).softmax(dim=-1),
        "value-to-value, near patches": (scores(value, value) + 3 * near).softmax(dim=-1),
        "value-to-value and similar tokens (SC-CLIP)": (self_aware + similarity) / 2,
    }


def vit_patches(visual: torch.nn.Module, pixels: Tensor) -> Mixtures:
    """Return the unit patch vectors ``(n, p, d)`` of a ViT, by name of the features."""
    blocks = visual.transformer.resblocks
    outputs = visual.forward_intermediates(
        pixels, indices=len(blocks), output_fmt="NLC", output_extra_tokens=True
    )
    pairs = zip(outputs["image_intermediates_prefix"], outputs["image_intermediates"], strict=True)
    tokens = [torch.cat(pair, dim=1) for pair in pairs]
    block, inputs = blocks[-1], tokens[-2]
    attention = block.attn
    query, key, value = (
        part.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
        for part in F.linear(
            block.ln_1(inputs), attention.in_proj_weight, attention.in_proj_bias
        ).chunk(3, dim=-1)
    )
    middle = tokens[len(blocks) // 2 - 1]
    outputs_by_name = {"plain": tokens[-1]}
    for name, weights in attention_weights(query, key, value, middle, visual.grid_size).items():
        mixed = (weights @ value).transpose(1, 2).flatten(2)
        outputs_by_name[name] = attended = block.ls_1(attention.out_proj(mixed))
        if "SCLIP" in name:
            residual = inputs + 2 * attended
            residual = residual + block.ls_2(block.mlp(block.ln_2(residual)))
            outputs_by_name[f"{name} with residual and MLP"] = residual
    return {
        name: F.normalize(visual.ln_post(output)[:, 1:] @ visual.proj, dim=-1)
        for name, output in outputs_by_name.items()
    }


def resnet_patches(visual: torch.nn.Module, pixels: Tensor) -> Mixtures:
    """Return the unit patch vectors ``(n, p, d)`` of a CLIP ResNet, by name of the features."""
    _, tokens, grid = resnet_tokens_for_patch_features(visual, pixels)
    pool = visual.attnpool
    query, key, value = (
        projection(tokens).unflatten(-1, (pool.num_heads, -1)).transpose(1, 2)
        for projection in (pool.q_proj, pool.k_proj, pool.v_proj)
    )
    mixed = {"plain": value} | {
        name: weights @ value
        for name, weights in attention_weights(query, key, value, tokens, grid).items()
    }
    return {
        name: F.normalize(pool.c_proj(values.transpose(1, 2).flatten(2))[:, 1:], dim=-1)
        for name, values in mixed.items()
    }


@torch.no_grad()
def compare_features(name: str, n_train: int) -> None:
    """Print the mAP on validation images for each kind of features and each window."""
    encoder = load_encoder(name)
    large = encoder.with_image_size(2 * encoder.input_side)
    visual = large.model.visual
    patches_of: Callable[[torch.nn.Module, Tensor], Mixtures] = (
        resnet_patches if name == "tiny-rn" else vit_patches
    )
    train, validation = (collection("scenes-80", split=s) for s in ("train", "validation"))
    images = {"train": train.take(range(n_train)), "validation": validation}
    side = large.input_side // (32 if name == "tiny-rn" else visual.patch_size[0])
    whole, patches = {}, {}
    for split, labelled in images.items():
        whole[split] = encode_image_files(encoder, labelled.paths).features.pooled
        blocks: dict[str, list[Tensor]] = {}
        for start in range(0, len(labelled), BATCH):
            paths = labelled.paths[start : start + BATCH]
            pixels = torch.stack([large.preprocess(Image.open(path)) for path in paths])
            for kind, vectors in patches_of(visual, pixels).items():
                blocks.setdefault(kind, []).append(vectors.half())
        patches[split] = {kind: torch.cat(parts) for kind, parts in blocks.items()}
    print(f"{name}, {side} x {side} patches, mAP with windows {WINDOWS}")
    scores = {
        (kind, window): region_scores(encoder, train.names, whole, patches, kind, window, side)
        for kind in patches["train"]
        for window in WINDOWS
    }
    reference = scores[DEFAULT, WINDOWS[0]]
    for kind in patches["train"]:
        values = [map_percent(scores[kind, window], validation.targets) for window in WINDOWS]
        low, high = gain_interval(reference, scores[kind, WINDOWS[0]], validation.targets)
        print(f"  {kind:60} {values[0]:.2f} ({low:+.2f} to {high:+.2f}) {values[1]:.2f}")


def region_scores(
    encoder: Encoder,
    names: Sequence[str],
    whole: dict[str, Tensor],
    patches: dict[str, Mixtures],
    kind: str,
    window: float,
    side: int,
) -> Array:
    """Return the scores of the validation images after a fit on the training images."""
    method = RegionStatistics(encoder, names, pooling_window=window)
    features = {
        split: Features(
            whole[split], patches[split][kind].float(), (side, side), views=whole[split][:, None]
        )
        for split in whole
    }
    method.fit_unlabelled(features["train"])
    return method(features["validation"]).double().numpy()


def map_percent(scores: Array, targets: Array) -> float:
    """Return the mAP in percent."""
    return 100 * mean_average_precision(scores, targets)


def gain_interval(before: Array, after: Array, targets: Array) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the difference between two mAP values."""
    weights = bench_resampling_weights(len(targets), resamples=RESAMPLES)[1:].astype(int)
    rows = [np.repeat(np.arange(len(targets)), weight) for weight in weights]
    gains = [map_percent(after[i], targets[i]) - map_percent(before[i], targets[i]) for i in rows]
    low, high = np.quantile(gains, (0.025, 0.975))
    return float(low), float(high)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=int, default=1000, help="number of training images")
    n_train = parser.parse_args().train
    warnings.simplefilter("ignore")
    for encoder_name in ("tiny-rn", "tiny-vit"):
        compare_features(encoder_name, n_train)
