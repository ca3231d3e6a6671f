"""Load a dual encoder of transformers from checked settings and safetensors weights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from surelabel.array_files import open_safetensors
from surelabel.encoders.open_clip.checkpoint_model import LOADING_ERRORS
from surelabel.encoders.open_clip.hugging_face_texts import check_sentencepiece_package
from surelabel.encoders.transformers.model_config import MODEL_KINDS
from surelabel.errors import ConfigError, DataError, MissingPart

WEIGHTS_FILE = "model.safetensors"
OPTIONAL_WEIGHTS = {"temperature"}  # weights of TIPSv2 that the published files lack


def load_transformers_model(name: str, settings: Mapping[str, Any], weights: Path) -> nn.Module:
    """Build a model of transformers, and load its weights in float32.

    The folder that transformers reads contains only the weights. Before memory is allocated, the
    number of values of the model is compared with the number of stored values.

    Args:
        name: Model name of the encoder, for error messages.
        settings: Checked settings of :func:`read_transformers_model_config`.
        weights: ``.safetensors`` file.

    Raises:
        ConfigError: If the settings do not describe a model.
        DataError: If the weights are damaged, or belong to another architecture.
    """
    kind = MODEL_KINDS[settings["model_type"]]
    model_class = getattr(import_module("transformers"), kind.model_class)
    with open_safetensors(weights, "pt") as stored:
        shapes = [stored.get_slice(key).get_shape() for key in stored.keys()]  # noqa: SIM118
    n_stored = sum(torch.Size(shape).numel() for shape in shapes)
    with TemporaryDirectory() as folder, _muted_transformers():
        (Path(folder) / WEIGHTS_FILE).symlink_to(weights.resolve())
        config, n_values = _model_config_and_size(name, settings)
        if n_values > n_stored + len(OPTIONAL_WEIGHTS):
            raise DataError(
                f"{name} must contain all weights of its architecture, {n_values} values; "
                f"{weights} has {n_stored} values. Copy the files of the model again."
            )
        try:
            model, report = model_class.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                attn_implementation="sdpa",
                use_safetensors=True,
                local_files_only=True,
                output_loading_info=True,
            )
        except LOADING_ERRORS as error:
            raise _transformers_weights_error(name, _first_words(error)) from error
    missing = {*report["missing_keys"]} - OPTIONAL_WEIGHTS
    if missing:
        raise _transformers_weights_error(name, f"{min(missing)} is missing")
    loaded: nn.Module = model
    return loaded


def load_transformers_tokenizer(name: str, folder: Path) -> Any:
    """Load the tokenizer in a folder whose files were checked.

    Raises:
        MissingPart: If the tokenizer needs a package that is not installed.
        DataError: If the tokenizer is missing or damaged.
    """
    check_sentencepiece_package(name, folder)
    transformers = import_module("transformers")
    try:
        with _muted_transformers():
            return transformers.AutoTokenizer.from_pretrained(
                str(folder), trust_remote_code=False, local_files_only=True
            )
    except ImportError as error:
        raise MissingPart(
            f"The tokenizer of {name} needs a package that is not installed "
            f"({_first_words(error)}). Install the package, for example with pip "
            "install sentencepiece."
        ) from error
    except LOADING_ERRORS as error:
        raise DataError(
            f"{name} must contain the files of its tokenizer; loading the tokenizer failed "
            f"({_first_words(error)}). Copy the files of the model again."
        ) from error


def _model_config_and_size(name: str, settings: Mapping[str, Any]) -> tuple[Any, int]:
    """Return the configuration of transformers, and the number of values of the model.

    Raises:
        ConfigError: If the settings do not describe a model.
    """
    transformers = import_module("transformers")
    kind = MODEL_KINDS[settings["model_type"]]
    try:
        config = getattr(transformers, kind.config_class)(**settings)
        with torch.device("meta"):
            model = getattr(transformers, kind.model_class)(config)
    except LOADING_ERRORS as error:
        raise ConfigError(
            f"config.json of {name} must describe a {kind.model_class}; building the model failed "
            f"({_first_words(error)}). Copy the files of the model again."
        ) from error
    return config, sum(parameter.numel() for parameter in model.parameters())


@contextmanager
def _muted_transformers() -> Iterator[None]:
    """Hide the progress bars and the warnings of transformers, such as those of unused tokens."""
    logging = import_module("transformers.utils.logging")
    had_progress_bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_progress_bars:
            logging.enable_progress_bar()


def _transformers_weights_error(name: str, reason: str) -> DataError:
    return DataError(
        f"{name} must contain all weights of its architecture; loading {WEIGHTS_FILE} failed "
        f"({reason}). Copy the files of the model again."
    )


def _first_words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
