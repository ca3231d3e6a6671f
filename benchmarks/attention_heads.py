"""Compare attention heads of papers on the whole image and its tiles, for docs/which-method.md.

    python benchmarks/attention_heads.py [--seeds 2]

Class-specific residual attention (CSRA, ICCV 2021, arXiv:2108.02456), Query2Label (2021,
arXiv:2107.10834) and ML-Decoder (WACV 2023, arXiv:2111.12933) are trained with binary cross-entropy
on the vectors of the whole image and of the tiles of two grids, and compared with ``ml_decoder``
and ``multiple_instance_tiles``. The annotated images are the first images of a random order of the
training images of scenes-80. All rows are evaluated on the 500 validation images, without
calibration. The number of steps, the learning rate and the weight decay of a head are selected by
the lowest log loss on these images, which favours the heads. The learning rate and the weight decay
were selected with 500 training images and tiny-vit. The encoder is frozen. The decoders have the
width of the encoder and one layer.
"""

import argparse
import copy
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.config import load_run
from surelabel.data import collection
from surelabel.encoders import Encoder, load_encoder
from surelabel.links import Sigmoid
from surelabel.methods import TextScorer
from surelabel.methods.text_scoring.scale_and_bias import initial_scale_and_bias
from surelabel.metrics import METRICS
from surelabel.recognizer import Recognizer
from surelabel.recognizer.fitting import FittingData, fit_recognizer_method
from surelabel.recognizer.inputs import encode_recognizer_input
from surelabel.records import Features

STEPS_OF_EVALUATIONS = (25, 50, 100, 150, 200, 300, 400, 600)
BATCH_SIZE, WARM_UP_STEPS, EMA_DECAY, MAX_GRADIENT = 32, 20, 0.98, 5.0
DROPOUT, ATTENTION_HEADS, TEXT_SCALE = 0.1, 4, 10.0
ENTRIES = ("multiple_instance_tiles", "ml_decoder")


class ResidualAttention(nn.Module):
    """Mean score of the instances, plus their sum weighted by the attention of the class (CSRA)."""

    def __init__(self, texts: Tensor, n_instances: int, *, from_texts: bool, residual: float):
        super().__init__()
        self.weights = nn.Parameter(texts.clone() if from_texts else torch.randn_like(texts))
        self.log_scale = nn.Parameter(torch.tensor(TEXT_SCALE).log())
        self.bias = nn.Parameter(torch.zeros(len(texts)))
        self.residual = residual

    def forward(self, instances: Tensor) -> Tensor:
        """Return the logits ``(n, c)`` of instances ``(n, t, d)``."""
        logits = self.log_scale.exp() * instances @ F.normalize(self.weights, dim=-1).T
        attended = (logits.softmax(dim=1) * logits).sum(dim=1)
        return (logits.mean(dim=1) + self.residual * attended) / (1 + self.residual) + self.bias


class QueryDecoder(nn.Module):
    """Decoder of one layer with a query for each class.

    With ``self_attention``, the queries are learned and attend to each other first (Query2Label).
    Otherwise, the queries are fixed (ML-Decoder with one group for each class).
    """

    def __init__(self, texts: Tensor, n_instances: int, *, from_texts: bool, self_attention: bool):
        super().__init__()
        n_classes, width = texts.shape
        queries = texts.clone() if from_texts else torch.randn(n_classes, width) / width**0.5
        self.queries = nn.Parameter(queries, requires_grad=self_attention)
        self.positions = nn.Parameter(0.02 * torch.randn(n_instances, width))
        self.memory = nn.Linear(width, width)
        self.self_attention, self.cross_attention = (
            nn.MultiheadAttention(width, ATTENTION_HEADS, batch_first=True) for _ in range(2)
        )
        self.has_self_attention = self_attention
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(2 * width, width)
        )
        self.dropout = nn.Dropout(DROPOUT)
        self.weights = nn.Parameter(torch.randn(n_classes, width) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(n_classes))

    def forward(self, instances: Tensor) -> Tensor:
        """Return the logits ``(n, c)`` of instances ``(n, t, d)``."""
        memory, queries = self.memory(instances).relu(), self.queries[None]
        if self.has_self_attention:
            queries = queries + self.dropout(self.self_attention(*[queries] * 3)[0])
        queries = self.norms[0](queries).expand(len(memory), -1, -1)
        attended = self.cross_attention(queries, memory + self.positions, memory)[0]
        hidden = self.norms[1](queries + self.dropout(attended))
        hidden = self.norms[2](hidden + self.dropout(self.feed_forward(hidden)))
        logits: Tensor = (hidden * self.weights).sum(dim=-1) + self.bias
        return logits


