"""Measure localization by patches of towers that pool their patches, for docs/models.md.

    python benchmarks/pooled_patches.py [--images 10000] [--epochs 10]

Attention pooling as in SigLIP and mean pooling are trained on the frozen lower blocks of tiny-vit.
The last block, the pooling and the projection are trained from random weights, with the image
vectors of tiny-vit as targets. The embedded encoders use neither kind of pooling. The table
compares plain patches with self-aware patches on 300 scenes. The last block of self-aware patches
is computed with or without its residual and MLP.
"""

import argparse
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from timm.layers.attention_pool import AttentionPoolLatent
from timm.models.vision_transformer import Block
from torch import Tensor, nn

from surelabel.data.emoji_sprites import draw_sprites
from surelabel.data.scene_arrangement import SceneSampler
from surelabel.data.scene_words import all_scene_words, read_scene_vocabulary
from surelabel.data.scenes import render_scenes, visible_scene_labels
from surelabel.encoders import load_encoder
from surelabel.encoders.towers.block_attention import (
    block_attention_output,
    block_attention_values,
    block_output_after_attention,
)
from surelabel.methods import TextScorer
from surelabel.metrics.mean_average_precision import mean_average_precision

SIDE, WIDTH, HEADS, LOWER_BLOCKS = 96, 192, 6, 5
TRAIN_SEED, TEST_SEED, N_TEST = 31, 41, 300
BATCH_SIZE, LEARNING_RATE, WARM_UP = 128, 1.5e-3, 50
MIN_VISIBLE = 0.3  # minimum visible fraction of an object


class PooledTower(nn.Module):
    """Last block, pooling and projection of a tower that pools its patches."""

    def __init__(self, pooling: str):
        super().__init__()
        self.block = Block(WIDTH, HEADS, qkv_bias=True)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.pool = (
            AttentionPoolLatent(WIDTH, num_heads=HEADS, norm_layer=nn.LayerNorm)
            if pooling == "attention"
            else None
        )
        self.projection = nn.Linear(WIDTH, 128, bias=False)
        self.log_scale = nn.Parameter(torch.tensor(3.0))

    def head(self, tokens: Tensor) -> Tensor:
        """Return vectors ``(n, d)`` of the outputs of the block, ``(n, p, w)``."""
        tokens = self.norm(tokens)
        vectors: Tensor = self.projection(self.pool(tokens) if self.pool else tokens.mean(dim=1))
        return vectors

    def forward(self, tokens: Tensor) -> Tensor:
        """Return vectors ``(n, d)`` of the input tokens of the block, ``(n, p, w)``."""
        return self.head(self.block(tokens))

    def patch_outputs(self, tokens: Tensor) -> dict[str, Tensor]:
        """Return the outputs ``(n, p, w)`` of the variants of the last block."""
        values = block_attention_values(self.block, tokens)
        mixed = F.scaled_dot_product_attention(values, values, values)
        attended = block_attention_output(self.block, tokens, mixed)
        return {
            "plain": self.block(tokens),
            "self-aware, attention only": attended,
            "self-aware, with residual": tokens + attended,
            "self-aware, with residual and MLP": block_output_after_attention(
                self.block, tokens, attended
            ),
        }


@torch.no_grad()
def lower_block_tokens(visual: Any, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the patch tokens before the last block, and the unit vectors of tiny-vit."""
    tokens = visual._embeds((pixels - 0.5) / 0.25)
    blocks = visual.transformer.resblocks
    for block in blocks[:LOWER_BLOCKS]:
        tokens = block(tokens)
    outputs = blocks[LOWER_BLOCKS](tokens)
    vectors = visual._pool(outputs)[0] @ visual.proj
    return tokens[:, 1:], F.normalize(vectors, dim=-1)


def train_pooled_tower(pooling: str, tokens: Tensor, targets: Tensor, epochs: int) -> PooledTower:
    """Train the last block and the pooling to return the image vectors of tiny-vit."""
    torch.manual_seed(1)
    tower = PooledTower(pooling)
    optimizer = torch.optim.AdamW(tower.parameters(), lr=LEARNING_RATE, weight_decay=0.02)
    per_epoch = len(tokens) // BATCH_SIZE
    steps = epochs * per_epoch
    for step in range(steps):
        if step % per_epoch == 0:
            order = torch.randperm(len(tokens))
        rows = order[step % per_epoch * BATCH_SIZE :][:BATCH_SIZE]
        share = min(1, (step + 1) / WARM_UP) * min(1, (steps - step) / (0.5 * steps))
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * share
        vectors, wanted = F.normalize(tower(tokens[rows].float()), dim=-1), targets[rows].float()
        logits, matches = tower.log_scale.exp() * vectors @ wanted.T, torch.arange(len(rows))
        contrast = (F.cross_entropy(logits, matches) + F.cross_entropy(logits.T, matches)) / 2
        loss = contrast + 5 * (1 - (vectors * wanted).sum(dim=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return tower.eval()


def main() -> None:
    """Train towers with both kinds of pooling, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10_000, help="number of training images")
    parser.add_argument("--epochs", type=int, default=10, help="number of epochs")
    options = parser.parse_args()
    encoder: Any = load_encoder("tiny-vit")
    visual = encoder.model.visual
    words, parts = all_scene_words(), []
    sampler, sprites = SceneSampler(words, seed=TRAIN_SEED), draw_sprites(words)
    for start in range(0, options.images, 100):
        scenes = [sampler(i) for i in range(start, start + 100)]
        pixels = render_scenes(scenes, sprites, SIDE).pixels
        parts.append([t.half() for t in lower_block_tokens(visual, pixels)])
    tokens, targets = (torch.cat(part) for part in zip(*parts, strict=True))

    words = read_scene_vocabulary("scenes-80")
    sampler, sprites = SceneSampler(words, seed=TEST_SEED), draw_sprites(words)
    scenes = [sampler(i) for i in range(N_TEST)]
    images = render_scenes(scenes, sprites, SIDE)
    labels = visible_scene_labels(scenes, images.visible_shares, len(words))
    scorer = TextScorer(
        encoder,
        [word.name for word in words],
        templates="one",
        domain="softmax",
        background="usual",
        scale=None,
    )
    test_tokens, _ = lower_block_tokens(visual, images.pixels)
    print("| pooling | patches | mAP of the strongest patch | strongest patch inside the box |")
    print("|---|---|---|---|")
    for pooling in ("attention", "mean"):
        tower = train_pooled_tower(pooling, tokens, targets, options.epochs)
        with torch.no_grad():
            for name, outputs in tower.patch_outputs(test_tokens).items():
                patches = tower.head(outputs.flatten(0, 1)[:, None]).unflatten(0, outputs.shape[:2])
                scores = scorer(F.normalize(patches, dim=-1))
                m_ap = 100 * mean_average_precision(scores.amax(dim=1).numpy(), labels)
                hits = []
                for row, scene in enumerate(scenes):
                    for index, word in enumerate(scene.words):
                        if images.visible_shares[row, index] < MIN_VISIBLE:
                            continue
                        down, across = divmod(int(scores[row, :, int(word)].argmax()), 8)
                        x, y = (across + 0.5) / 8, (down + 0.5) / 8
                        left, top, right, bottom = images.boxes[row, index].tolist()
                        hits.append(left <= x <= right and top <= y <= bottom)
                print(f"| {pooling} | {name} | {m_ap:.1f} | {100 * np.mean(hits):.1f} % |")


if __name__ == "__main__":
    main()
