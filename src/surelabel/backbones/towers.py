"""Any open_clip model as a frozen backbone."""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from open_clip.modified_resnet import ModifiedResNet
from open_clip.tokenizer import SimpleTokenizer
from safetensors.torch import save_file
from torch import Tensor, nn

from surelabel.backbones.dense import plain, self_aware
from surelabel.backbones.familiarity import Familiarity
from surelabel.backbones.fingerprint import fingerprint
from surelabel.backbones.positions import at_size
from surelabel.backbones.preparation import Preparation
from surelabel.backbones.templates import check_templates
from surelabel.errors import ConfigError, InputError
from surelabel.files import new_folder
from surelabel.records import Features
from surelabel.shapes import check_shapes

TEXTS_AT_ONCE = 256
DENSE_SIDE = 256  # pixels; 8 by 8 places of a ResNet
COVERS = {"squash": "whole", "shortest": "middle", "longest": "padded"}
CONFIG_FILE, WEIGHTS_FILE = "open_clip_config.json", "open_clip_model.safetensors"
EMBEDDED_FILE = "surelabel_backbone.json"


@dataclass(frozen=True)
class Schooling:
    """What is known of an encoder that this project trained itself.

    Attributes:
        name: Of the embedded encoder.
        world: What its training pictures were, in one sentence.
        tokens: Ids of the tokens that it was trained on.
        familiarity: Where its training pictures lie; None where that was not measured.
    """

    name: str
    world: str
    tokens: frozenset[int]
    familiarity: Familiarity | None = None


