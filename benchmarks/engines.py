"""Compare the speed and the accuracy of the engines that encode images.

    python benchmarks/engines.py [--images FOLDER] [--models MODEL …] [--rounds ROUNDS]

Speed: all engines encode the same batch in turn, in several rounds, with one thread. The peer is
the same encoder in fp32 without an engine (PyTorch, eager). Accuracy: the vectors of up to 1,000
images are compared with those of the peer by their cosine, computed in fp32. For tiny-vit, the
probabilities, the mean average precision (mAP) and the expected calibration error (ECE) of the
test images of scenes-80 are compared too.

MODEL is tiny-vit, tiny-rn, or an architecture of open_clip such as ViT-B-32, with random weights.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import open_clip
import torch
from torch import Tensor

import surelabel as sl
from surelabel.data import find_images, open_image
from surelabel.encoders import ENCODERS, Encoder, OpenClipEncoder, load_encoder
from surelabel.encoders.engines import ENGINES
from surelabel.encoders.engines.engine_encoder import encoder_with_engine
from surelabel.features.encoding_batch_size import encoding_batch_size
from surelabel.metrics import METRICS

MAX_IMAGES = 1000
Encode = Callable[[Tensor], Tensor]


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
        "| encoder | engine | images/s | ratio to torch fp32 | lowest cosine | 0.1 % quantile |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |"
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
    encoders = {name: engine for name, engine in engine_encoders(encoder)}
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    for engine in encoders.values():
        engine.encode_images(batch)  # compiles the graph
    for _ in range(rounds):
        for name, engine in encoders.items():
            start = time.perf_counter()
            engine.encode_images(batch)
            seconds[name].append(time.perf_counter() - start)
    expected = vectors_of(encoder, pixels, len(batch))
    for name, engine in encoders.items():
        ratios = [a / b for a, b in zip(seconds["torch fp32"], seconds[name], strict=True)]
        cosines = (vectors_of(engine, pixels, len(batch)) * expected).sum(dim=1)
        print(
            f"| {model} | {name} | {len(batch) / statistics.median(seconds[name]):.1f} | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | "
            f"{cosines.min():.6f} | {cosines.quantile(0.001):.6f} |",
            flush=True,
        )


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
