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

from surelabel.backbones.attentive import attentive
from surelabel.backbones.deep_texts import DeepTexts
from surelabel.backbones.dense import plain, self_aware
from surelabel.backbones.familiarity import Familiarity
from surelabel.backbones.fingerprint import fingerprint
from surelabel.backbones.kept import write_about
from surelabel.backbones.ladder import ladder
from surelabel.backbones.positions import at_size
from surelabel.backbones.preparation import Preparation
from surelabel.backbones.templates import check_templates
from surelabel.backbones.trained import fine_tuned, load_trained
from surelabel.backbones.trunk import trunk, trunk_width
from surelabel.backbones.upper import Upper
from surelabel.errors import ConfigError
from surelabel.files import new_folder
from surelabel.records import Features

TEXTS_AT_ONCE = 256
DENSE_SIDE = 256  # pixels; 8 by 8 places of a ResNet
CONFIG_FILE, WEIGHTS_FILE = "open_clip_config.json", "open_clip_model.safetensors"


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


class ImageTower(nn.Module):
    """The image tower of an open_clip model as a network on its own.

    Args:
        visual: The tower.
    """

    def __init__(self, visual: nn.Module):
        super().__init__()
        self.visual = visual

    def forward(self, pixels: Tensor) -> Tensor:
        """Vectors ``(n, d)`` of prepared pictures ``(n, 3, h, w)``, of any length."""
        seen = self.visual(pixels)
        pooled: Tensor = seen[0] if isinstance(seen, tuple) else seen  # CoCa adds its tokens
        return pooled


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
    def attentive(self, pixels: Tensor) -> Features:
        """The same, with how much each of these patches looks at each.

        Raises:
            ConfigError: this kind of tower gives none.
        """
        return attentive(self.model.visual, self._checked(pixels))

    @torch.no_grad()
    def trunk(self, pixels: Tensor) -> Features:
        """``pooled``, and in ``layers[-1]`` the tokens that a head of one's own can start from.

        Raises:
            ConfigError: this kind of tower gives none.
        """
        return trunk(self.model.visual, self._checked(pixels))

    @torch.no_grad()
    def ladder(self, pixels: Tensor, *, first: int, depth: int) -> Features:
        """``pooled``, what enters the last ``depth`` blocks, and ``beside``.

        Raises:
            ConfigError: this kind of tower gives none, or has no such blocks.
        """
        return ladder(self.model.visual, self._checked(pixels), first=first, depth=depth)

    def upper(self, depth: int) -> Upper:
        """The last ``depth`` blocks of the image tower, frozen, to be run from ``ladder``.

        Raises:
            ConfigError: this kind of tower has none, or not so many.
        """
        return Upper(self.model.visual, depth)

    def deep_texts(
        self, names: Sequence[str], templates: Sequence[str], *, depth: int
    ) -> DeepTexts:
        """Names as the last ``depth`` layers of the text tower read them, prompts inside.

        Raises:
            ConfigError: the text tower is not causal, or a template has not exactly one ``{}``.
        """
        return DeepTexts(self.model, self.tokenizer, names, templates, depth=depth)

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
        return self.prepare.least_side

    @property
    def cover(self) -> str:
        """What of an oblong picture is seen: ``whole``, ``middle``, or ``padded`` with margins."""
        return self.prepare.cover

    @property
    def dense_parts(self) -> tuple[str, ...]:
        """Which of ``self_aware`` and ``patches`` the tower gives, the best first.

        It is found by looking at one blank picture, which takes as long as a picture does.
        """
        return tuple(part for part in ("self_aware", "patches") if self.gives(part))

    @property
    def trunk_width(self) -> int:
        """Size ``w`` of the tokens of the trunk, found with one blank picture.

        Raises:
            ConfigError: this kind of tower gives none.
        """
        return trunk_width(self.trunk(self._blank))

    def gives(self, part: str) -> bool:
        """Whether it gives ``patches``, ``self_aware``, ``attentive``, ``trunk`` or ``ladder``."""
        try:
            _ = self.upper(1) if part == "ladder" else getattr(self, part)(self._blank)
        except ConfigError:
            return False
        return True

    def dense(self) -> "Towers":
        """The same towers at the size that patches ask for.

        A ResNet has one place for 32 by 32 pixels, so it takes pictures of 256 pixels or more;
        a ViT has patches enough at its own size.
        """
        coarse = isinstance(self.model.visual, ModifiedResNet)
        return self.at(max(DENSE_SIDE, self.least_side)) if coarse else self

    def network(self) -> "ImageTower":
        """A copy of the image tower that can be trained, ``(n, 3, h, w)`` to ``(n, d)``.

        Its vectors are not yet unit vectors; ``images`` gives theirs. It is in evaluation and all
        its parameters take gradients; the frozen towers are untouched by what becomes of it.
        """
        return ImageTower(copy.deepcopy(self.model.visual)).requires_grad_(True)

    def with_network(self, network: nn.Module) -> "Towers":
        """The same towers with a trained copy of ``network()`` as their image tower.

        What was known of the training of an embedded encoder holds no more, so it is dropped.

        Raises:
            InputError: ``network`` is no copy of this image tower.
        """
        visual = copy.deepcopy(self.model.visual)
        load_trained(ImageTower(visual), network, self.name)
        tensors = [*self.model.parameters(), *self.model.buffers()]
        memo: dict[int, Any] = {id(tensor): tensor for tensor in tensors}
        model = copy.deepcopy(self.model, memo | {id(self.model.visual): visual})
        return Towers(
            model,
            self.tokenizer,
            name=fine_tuned(self.name),
            config=self.config,
            preprocess=self.preprocess,
        )

    def save(self, folder: Path) -> None:
        """Write all that loading ``local-dir:`` of this folder takes, with no network.

        An embedded encoder writes only its name, size and fingerprint: its weights are in the
        package.

        Raises:
            DataError: the folder cannot be written.
        """
        with new_folder(folder) as new:
            if self.schooling:
                size = self.preprocess["size"][0]
                write_about(new, "embedded", self.schooling.name, self.fingerprint, size=size)
                return
            about = {"model_cfg": self.config, "preprocess_cfg": self.preprocess}
            (new / CONFIG_FILE).write_text(json.dumps(about, indent=2) + "\n")
            state = self.model.state_dict()
            save_file({k: v.cpu().contiguous() for k, v in state.items()}, new / WEIGHTS_FILE)
            if not isinstance(self.tokenizer, SimpleTokenizer):
                self.tokenizer.save_pretrained(new)

    @property
    def _blank(self) -> Tensor:
        return torch.zeros(1, 3, *self.preprocess["size"])

    def _checked(self, pixels: Tensor) -> Tensor:
        return self.prepare.checked(pixels).to(self.device)
