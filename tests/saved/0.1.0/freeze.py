"""How the files of this folder were made, with the code of surelabel 0.1.0 and no other.

    python tests/saved/0.1.0/freeze.py FOLDER

It needs nothing but the package of that version. Paths of images are those inside its collection.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import timm
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file

from surelabel.config import Choice, Run, load_run, run_as_toml
from surelabel.data import FeatureCache, collection, write_predictions
from surelabel.recognizer import Recognizer
from surelabel.records import LabelledFeatures
from surelabel.retrieval import Index

torch.set_num_threads(1)
OUT = Path(sys.argv[1])
NAMES = ["lion", "guitar|drum", "car", "airplane", "cow", "coffee"]
TEST = collection("scenes-80", split="test").take(range(8))
TRAIN = collection("scenes-80", split="train").take(range(120))
HELD = collection("scenes-80", split="validation").take(range(120))
ROOT = Path(TEST.paths[0]).parents[1]
CACHE = FeatureCache(OUT / "cache")
RUN = [  # every section, with settings that later versions may name otherwise
    "backbone.name=tiny-rn",
    "method.name=tailor",
    "method.side=48",
    "method.decoder_rate=2.0",
    "teacher.name=standardised",
    "teacher.domain=standardised",
    "teacher.compounds=5",
    "pseudolabels.name=ccd",
    "pseudolabels.kept=0.3",
    "sewing.name=sewn",
    "sewing.overlays=2",
    "sewing.strong=0.5",
    "regularizer.name=class_covariance",
    "regularizer.least=5",
    "optimizer.name=sgd",
    "calibrator.name=vector",
    "calibrator.shrinkage=2.0",
    "batch=32",
    "at_once=16",
    "warm_up=0.1",
    "averaging=0.9",
    "seed=3",
]
QUERIES = ["lion", "car & !lion", "guitar & cow", "airplane & car & !coffee"]


def recognizer(*overrides, names=NAMES):
    return Recognizer(load_run(overrides=[*overrides]), names, cache=CACHE)


def no_labels(method, *overrides):
    """A method without training, calibrated on labels."""
    return recognizer(f"method.name={method}", *overrides).calibrate(HELD)


def of_images(method, *overrides, calibrate=True):
    made = recognizer(f"method.name={method}", *overrides).fit(list(TRAIN.paths[:40]))
    return made.calibrate(HELD) if calibrate else made


def of_labels(method, *overrides):
    return recognizer(f"method.name={method}", *overrides).fit(TRAIN).calibrate(HELD)


def timm_weights():
    torch.manual_seed(0)
    file = OUT / "test_resnet.safetensors"
    save_file(timm.create_model("test_resnet", pretrained=False).state_dict(), file)
    return file


def onnx_file():
    matrix = np.random.default_rng(0).normal(size=(48, 6)).astype(np.float32)
    steps = [
        helper.make_node(
            "MaxPool", ["image"], ["largest"], kernel_shape=[2, 2], strides=[2, 2]
        ),
        helper.make_node("Flatten", ["largest"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["features"]),
    ]
    graph = helper.make_graph(
        steps,
        "tiny",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(matrix, "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, OUT / "tiny.onnx")
    return OUT / "tiny.onnx"


def vectors(count, seed):
    random = np.random.default_rng(seed)
    made = random.normal(size=(count, 16)).astype(np.float32)
    return LabelledFeatures(made, ["warm", "loud"], made[:, :2] > 0.5)


def recognizers():
    yield "zero_shot", Recognizer.zero_shot("tiny-vit", NAMES)
    yield "zero_shot_rn", recognizer(
        "method.name=zero_shot", "backbone.name=tiny-rn", "method.domain=standardised", "method.templates=a drawing of a {}."
    )
    yield "zero_shot_moved", no_labels("zero_shot", "calibrator.name=platt").move_to(
        list(TRAIN.paths[:60])
    )
    yield "tiles", no_labels(
        "tiles", "method.fusion=mean_of_standardised", "method.amount=0.3", "method.grids=1"
    )
    yield "crops", no_labels("crops", "method.at_once=4", "method.patience=1", "method.count=8")
    yield "dense_regions", no_labels("dense_regions", "method.windows=2", "calibrator.name=vector")
    yield "region_statistics", of_images(
        "region_statistics", "method.count=64", "method.trust=10", "method.refits=1"
    )
    yield "standardised", of_images(
        "standardised", "method.compounds=5", "calibrator.name=isotonic"
    )
    yield "tailor", of_images(
        "tailor",
        "method.side=48",
        "method.width=32",
        "method.layers=1",
        "method.decoder_rate=2.0",
        "teacher.name=standardised",
        "sewing.overlays=1",
        "sewing.strong=0.5",
        "pseudolabels.top=2",
        "epochs=1",
        "averaging=0.5",
        calibrate=False,
    )
    yield "clip_adapter", of_labels(
        "clip_adapter", "loss.name=asymmetric", "epochs=3", "calibrator.name=isotonic_per_class"
    )
    yield "clip_adapter_spa", of_labels(
        "clip_adapter",
        "loss.name=spa",
        "regularizer.name=label_pair",
        "epochs=3",
        "warm_up=0.1",
        "calibrator.name=histogram",
    )
    yield "linear", of_labels("linear", "loss.name=focal", "epochs=3", "at_once=16", "batch=32")
    yield "linear_ranking", of_labels("linear", "loss.name=two_way", "epochs=2")
    yield "recover_match", of_labels(
        "recover_match",
        "loss.name=multi_matching",
        "epochs=2",
        "method.depth=2",
        "method.prompts=2",
        "method.presence=5",
        "calibrator.name=platt",
    )
    yield "finetune", Recognizer(
        Run(
            backbone=Choice("timm:test_resnet", {"weights": str(timm_weights())}),
            method=Choice("finetune"),
            epochs=1,
        ),
        NAMES,
        cache=CACHE,
    ).fit(TRAIN.take(range(24))).calibrate(HELD)
    yield "linear_onnx", Recognizer(
        load_run(
            overrides=[
                f"backbone.name=onnx:{onnx_file()}", "backbone.mean=[0.5,0.5,0.5]",
                "backbone.std=[0.25,0.25,0.25]", "method.name=linear", "epochs=2"
            ]
        ),
        NAMES,
        cache=CACHE,
    ).fit(TRAIN, folds=3)
    yield "linear_vectors", Recognizer(
        load_run(
            overrides=["backbone.name=features:16", "method.name=linear", "loss.name=spa"]
        ),
        ["warm", "loud"],
        cache=CACHE,
    ).fit(vectors(200, 0), folds=5)


def stop_after(passes):
    def progress(done, total):
        if total < 20 and done >= passes:
            raise KeyboardInterrupt

    return progress


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    expected, arrays = {}, {}
    for name, made in recognizers():
        found = made.predict(vectors(8, 1) if name == "linear_vectors" else TEST)
        made.save(OUT / "recognizers" / name)
        arrays[f"{name}/scores"] = found.scores
        if found.logits is not None:
            arrays[f"{name}/logits"] = found.logits
        expected[name] = {
            "names": list(found.names),
            "fingerprint": made.fingerprint,
            "calibration": found.calibration,
        }
        print(name, made.fingerprint, found.calibration, flush=True)
    np.savez(OUT / "expected.npz", **arrays)

    first = Recognizer.zero_shot("tiny-vit", NAMES)
    predictions = first.predict(collection("scenes-80", split="test").take(range(40)))
    there = [f"/collection/{Path(p).relative_to(ROOT)}" for p in predictions.paths]
    predictions = replace(predictions, paths=there)
    index = Index.create(OUT / "index", predictions)
    hits = {
        query: [[hit.path, hit.probability] for hit in index.search(query, k=10)]
        for query in QUERIES
    }
    few = predictions.take(range(5)) if hasattr(predictions, "take") else replace(
        predictions,
        paths=there[:5],
        scores=predictions.scores[:5],
        logits=predictions.logits[:5],
        features=None,
        hashes=None,
    )
    for suffix in ("parquet", "csv", "jsonl"):
        write_predictions(few, OUT / f"predictions.{suffix}")
    np.savez(OUT / "predictions.npz", scores=few.scores, logits=few.logits)

    run = load_run(overrides=RUN)
    (OUT / "run.toml").write_text(run_as_toml(run), encoding="utf-8")
    linear = Recognizer(
        load_run(overrides=["backbone.name=features:16", "method.name=linear", "epochs=4"]),
        ["warm", "loud"],
        cache=CACHE,
    )
    try:
        linear.fit(vectors(40, 0), checkpoint=OUT / "checkpoint", progress=stop_after(2))
    except KeyboardInterrupt:
        pass
    assert (OUT / "checkpoint").exists()
    (OUT / "expected.json").write_text(
        json.dumps({"recognizers": expected, "hits": hits}, indent=1) + "\n"
    )


main()