Head = ResidualAttention | QueryDecoder
ConstructHead = Callable[[Tensor, int], Head]


def csra(from_texts: bool) -> ConstructHead:
    """Return a function that constructs CSRA."""
    return lambda texts, n: ResidualAttention(texts, n, from_texts=from_texts, residual=3.0)


def decoder(from_texts: bool, self_attention: bool) -> ConstructHead:
    """Return a function that constructs Query2Label or ML-Decoder."""
    return lambda texts, n: QueryDecoder(
        texts, n, from_texts=from_texts, self_attention=self_attention
    )


# name: head, learning rate, weight decay
HEADS: dict[str, tuple[ConstructHead, float, float]] = {
    "CSRA": (csra(False), 0.03, 1.0),
    "CSRA, weights from texts": (csra(True), 0.003, 0.01),
    "Query2Label": (decoder(False, True), 0.003, 0.01),
    "Query2Label, queries from texts": (decoder(True, True), 0.003, 0.01),
    "ML-Decoder": (decoder(False, False), 0.003, 0.01),
    "ML-Decoder, queries from texts": (decoder(True, False), 0.003, 0.01),
}


def evaluate_logits(logits: Tensor, targets: Tensor) -> tuple[float, float, float]:
    """Return mAP and Brier skill in percent, and the log loss in 1/1,000 nats."""
    probabilities, truth = logits.double().sigmoid().numpy(), targets.double().numpy()
    log_loss = F.binary_cross_entropy_with_logits(logits.double(), targets.double()).item()
    skill = float(METRICS["brier_skill"](probabilities, truth))
    m_ap = float(METRICS["mean_average_precision"](probabilities, truth))
    return 100 * m_ap, 100 * skill, 1000 * log_loss


@torch.no_grad()
def initialize(head: Head, instances: Tensor, targets: Tensor) -> None:
    """Set the biases to the log-odds of the prevalence, or by Platt scaling if CSRA has texts."""
    if isinstance(head, ResidualAttention):
        known = torch.ones_like(targets, dtype=torch.bool)
        slope, bias = initial_scale_and_bias(
            head(instances), targets, known, Sigmoid(), min_slope=0.1
        )
        head.log_scale.add_(slope.log())
        head.bias.fill_(bias)
    else:
        prevalence = (targets.sum(dim=0) + 0.5) / (len(targets) + 1)
        head.bias.copy_(prevalence.logit())


def train_head(
    head: Head,
    rates: tuple[float, float],
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    seed: int,
) -> tuple[tuple[float, float, float], float]:
    """Train a head, and return its validation metrics and seconds at the lowest log loss."""
    initialize(head, *train)
    matrices = [p for p in head.parameters() if p.ndim > 1 and p.requires_grad]
    numbers = [p for p in head.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": rates[1]},
        {"params": numbers, "weight_decay": 0.0},
    ]
    optimizer, average = torch.optim.AdamW(groups, lr=rates[0]), copy.deepcopy(head).eval()
    generator, seconds = torch.Generator().manual_seed(seed), 0.0
    rows: list[Tensor] = []
    results = []
    for step in range(1, max(STEPS_OF_EVALUATIONS) + 1):
        start = time.process_time()
        rows = rows or list(torch.randperm(len(train[0]), generator=generator).split(BATCH_SIZE))
        batch = rows.pop()
        for group in optimizer.param_groups:
            group["lr"] = rates[0] * min(1, step / WARM_UP_STEPS)
        logits, targets = head(train[0][batch]), train[1][batch]
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        optimizer.zero_grad()
        losses.sum(dim=1).mean().backward()
        nn.utils.clip_grad_norm_(head.parameters(), MAX_GRADIENT)
        optimizer.step()
        with torch.no_grad():
            decay = min(1 - 1 / step, EMA_DECAY)
            for mean, parameter in zip(average.parameters(), head.parameters(), strict=True):
                mean.lerp_(parameter, 1 - decay)
        seconds += time.process_time() - start
        if step in STEPS_OF_EVALUATIONS:
            with torch.no_grad():
                logits = torch.cat([average(part) for part in validation[0].split(250)])
            results.append((evaluate_logits(logits, validation[1]), seconds))
            if len(results) > 2 and results[-1][0][2] > results[-2][0][2] > results[-3][0][2]:
                break
    return min(results, key=lambda result: result[0][2])


