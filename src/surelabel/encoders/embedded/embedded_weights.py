"""Load embedded encoders, whose weights are in the package."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from torch import Tensor

from surelabel.array_files import read_safetensors
from surelabel.encoders.image_inputs.out_of_distribution import load_ood_detector
from surelabel.encoders.image_inputs.preprocessing import check_preprocess_cfg
from surelabel.encoders.open_clip.encoder import OpenClipEncoder, TrainingInfo
from surelabel.file_readers import read_json
from surelabel.records import EncoderLicense

LICENSE = EncoderLicense("apache-2.0", "the license of surelabel")
TRAINING_DOMAIN = "emoji scenes (generated images of 299 emoji)"


def encoder_with_embedded_weights(name: str, device: str) -> OpenClipEncoder:
    """Load an embedded encoder with its out-of-distribution detector.

    Args:
        name: Name of an embedded encoder, a key of ``ENCODERS``.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.
    """
    with as_file(files("surelabel.encoders").joinpath("weights")) as folder:
        encoder = encoder_from_embedded_weights_folder(folder, name, device=device)
        detector = load_ood_detector(folder / f"{name}.world.safetensors", encoder.fingerprint)
    return encoder.with_ood_detector(detector)


def encoder_from_embedded_weights_folder(
    folder: Path, name: str, *, device: str = "cpu"
) -> OpenClipEncoder:
    """Load an encoder from the folder that the training script wrote.

    The folder must contain ``NAME.safetensors`` and ``NAME.json``. The token embedding in
    ``NAME.safetensors`` contains only the rows of tokens that occurred in training. The rows of all
    other tokens are set to the mean of the stored rows.

    Args:
        folder: Folder with ``NAME.safetensors`` and ``NAME.json``.
        name: Name of the encoder, the file name without suffix.
        device: Device of the encoder, such as ``cpu`` or ``cuda``.

    Raises:
        ConfigError: If the preprocessing settings are incomplete or invalid.
        DataError: If a file cannot be read or is damaged.
    """
    description = read_json(folder / f"{name}.json")
    config: dict[str, Any] = description["model_cfg"]
    preprocess_cfg = description["preprocess_cfg"]
    check_preprocess_cfg(preprocess_cfg, f"{name}.json")
    weights = folder / f"{name}.safetensors"
    state = {k: v.float() for k, v in read_safetensors(weights, "pt").items()}
    ids = state.pop("token_ids").long()
    n_tokens = config["text_cfg"]["vocab_size"]
    state["token_embedding.weight"] = expand_embedded_token_weights(
        state["token_embedding.weight"], ids, n_tokens
    )
    model = CLIP(**config)
    counters = {k: v for k, v in model.state_dict().items() if k.endswith("batches_tracked")}
    model.load_state_dict(counters | state)
    return OpenClipEncoder(
        model.to(device),
        SimpleTokenizer(context_length=config["text_cfg"]["context_length"]),
        name=name,
        config=config,
        preprocess_cfg={**preprocess_cfg, "size": config["vision_cfg"]["image_size"]},
        training_info=TrainingInfo(name, TRAINING_DOMAIN, frozenset(ids.tolist())),
        license=LICENSE,
    )


def expand_embedded_token_weights(trained_rows: Tensor, ids: Tensor, n_tokens: int) -> Tensor:
    """Return the token embeddings of the whole vocabulary, ordered by token id.

    The embedding of an untrained token is the mean of the embeddings of the trained tokens.

    Args:
        trained_rows: Embeddings of the ``k`` trained tokens, each with ``w`` values, ``(k, w)``.
        ids: Ids of the trained tokens, ``(k,)``.
        n_tokens: Number of all tokens in the vocabulary.

    Returns:
        The embeddings of all tokens, ``(n_tokens, w)``.

    Example:
        >>> import torch
        >>> trained_rows, ids = torch.tensor([[1.0], [3.0]]), torch.tensor([0, 2])
        >>> expand_embedded_token_weights(trained_rows, ids, 3)[:, 0]
        tensor([1., 2., 3.])
    """
    table = trained_rows.mean(dim=0).repeat(n_tokens, 1)
    table[ids] = trained_rows
    return table