class Towers:
    """A frozen image tower and text tower with one joint space.

    Args:
        model: An open_clip model. It is put into evaluation and its parameters are frozen.
        tokenizer: Turns sentences into token ids, ``(s, length)``.
        name: As it was asked for.
        config: The architecture, as open_clip writes it (``model_cfg``).
        preprocess: How pictures are prepared, as open_clip writes it (``preprocess_cfg``).
        schooling: What is known of its training; None for encoders of others.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        name: str,
        config: Mapping[str, Any],
        preprocess: Mapping[str, Any],
        schooling: Schooling | None = None,
    ):
        self.model: Any = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        self.name, self.config, self.schooling = name, config, schooling
        self.prepare = Preparation(preprocess)
        self.preprocess = self.prepare.settings
        self.fingerprint = fingerprint(
            model.state_dict(), config=config, preprocess=self.preprocess
        )
        self.width = int(config["embed_dim"])
        log_scale = model.get_parameter("logit_scale")
        self.scale, self.device = float(log_scale.exp()), log_scale.device
        self.world = schooling.world if schooling else ""

    @torch.no_grad()
    def images(self, pixels: Tensor) -> Features:
        """``pooled`` unit vectors of prepared pictures ``(n, 3, h, w)``; nothing else."""
        pooled = self.model.encode_image(self._checked(pixels), normalize=True)
        return Features(pooled=pooled)

    @torch.no_grad()
    def patches(self, pixels: Tensor) -> Features:
        """The same, with plain patch vectors of the last layer in the joint space.

        Raises:
            ConfigError: this kind of tower gives none.
        """
        return plain(self.model.visual, self._checked(pixels))

    @torch.no_grad()
    def self_aware(self, pixels: Tensor) -> Features:
        """The same, with patches whose last layer attends by value to value.

        Raises:
            ConfigError: this kind of tower gives none.
        """
        return self_aware(self.model.visual, self._checked(pixels))

    @torch.no_grad()
    def texts(self, names: Sequence[str], templates: Sequence[str]) -> Tensor:
        """Unit vectors ``(c, d)``: for each name the mean over templates with one ``{}``.

        Raises:
            ConfigError: a template without exactly one ``{}``.
        """
        check_templates(tuple(templates))
        sentences = [template.replace("{}", name) for name in names for template in templates]
        vectors = self.sentences(sentences).unflatten(0, (len(names), len(templates)))
        return F.normalize(vectors.mean(dim=1), dim=-1)

    @torch.no_grad()
    def sentences(self, sentences: Sequence[str]) -> Tensor:
        """Unit vectors ``(s, d)`` of sentences as they are."""
        vectors = [torch.zeros(0, self.width, device=self.device)]
        for start in range(0, len(sentences), TEXTS_AT_ONCE):
            tokens = self.tokenizer(list(sentences[start : start + TEXTS_AT_ONCE]))
            vectors.append(self.model.encode_text(tokens.to(self.device), normalize=True))
        return torch.cat(vectors)

    def untrained(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that hold a token the encoder was never trained on."""
        if self.schooling is None or not isinstance(self.tokenizer, SimpleTokenizer):
            return []
        trained = self.schooling.tokens
        return [name for name in names if not trained.issuperset(self.tokenizer.encode(name))]

    def strangeness(self, pooled: Tensor) -> float:
        """How little a set of pictures ``(n, d)`` looks like the encoder's training.

        About one in a hundred sets of its own world is above 1, and nearly all sets of sixteen
        photographs or more are. NaN where nobody knows what its training pictures look like.
        """
        known = self.schooling.familiarity if self.schooling else None
        return math.nan if known is None else known.strangeness(pooled)

    def knowing(self, familiarity: Familiarity | None) -> "Towers":
        """The same towers with another measure of what is familiar to them."""
        same = copy.copy(self)
        same.schooling = self.schooling and replace(self.schooling, familiarity=familiarity)
        return same

    def at(self, size: int) -> "Towers":
        """The same towers for pictures of ``size`` pixels a side, with interpolated positions.

        What is familiar was measured at the size of training, so ``strangeness`` is NaN here.

        Raises:
            ConfigError: ``size`` is no multiple of a patch, or the tower cannot be resized.
        """
        if self.preprocess["size"] == [size, size]:
            return self
        config = {**self.config, "vision_cfg": {**self.config["vision_cfg"], "image_size": size}}
        resized = Towers(
            at_size(self.model, size),
            self.tokenizer,
            name=self.name,
            config=config,
            preprocess={**self.preprocess, "size": [size, size]},
            schooling=self.schooling,
        )
        return resized.knowing(None)

    @property
    def least_side(self) -> int:
        """Shorter side below which a picture would have to be enlarged, in pixels."""
        return int(max(self.preprocess["size"]))

    @property
    def cover(self) -> str:
        """What of an oblong picture is seen: ``whole``, ``middle``, or ``padded`` with margins."""
        return COVERS[self.preprocess["resize_mode"]]

    @property
    def dense_parts(self) -> tuple[str, ...]:
        """Which of ``self_aware`` and ``patches`` the tower gives, the best first.

        It is found by looking at one blank picture, which takes as long as a picture does.
        """
        blank = torch.zeros(1, 3, *self.preprocess["size"])
        return tuple(part for part in ("self_aware", "patches") if self._gives(part, blank))

    def dense(self) -> "Towers":
        """The same towers at the size that patches ask for.

        A ResNet has one place for 32 by 32 pixels, so it takes pictures of 256 pixels or more;
        a ViT has patches enough at its own size.
        """
        coarse = isinstance(self.model.visual, ModifiedResNet)
        return self.at(max(DENSE_SIDE, self.least_side)) if coarse else self

    def save(self, folder: Path) -> None:
        """Write all that loading ``local-dir:`` of this folder takes, with no network.

        An embedded encoder writes only its name, size and fingerprint: its weights are in the
        package.

        Raises:
            DataError: the folder cannot be written.
        """
        with new_folder(folder) as new:
            if self.schooling:
                about = {
                    "embedded": self.schooling.name,
                    "size": self.preprocess["size"][0],
                    "fingerprint": self.fingerprint,
                }
                (new / EMBEDDED_FILE).write_text(json.dumps(about, indent=2) + "\n")
                return
            about = {"model_cfg": self.config, "preprocess_cfg": self.preprocess}
            (new / CONFIG_FILE).write_text(json.dumps(about, indent=2) + "\n")
            state = self.model.state_dict()
            save_file({k: v.cpu().contiguous() for k, v in state.items()}, new / WEIGHTS_FILE)
            if not isinstance(self.tokenizer, SimpleTokenizer):
                self.tokenizer.save_pretrained(new)

    def _gives(self, part: str, pixels: Tensor) -> bool:
        try:
            getattr(self, part)(pixels)
        except ConfigError:
            return False
        return True

    def _checked(self, pixels: Tensor) -> Tensor:
        check_shapes(pixels=(pixels, "n rgb h w"))
        wanted = (3, *self.preprocess["size"])
        if tuple(pixels.shape[1:]) != wanted:
            raise InputError(
                f"pixels must be pictures prepared by this backbone, (n, {wanted[0]}, {wanted[1]}, "
                f"{wanted[2]}). Got {tuple(pixels.shape)}; prepare them with its prepare()."
            )
        return pixels.to(self.device)
