"""The two encoders inside the package. Emoji scenes are all they know."""

import json
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from open_clip.model import CLIP
from open_clip.tokenizer import SimpleTokenizer
from safetensors.torch import load_file
from torch import Tensor

from surelabel.backbones.familiarity import load_familiarity
from surelabel.backbones.preparation import check_complete
from surelabel.backbones.protocol import Backbone
from surelabel.backbones.towers import Schooling, Towers
from surelabel.errors import DataError

WORLD = "emoji scenes (generated pictures of 299 things)"


def tiny_vit(*, device: str = "cpu") -> Towers:
    """A ViT of 6 layers and width 192: pictures of 96 px, 8 by 8 patches."""
    return _stored("tiny-vit", device)


def tiny_rn(*, device: str = "cpu") -> Towers:
    """A small CLIP ResNet of stride 32: 3 by 3 places at 96 px, 8 by 8 at 256 px."""
    return _stored("tiny-rn", device)


BACKBONES = {"tiny-rn": tiny_rn, "tiny-vit": tiny_vit}


def _stored(name: str, device: str) -> Towers:
    with as_file(files("surelabel.backbones").joinpath("weights")) as folder:
        towers = from_weights(folder, name, device=device)
        known = load_familiarity(folder / f"{name}.world.safetensors", towers.fingerprint)
    return towers.knowing(known)


def shared_calibration(
    backbone: Backbone, *, templates: str | Sequence[str] = "one"
) -> dict[str, Any] | None:
    """The calibration of zero-shot scores that an embedded encoder ships with.

    Args:
        backbone: Any encoder.
        templates: The prompts of the scores: ``one`` or ``ensemble``.

    Returns:
        ``calibrator``, ``state`` and ``about``; None for other encoders and other prompts.

    Raises:
        DataError: it was made for other weights.
    """
    if backbone.name not in BACKBONES or not isinstance(templates, str):
        return None
    file = files("surelabel.backbones").joinpath("weights", f"{backbone.name}.calibration.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    if stored["fingerprint"] != backbone.fingerprint:
        raise DataError(
            f"{backbone.name}.calibration.json was made for weights {stored['fingerprint']}, but "
            f"the weights here are {backbone.fingerprint}. Make it again: "
            f"python training/calibrate.py {backbone.name}."
        )
    found: dict[str, Any] | None = stored["templates"].get(templates)
    return found


def saved_embedded(folder: Path, about: dict[str, Any], device: str) -> Towers:
    """The encoder of the package that a folder names, for pictures of the size stated there.

    Raises:
        DataError: the package has no such encoder.
    """
    name = about["embedded"]
    if name not in BACKBONES:
        raise DataError(f"{folder} must name one of {', '.join(BACKBONES)}. Got {about}.")
    towers = BACKBONES[name](device=device)
    return towers.at(about.get("size", towers.least_side))


def from_weights(folder: Path, name: str, *, device: str = "cpu") -> Towers:
    """An encoder as its training wrote it: ``NAME.safetensors`` and ``NAME.json``.

    The file keeps only the token rows that training used, with their ids. All other rows become
    the mean of these.

    Args:
        folder: Where both files lie.
        name: Of the encoder.
        device: Where it will run.

    Raises:
        ConfigError: the settings do not say how pictures are prepared.
    """
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    config: dict[str, Any] = about["model_cfg"]
    check_complete(about["preprocess_cfg"], f"{name}.json")
    state = {k: v.float() for k, v in load_file(folder / f"{name}.safetensors").items()}
    ids = state.pop("token_ids").long()
    rows = config["text_cfg"]["vocab_size"]
    state["token_embedding.weight"] = expanded(state["token_embedding.weight"], ids, rows)
    model = CLIP(**config)
    counters = {k: v for k, v in model.state_dict().items() if k.endswith("batches_tracked")}
    model.load_state_dict(counters | state)
    return Towers(
        model.to(device),
        SimpleTokenizer(context_length=config["text_cfg"]["context_length"]),
        name=name,
        config=config,
        preprocess={**about["preprocess_cfg"], "size": config["vision_cfg"]["image_size"]},
        schooling=Schooling(name, WORLD, frozenset(ids.tolist())),
    )


def expanded(kept: Tensor, ids: Tensor, rows: int) -> Tensor:
    """The whole token table: kept rows at their ids, their mean everywhere else.

    Args:
        kept: The rows that were trained, ``(k, w)``.
        ids: Which tokens they are, ``(k,)``.
        rows: How many tokens there are.

    Example:
        >>> import torch
        >>> expanded(torch.tensor([[1.0], [3.0]]), torch.tensor([0, 2]), 3)[:, 0]
        tensor([1., 2., 3.])
    """
    table = kept.mean(dim=0).repeat(rows, 1)
    table[ids] = kept
    return table
