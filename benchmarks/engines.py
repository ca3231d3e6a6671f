"""Compare the speed and the accuracy of the engines that encode images.

    python benchmarks/engines.py [--images FOLDER] [--models MODEL …] [--rounds ROUNDS]

Speed: all engines encode the same batch in turn, in several rounds, with one thread. The times are
times of the processor. The peer is the same encoder in fp32 without an engine (PyTorch, eager).
Accuracy: the vectors of up to 1,000 images are compared with those of the peer by their cosine,
computed in fp32. For tiny-vit, the probabilities, the mean average precision (mAP) and the expected
calibration error (ECE) of the test images of scenes-80 are compared too.

No engine can compute faster than the processor multiplies matrices. In each round, a product of
large matrices is measured with all engines. The throughput of the fastest one, divided by that of
the peer, is the highest possible ratio: that of an engine without time for other operations.

MODEL is tiny-vit, tiny-rn, or an architecture of open_clip such as ViT-B-32, with random weights.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import open_clip
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

import surelabel as sl
from surelabel.data import find_images, open_image
from surelabel.encoders import ENCODERS, Encoder, OpenClipEncoder, load_encoder
from surelabel.encoders.engines import ENGINES
from surelabel.encoders.engines.engine_encoder import encoder_with_engine
from surelabel.features.encoding_batch_size import encoding_batch_size
from surelabel.metrics import METRICS

MAX_IMAGES = 1000
MATRIX_SIZE = 2048  # rows and columns of a matrix whose product shows the limit of the processor
PEER = "torch fp32"


def main() -> None:
    """Measure all engines with each encoder, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", help="folder of images (default: test images of scenes-80)")
    parser.add_argument("--models", nargs="+", default=["tiny-vit", "ViT-B-32", "ViT-B-16"])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    test = sl.collection("scenes-80", split="test")
    paths = find_images([options.images]) if options.images else list(test.paths)
    paths = paths[:: max(1, len(paths) // MAX_IMAGES)][:MAX_IMAGES]
    print(f"{len(paths)} images, 1 thread, {options.rounds} rounds: median (lowest to highest)\n")
    print(
        "| encoder | engine | images/s | GFLOP/s | ratio to torch fp32 | highest possible ratio | "
        "ratio for one image | lowest cosine | 0.1 % quantile |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for model in options.models:
        compare_engines(model, paths, options.rounds)
    if "tiny-vit" in options.models:
        print(
            "\n| engine | median change of p | largest change of p | mAP | ECE |\n"
            "| --- | ---: | ---: | ---: | ---: |"
        )
        compare_probabilities(test)


def compare_engines(model: str, paths: list[str], rounds: int) -> None:
    """Print the speed and the cosines of each engine with one encoder."""
    encoder = encoder_of(model)
    pixels = torch.stack(
        [encoder.preprocess(open_image(path, min_side=encoder.input_side)) for path in paths]
    )
    batch = pixels[: encoding_batch_size(encoder)]
    encoders = dict(engine_encoders(encoder))
    seconds = measure_seconds(encoders, batch, rounds)
    seconds_of_one = measure_seconds(encoders, batch[:1], 4 * rounds)
    flops = image_flops(encoder, batch[:1])
    expected = vectors_of(encoder, pixels, len(batch))
    for name, engine in encoders.items():
        cosines = (vectors_of(engine, pixels, len(batch)) * expected).sum(dim=1)
        ratios = seconds[PEER] / seconds[name]
        speed = len(batch) / np.median(seconds[name])
        product = seconds[f"product {name.split()[1]}"]
        limits = seconds[PEER] / product * 2 * MATRIX_SIZE**3 / (flops * len(batch))
        print(
            f"| {model} | {name} | {speed:.1f} | {speed * flops / 1e9:.0f} | "
            f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f}) | "
            f"{np.median(limits):.2f} | "
            f"{np.median(seconds_of_one[PEER] / seconds_of_one[name]):.2f} | "
            f"{cosines.min():.6f} | {cosines.quantile(0.001):.6f} |",
            flush=True,
        )


def measure_seconds(
    encoders: Mapping[str, Encoder], batch: Tensor, rounds: int
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the processor times of each encoder in all rounds, and of a matrix product.

    The product in a number format is computed by all engines with this format. The time of the
    fastest engine is returned as ``product fp32`` and ``product bf16``.
    """
    product = MatrixProduct(torch.randn(MATRIX_SIZE, MATRIX_SIZE))
    functions: dict[str, Callable[[], object]] = {}
    for name, encoder in encoders.items():
        functions[name] = partial(encoder.encode_images, batch)
        engine, dtype = name.split()
        compiled = ENGINES[engine](product, torch.zeros(2, MATRIX_SIZE), dtype=dtype)
        functions[f"product {name}"] = partial(compiled, product.matrix.detach())
    seconds = {name: np.empty(rounds) for name in functions}
    for function in functions.values():
        function()  # compiles the graph
    for number in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function()
            seconds[name][number] = time.process_time() - start
    for dtype in ("fp32", "bf16"):
        products = [seconds[f"product {name}"] for name in encoders if name.endswith(dtype)]
        seconds[f"product {dtype}"] = np.min(products, axis=0)
    return seconds


class MatrixProduct(nn.Module):
    """Module that multiplies matrices by a square matrix.

    Args:
        matrix: Matrix ``(d, d)``.
    """

    def __init__(self, matrix: Tensor):
        super().__init__()
        self.matrix = nn.Parameter(matrix)

    def forward(self, factor: Tensor) -> tuple[Tensor]:
        """Return the product with a factor ``(n, d)``."""
        return (factor @ self.matrix,)


def compare_probabilities(test: sl.LabelledImages) -> None:
    """Print the changes of probabilities and metrics of each engine with tiny-vit."""
    recognizer = sl.Recognizer.zero_shot("tiny-vit", test.names)
    expected = recognizer.predict(test).probabilities
    for name, _ in engine_encoders(recognizer.encoder):
        engine, dtype = name.split()
        probabilities = recognizer.with_engine(engine, dtype).predict(test).probabilities
        change = np.abs(probabilities - expected)
        values = [
            METRICS[metric](probabilities, test.targets, test.known)
            for metric in ("mean_average_precision", "ece")
        ]
        print(
            f"| {name} | {np.median(change):.6f} | {change.max():.4f} | "
            f"{100 * values[0]:.3f} % | {values[1]:.5f} |",
            flush=True,
        )


def engine_encoders(encoder: Encoder) -> list[tuple[str, Encoder]]:
    """Return the encoder with each engine and number format, by their names."""
    return [
        (f"{name} {dtype}", encoder_with_engine(encoder, name, dtype))
        for name, engine in ENGINES.items()
        for dtype in engine.dtypes
    ]


def image_flops(encoder: Encoder, pixels: Tensor) -> int:
    """Return the floating-point operations of the matrix products and convolutions of one image."""
    torch.backends.mha.set_fastpath_enabled(False)  # its operations would not be counted
    with FlopCounterMode(display=False) as counter:
        encoder.encode_images(pixels)
    torch.backends.mha.set_fastpath_enabled(True)
    return int(counter.get_total_flops())


def encoder_of(model: str) -> Encoder:
    """Return an embedded encoder, or an architecture of open_clip with random weights."""
    if model in ENCODERS:
        return load_encoder(model)
    torch.manual_seed(0)
    network = open_clip.create_model(model)
    config = open_clip.get_model_config(model)
    return OpenClipEncoder(
        network,
        open_clip.get_tokenizer(model),
        name=model,
        config=config,
        preprocess_cfg={**open_clip.get_model_preprocess_cfg(network)},
    )


def vectors_of(encoder: Encoder, pixels: Tensor, batch_size: int) -> Tensor:
    """Return the unit vectors of preprocessed images, ``(n, d)``."""
    return torch.cat([encoder.encode_images(part).pooled for part in pixels.split(batch_size)])


if __name__ == "__main__":
    main()