def load_instances(encoder: str, split: str) -> tuple[Tensor, Tensor]:
    """Return the vectors ``(n, t, d)`` of the whole image and its tiles, and the targets."""
    images = collection("scenes-80", split=split)
    run = load_run(overrides=[f"encoder.name={encoder}", f"method.name={ENTRIES[0]}"])
    recognizer = Recognizer(run, images.names)
    features = encode_recognizer_input(
        images, recognizer.method, recognizer.encoder, recognizer.cache
    ).features
    assert features.views is not None
    instances = torch.cat([features.pooled[:, None], features.views], dim=1)
    return instances, torch.tensor(images.targets, dtype=torch.float32)


def evaluate_entry(
    name: str,
    encoder: Encoder,
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor],
    seed: int,
) -> tuple[tuple[float, float, float], float]:
    """Fit an entry of ``METHODS`` with its defaults, and return its metrics and seconds."""
    run = load_run(overrides=[f"method.name={name}", f"seed={seed}"])
    names = collection("scenes-80", split="train").names
    features = [Features(part[:, 0], views=part[:, 1:]) for part, _ in (train, validation)]
    known = torch.ones_like(train[1], dtype=torch.bool)
    keys = [str(row) for row in range(len(known))]
    start = time.process_time()
    data = FittingData(keys, features[0], train[1], known)
    method = fit_recognizer_method(run, encoder, names, data).eval()
    seconds = time.process_time() - start
    with torch.no_grad():
        return evaluate_logits(method(features[1]), validation[1]), seconds


def main() -> None:
    """Print the table with the mean over the seeds and half of the range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds")
    parser.add_argument("--encoders", nargs="+", default=["tiny-vit", "tiny-rn"])
    parser.add_argument("--images", nargs="+", type=int, default=[100, 500, 1500])
    parser.add_argument("--heads", nargs="*", default=list(HEADS), choices=list(HEADS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| encoder | images | head | mAP % | Brier skill % | log loss | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in options.encoders:
        encoder = load_encoder(name)
        instances, targets = load_instances(name, "train")
        validation = load_instances(name, "validation")
        texts = TextScorer(encoder, collection("scenes-80", split="train").names).texts
        for count in options.images:
            results: dict[str, list[list[float]]] = {}
            for seed in range(options.seeds):
                generator = torch.Generator().manual_seed(seed + 1)
                rows = torch.randperm(len(targets), generator=generator)[:count]
                train = instances[rows], targets[rows]
                for entry in ENTRIES:
                    metrics, seconds = evaluate_entry(entry, encoder, train, validation, seed)
                    results.setdefault(f"`{entry}`", []).append([*metrics, seconds])
                for head_name in options.heads:
                    construct, *rates = HEADS[head_name]
                    torch.manual_seed(seed)
                    head = construct(texts, instances.shape[1])
                    metrics, seconds = train_head(
                        head, (rates[0], rates[1]), train, validation, seed
                    )
                    results.setdefault(head_name, []).append([*metrics, seconds])
            for head_name, values in results.items():
                mean, half = np.mean(values, axis=0), np.ptp(values, axis=0) / 2
                cells = [f"{a:.1f} ± {b:.1f}" for a, b in zip(mean[:3], half[:3], strict=True)]
                print(
                    f"| {name} | {count} | {head_name} | {' | '.join(cells)} | {mean[3]:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
