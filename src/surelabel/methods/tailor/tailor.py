"""Train the student of TailorCLIP, a query decoder, on pseudo-labels of unlabelled images."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError, InputError
from surelabel.links import Link
from surelabel.methods.inference_batches.inference_batches import inference_batches
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.tailor.query_decoder import (
    ATTENTION_HEADS,
    QueryDecoder,
    QueryDecoderTokenAdapter,
)
from surelabel.records import Features

IMAGES_PER_BATCH = 64  # images per batch outside training


class Tailor(Method):
    """Decode the last tokens of a frozen image tower with one query per label.

    The tower encodes the whole image once, at a larger size than the default size of the encoder.
    ``Tailor`` is the student: it is trained on canvases, which are images with pasted overlays, and
    on their pseudo-labels. After the fit, scores are computed without label texts and without the
    teacher that computed the pseudo-labels.

    Args:
        encoder: Encoder of the images, with ``trunk`` tokens.
        names: Labels.
        image_size: Height and width in pixels at which images are encoded, a multiple of the patch
            size. If None, twice the default size is used.
        width: Width of queries and memory, a multiple of 8, >= 8.
        layers: Number of decoder layers, >= 1.
        reduction: Width of the tokens divided by the width of the bottleneck, >= 1. If None, the
            value is 16 for tokens at least twice as wide as the joint space, as in a ResNet, and 2
            otherwise.
        dropout: Dropout rate of the decoder in training, in [0, 1).
        decoder_learning_rate_scale: Learning rate of the decoder layers, relative to the learning
            rate of the other parameters, >= 0.

    Raises:
        ConfigError: If a setting is out of range, or the encoder has no trunk tokens.

    Source:
        TailorCLIP, arXiv:2606.11626, section 3.4, the student; the adapter is that of the released
        code (github.com/iCVTEAM/TailorCLIP).

    Differs:
        The weight vector of a label is applied only to the query of the label; the released code
        multiplies all pairs of weight vectors and queries, and uses the diagonal. Scale and shift
        of the batch norm are trained; in the released code they are constant. The learning rate
        decays along a cosine, and weight decay applies only to weight matrices.

        The default recipe was chosen on the validation images of scenes-80 with tiny-rn. The
        released code trains for one epoch, which has 357 steps on VOC2012 and 5,130 steps on COCO.
        Its learning rate of the decoder is a twentieth of that of the other parameters. On 1,000
        images, one epoch has 63 steps. After this epoch, the mAP of the student is 27 %, and the
        mAP of the pseudo-labels is 57 %. With equal learning rates, the mAP of the student is 30 %
        after one epoch, 55 % after four epochs, and 60 % after ten epochs (without dropout). For
        tens of thousands of images, set ``epochs=1``.
    """

    learns_from = "images"
    needs = ("trunk",)
    open_vocabulary = False
    recipe = TrainingRecipe(
        epochs=10, batch_size=16, micro_batch_size=16, learning_rate=0.001, weight_decay=0.01
    )

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        image_size: int | None = None,
        width: int = 256,
        layers: int = 2,
        reduction: int | None = None,
        dropout: float = 0.1,
        decoder_learning_rate_scale: float = 1.0,
    ):
        super().__init__()
        _check_tailor_settings(
            image_size=image_size, width=width, layers=layers, reduction=reduction
        )
        if width % ATTENTION_HEADS:
            raise ConfigError(f"width must be a multiple of {ATTENTION_HEADS}; got {width}.")
        if not (0 <= dropout < 1 and 0 <= decoder_learning_rate_scale < math.inf):
            raise ConfigError(
                "dropout must be in [0, 1) and decoder_learning_rate_scale 0 or more; "
                f"got dropout={dropout}, decoder_learning_rate_scale={decoder_learning_rate_scale}."
            )
        self.image_size = image_size or 2 * encoder.input_side
        self.learning_rate_scales = {"decoder.layers": decoder_learning_rate_scale}
        trunk: int = encoder.trunk_width
        hidden = max(1, trunk // (reduction or (16 if trunk >= 2 * encoder.width else 2)))
        self.token_adapter = QueryDecoderTokenAdapter(trunk, width=width, hidden=hidden)
        self.decoder = QueryDecoder(names, width=width, layers=layers, dropout=dropout)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Set each bias to the score of the label's prevalence.

        The prevalence is smoothed by half a positive and half a negative target. ``link`` converts
        its log-odds to a score.
        """
        n_positives = (targets * known).sum(dim=0) + 0.5
        log_odds = (n_positives / (known.sum(dim=0) + 0.5 - n_positives + 0.5)).log()
        self.decoder.bias.copy_(link.scores(log_odds))

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.layers[-1]`` ``(n, p, w)``.

        Raises:
            InputError: If the features contain no trunk tokens or no grid, or the grid has more
                than 50 rows or columns.
        """
        return torch.cat([self.decoder(memory) for memory in self._memory_batches(features)])

    @torch.no_grad()
    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each label at each patch, ``(n, c, down, across)``.

        Each value is the score that the decoder computes if the memory contains only this patch. On
        100 validation images of scenes-80, the patch with the highest score overlaps an object of
        the label in 91 % of the cases. For maps of the attention weights of the last layer, the
        percentage is 67 %; the chance level is 24 %.

        Raises:
            InputError: As for ``forward``.
        """
        patch_scores = [
            self.decoder(memory[:, None])
            for batch in self._memory_batches(features)
            for memory in batch
        ]
        maps: Tensor = torch.stack(patch_scores).transpose(1, 2).unflatten(-1, features.grid or ())
        return maps

    def _memory_batches(self, features: Features) -> Iterator[Tensor]:
        """Yield the memory of all images in training, and of a few images at a time otherwise."""
        if features.layers is None or features.grid is None:
            raise InputError(
                "tailor needs features.grid and the last tokens in features.layers[-1]; "
                "at least one is missing. Encode images with kind='trunk'."
            )
        tokens = features.layers[-1]
        for batch in [tokens] if self.training else inference_batches(tokens, IMAGES_PER_BATCH):
            yield self.token_adapter(batch, features.grid)


def _check_tailor_settings(**values: int | None) -> None:
    for name, value in values.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ConfigError(f"{name} must be a whole number of at least 1; got {value!r}.")
