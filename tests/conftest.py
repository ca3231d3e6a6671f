import gc
import io
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import warnings
from contextlib import contextmanager, suppress
from functools import cache
from types import SimpleNamespace

# Arrays are small here, so threads only wait for each other; commands that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Many tests fork a process of a gigabyte: large pages are fewer to copy. Only glibc reads this.
os.environ.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")

import pytest
from hypothesis import settings

settings.register_profile("surelabel", deadline=None, derandomize=True)  # the same on every run
settings.load_profile("surelabel")


collect_ignore_glob = ["saved/*/freeze.py"]  # written for the code of its version


def pytest_configure(config):
    """Give the suite a feature cache of its own, empty at first and gone at the end."""
    folder = tempfile.mkdtemp(prefix="surelabel-tests-")
    os.environ["SURELABEL_CACHE"] = folder
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.add_cleanup(gc.unfreeze)
    if hasattr(os, "register_at_fork"):  # a deleted OpenVINO model waits for threads, which a
        os.register_at_fork(after_in_child=gc.freeze)  # forked process does not have


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exclude the modules and the collected tests from the search for garbage."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Use one thread, whatever the environment says.

    The process of xdist that distributes the tests imports this file as well. It needs no torch,
    and the other processes start after this file is imported.

    After ``torch.export.export``, the first backward pass of a process starts a thread for each of
    eight assumed devices, and forked processes cannot train. A backward pass before prevents this.
    """
    import torch

    torch.set_num_threads(1)
    torch.ones(1, requires_grad=True).sum().backward()


@pytest.fixture(scope="session", autouse=True)
def _embedded_encoders_are_read_once():
    """Share the weights of each embedded encoder, and its text vectors of the reference list.

    The vectors of most names of the list are shared too: if a cache contains a few names already,
    only the others are encoded. At the end, check that no test changed the weights. Nothing is
    imported here: what the test files have not imported is not shared.
    """
    embedded_weights = sys.modules.get("surelabel.encoders.embedded.embedded_weights")
    if embedded_weights is None:
        yield
        return
    encoders, reference_vectors = [], {}

    @cache
    def read_once(folder, name, *, device="cpu", read=embedded_weights.__dict__[READ]):
        encoders.append(read(folder, name, device=device))
        return encoders[-1]

    encoder_type = embedded_weights.OpenClipEncoder
    reference_names = sys.modules["surelabel.encoders"].reference_names()
    row_of_name = {name: row for row, name in enumerate(reference_names)}

    def encode_reference_list_once(encoder, names, templates, encode=encoder_type.encode_labels):
        is_shared = any(encoder.model is shared.model for shared in encoders)
        is_most_of_list = len(names) > len(reference_names) / 2 and row_of_name.keys() >= {*names}
        if not is_shared or not is_most_of_list:
            return encode(encoder, names, templates)
        key = (id(encoder.model), tuple(templates))
        if key not in reference_vectors:
            reference_vectors[key] = encode(encoder, reference_names, templates)
        return reference_vectors[key][[row_of_name[name] for name in names]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded_weights, READ, read_once)
        patch.setattr(encoder_type, "encode_labels", encode_reference_list_once)
        yield
    for shared in encoders:
        again = type(shared)(
            shared.model,
            shared.tokenizer,
            name=shared.name,
            config=shared.config,
            preprocess_cfg=shared.preprocess_cfg,
        )
        assert again.fingerprint == shared.fingerprint


@pytest.fixture(scope="session", autouse=True)
def _the_tokenizer_of_clip_is_built_once():
    """Share the tokenizer among encoders of equal context length: building one takes 0.2 seconds.

    The shared tokenizer has no state except its cache of words.
    """
    modules = [sys.modules.get(f"surelabel.encoders.{name}") for name in TOKENIZER_USERS]
    with pytest.MonkeyPatch.context() as patch:
        for module in filter(None, modules):
            build = module.SimpleTokenizer
            patch.setattr(module, "SimpleTokenizer", cache(build))
        yield


@pytest.fixture(scope="session", autouse=True)
def _the_operators_of_onnx_are_read_once():
    """Share the ONNX functions of PyTorch operators, which each conversion reads for a second.

    A conversion does not change them. Programs are recorded without the stack trace of each
    operation, which takes a fifth of the time.
    """
    if "surelabel.encoders.engines.conversion" not in sys.modules:
        yield
        return
    import torch
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib))
        )
        patch.setattr(torch.fx.config, "do_not_emit_stack_traces", True, raising=False)
        yield


@pytest.fixture(scope="session")
def random_checkpoint(tmp_path_factory):
    """Write a folder with a small open_clip checkpoint with random weights, for `local-dir:`."""
    import open_clip

    text = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    architecture = {"embed_dim": 24, "vision_cfg": RANDOM_VISION, "text_cfg": text}
    folder = tmp_path_factory.mktemp("random") / "checkpoint"
    return write_random_checkpoint(folder, open_clip.model.CLIP, architecture)


@pytest.fixture(scope="session")
def sigmoid_checkpoint(tmp_path_factory):
    """Write a folder with a small SigLIP of open_clip with random weights, for `local-dir:`.

    The text tower has no causal mask, the scale is 20, and the bias is -2.
    """
    import open_clip

    text = {
        **{"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
        **{"no_causal_mask": True, "proj_bias": True, "pool_type": "last"},
    }
    architecture = {
        **{"embed_dim": 24, "vision_cfg": RANDOM_VISION, "text_cfg": text},
        **{"init_logit_scale": math.log(20), "init_logit_bias": -2.0},
    }
    folder = tmp_path_factory.mktemp("random") / "siglip"
    network = open_clip.model.CustomTextCLIP
    return write_random_checkpoint(folder, network, architecture, custom_text=True)


RANDOM_VISION = {"image_size": 32, "layers": 1, "width": 32, "head_width": 8, "patch_size": 8}


def write_random_checkpoint(folder, network, architecture, **more):
    """Write a checkpoint of open_clip with the weights of seed 0, and return its folder."""
    import torch
    from safetensors.torch import save_file

    values = {"mean": [0.5] * 3, "std": [0.5] * 3}
    preprocessing = {**values, "interpolation": "bicubic", "resize_mode": "shortest"}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = network(**architecture).state_dict()
    folder.mkdir()
    config = {"model_cfg": {**architecture, **more}, "preprocess_cfg": preprocessing}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    save_file(weights, folder / "open_clip_model.safetensors")
    return folder


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """Use a browser that writes the address of each page to a file; return the file."""
    import webbrowser

    opened, script = tmp_path / "opened.txt", tmp_path / "browser.sh"
    script.write_text(f'#!/bin/sh\necho "$1" >> "{opened}"\n')
    script.chmod(0o755)
    monkeypatch.setattr(webbrowser, "_tryorder", [str(script)])
    monkeypatch.setattr(webbrowser, "_browsers", {})
    webbrowser.register(str(script), None, webbrowser.GenericBrowser(str(script)))
    return opened


@pytest.fixture
def deadline():
    """Interrupt a test that blocks, for example on a named pipe, after 20 seconds."""

    def interrupt(*_):
        raise TimeoutError("the test took more than 20 seconds")

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


TOKENIZER_USERS = ("embedded.embedded_weights", "open_clip.checkpoints")
READ = "encoder_from_embedded_weights_folder"
DECODING, PASS = 10, 1000  # seconds of an image, and of a batch, on the clock of `timed`


@pytest.fixture
def set_threads():
    """Set the number of threads of PyTorch, until the test ends."""
    import torch

    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def timed(monkeypatch):
    """Return a function that gives an encoder exact times on a clock that nothing else moves."""
    now = [0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    for module in ("image_features", "view_features", "in_memory"):
        monkeypatch.setattr(f"surelabel.features.{module}.time", clock)

    class Timed:
        def __init__(self, encoder):
            self._real = encoder

        def __getattr__(self, name):
            value = getattr(self._real, name)
            if name == "preprocess":
                return lambda image: self._take(DECODING, value, image)
            if name.startswith("encode_") and not name.endswith(("labels", "sentences")):
                return lambda pixels, **more: self._take(PASS, value, pixels, **more)
            return value

        def _take(self, seconds, act, *arguments, **more):
            now[0] += seconds
            return act(*arguments, **more)

    return Timed


class ForkedProgram(subprocess.Popen):
    """Process of ``python -c``, which is forked from this process, so that it imports nothing.

    The streams, the environment and the passed file descriptors are those of a new interpreter. The
    function ``preexec_fn`` runs the program, and does not return.
    """

    def __init__(self, args, *, env=None, pass_fds=(), **options):
        interpreter, option, program, *arguments = args
        assert (interpreter, option) == (sys.executable, "-c")

        def run():
            status = 1
            try:
                for descriptor in {*range(3, 4096)} - {*pass_fds}:
                    with suppress(OSError):
                        os.close(descriptor)
                os.environ.update(env or {})
                sys.argv = ["-c", *arguments]
                sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "wr"[n == 0]) for n in range(3))
                exec(program, {"__name__": "__main__"})
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
            super().__init__(args, env=env, pass_fds=pass_fds, preexec_fn=run, **options)


@pytest.fixture(scope="session")
def forked_programs():
    """Return a context manager in which ``subprocess`` runs programs in forked processes.

    A new interpreter imports torch and open_clip for seconds. Use this where the test is about what
    a process does, if another test starts the same program with a new interpreter.
    """

    @contextmanager
    def fork():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subprocess, "Popen", ForkedProgram)
            yield

    return fork


@pytest.fixture(scope="session")
def object_store():
    """Start a server with the interface of S3, and return a client of it with a bucket ``photos``.

    Only the environment of this process names the server, and it stays until the process ends.
    """
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("AWS_ENDPOINT_URL", address),
            ("AWS_ACCESS_KEY_ID", "name"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ):
            patch.setenv(name, value)
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="photos")
        yield client
        client.close()
    server.stop()


@pytest.fixture
def tar_archive():
    """Return a function that writes a tar archive with the given members."""

    def write(path, members):
        with tarfile.open(path, "w") as archive:
            for name, content in members:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return str(path)

    return write


@pytest.fixture
def exported_file(tmp_path):
    """Write a file as ``surelabel export`` does: each logit is 9 times the mean of one colour.

    ``inputs`` is what the input contains: preprocessed ``pixels`` of 8 by 8, ``views`` (the whole
    image and 2 by 2 tiles), or ``raw`` images of any size. Other arguments replace metadata.
    """

    def write(name="tagger.onnx", *, inputs="pixels", metadata=None, **replaced):
        import onnx
        from onnx import TensorProto, helper

        from surelabel.records.export_metadata import METADATA_KEY

        shapes = {"pixels": (3, 8, 8), "views": (5, 3, 8, 8), "raw": (-1, -1, 3)}
        axes = {"pixels": [2, 3], "views": [1, 3, 4], "raw": [1, 2]}
        values = {
            "names": ["red", "green", "sea"],
            "names_with_aliases": ["red", "green", "sea|blue"],
            "output": "logits",
            "calibrated_on": "platt on 99 labelled images",
            "thresholds": [0.3, 0.5, 0.9],
            "input_name": "pixels",
            "input_shape": list(shapes[inputs]),
            "output_name": "logits",
            "preprocessing": {
                "size": [8, 8],
                "mean": [0.5, 0.5, 0.5],
                "std": [0.5, 0.5, 0.5],
                "interpolation": "bicubic",
                "resize_mode": "squash",
                "fill_color": 0,
            },
            "preprocessing_in_graph": inputs == "raw",
            "preprocessing_difference": None,
            "min_side": 16 if inputs == "views" else 8,
            "views": {"whole_image": True, "grids": [[2, 2]]} if inputs == "views" else None,
            "encoder": "tiny-vit",
            "license": {"name": "apache-2.0", "source": "surelabel", "text": "Apache License"},
            "method": "zero_shot",
            "method_settings": {},
            "fingerprint": "0123456789abcdef",
            "differences": [],
            "version": "0.1.0",
        }
        values |= {"format": 1, "kind": "recognizer"} | replaced
        dtype = TensorProto.UINT8 if inputs == "raw" else TensorProto.FLOAT
        axis_names = ["n", *(None if size < 0 else size for size in shapes[inputs])]
        steps = [
            helper.make_node("Cast", ["pixels"], ["floats"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", ["floats"], ["means"], axes=axes[inputs], keepdims=0),
            helper.make_node("Mul", ["means", "nine"], [values["output_name"]]),
        ]
        graph = helper.make_graph(
            steps,
            "tagger",
            [helper.make_tensor_value_info("pixels", dtype, axis_names)],
            [helper.make_tensor_value_info(values["output_name"], TensorProto.FLOAT, ["n", 3])],
            [
                helper.make_tensor(
                    "nine", TensorProto.FLOAT, [], [9 / 255 if inputs == "raw" else 9]
                )
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
        text = json.dumps(values) if metadata is None else metadata
        file = tmp_path / name
        if file.suffix != ".xml":
            helper.set_model_props(model, {METADATA_KEY: text} if text else {})
            onnx.save(model, file)
            return file
        from surelabel.package_imports import import_without_telemetry, openvino_core

        converted = openvino_core().read_model(io.BytesIO(model.SerializeToString()))
        if text:
            converted.set_rt_info(text, METADATA_KEY)
        import_without_telemetry("openvino").save_model(converted, file, compress_to_fp16=False)
        return file

    return write


@pytest.fixture(scope="session")
def random_encoder():
    """An encoder of two small layers with random weights, for images of 32 by 32 pixels."""
    import torch
    from open_clip.model import CLIP
    from open_clip.tokenizer import SimpleTokenizer

    from surelabel.encoders import OpenClipEncoder

    torch.manual_seed(0)
    vision = {"image_size": 32, "patch_size": 8, "width": 32, "head_width": 8, "layers": 2}
    text = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    config = {"embed_dim": 24, "vision_cfg": vision, "text_cfg": text}
    preprocess_cfg = {
        "size": 32,
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    return OpenClipEncoder(
        CLIP(**config),
        SimpleTokenizer(context_length=16),
        name="random",
        config=config,
        preprocess_cfg=preprocess_cfg,
    )


@pytest.fixture(scope="session")
def _onnx_models_of_features():
    return {}


@pytest.fixture
def shared_conversions(_onnx_models_of_features, monkeypatch):
    """Convert each kind of features of an encoder only once, for all engines and tests.

    Return the ONNX models by encoder and kind. The next conversions fill it if it is cleared.
    """
    from surelabel.encoders.engines import conversion, onnx_engine, openvino_engine

    models = _onnx_models_of_features

    def convert_once(features, **names):
        module, arguments = features
        key = (module.encoder, module.kind)
        if key not in models:
            program = conversion.exported_program(module, arguments)
            models[key] = conversion.onnx_model_of_program(program, **names)
        return models[key]

    for engine in (onnx_engine, openvino_engine):
        monkeypatch.setattr(engine, "exported_program", lambda *features: features)
        monkeypatch.setattr(engine, "onnx_model_of_program", convert_once)
    return models
