"""Score the whole image and its tiles with ML-Decoder, initialized by the label texts."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.methods.inference_batches.inference_batches import inference_batches
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.text_scoring.scale_and_bias import initial_scale_and_bias
from surelabel.methods.text_scoring.text_scorer import TextScorer
from surelabel.records import Features
from surelabel.views import TileGrids, TileLayout, image_and_view_vectors

ATTENTION_SCALES = (18.0, 3.5)  # initial factors of the cosines in the attention of each head
QUERY_WEIGHT = 0.1  # weight of the query in the sum with the attended vectors
PAIRS_PER_BATCH = 16_384  # pairs of an image and a label that are decoded at once; limits memory


class MLDecoder(Method):
    """Attend with one query per label to the whole image and its tiles, and score the output.

        h_c   = norm(0.1 · q_c + sum_heads sum_v softmax_v(a · <q_c, K (x_v + p_v)>) V x_v)
        score = <w_c, norm(h_c + W2 relu(W1 h_c))> + b_c            v: whole image and tiles

    x_v is the vector of the image or of a tile, and p_v its position embedding. Each of the two
    heads has matrices K and V and a factor a, which all labels share. The query q_c and the weights
    w_c of a label are initialized by the text of the label, K by the identity, and V by half the
    identity. The initial factors are 18 and 3.5, so that one head attends to the tiles that are
    most similar to the text, and the other head to all tiles.

    Args:
        encoder: Encoder of images and texts.
        names: Labels. Each label needs annotated images. Synonyms of one label are separated by
            ``|``, as in ``sofa|couch``.
        templates: Prompt templates; see ``TextScorer``.
        rows, columns: Number of tile rows and tile columns of the finest grid, >= 1.
        grids: Largest number of grids, >= 1; see ``tiles``.
        dropout: Probability of dropout of the query and of the feed-forward network, in [0, 1).

    Raises:
        ConfigError: If a setting is out of range.
        InputError: If ``rows`` or ``columns`` is below 1.

    Source:
        Ridnik et al., ML-Decoder: Scalable and Versatile Classification Head, WACV 2023,
        arXiv:2111.12933.

    Differs:
        The encoder is frozen, and the instances are the vectors of tiles instead of the tokens of a
        network. The paper has fixed random queries, eight heads with output projections, a wider
        feed-forward network, groups of classes and the asymmetric loss. Here the queries are texts
        and are trained, each label has its own query, and the loss is ``binary``. On the validation
        images of scenes-80 with 1,500 training images, the mAP is 87.2 (tiny-vit) and 82.0
        (tiny-rn); that of ``multiple_instance_tiles`` is 85.5 and 80.5. With 100 images, the mAP is
        79.9 and 69.7; that of ``multiple_instance_tiles`` is 80.6 and 71.8. With 500 images,
        tiny-vit and random initial weights of the decoder as in the paper, the mAP is 68 for random
        queries and 70 for texts. With the initialization here, the mAP is 83.6.
        docs/which-method.md lists the measurements, including those of CSRA and Query2Label.
    """

    learns_from = "labels"
    needs = ("views",)
    open_vocabulary = False
    recipe = TrainingRecipe(epochs=8, batch_size=32, learning_rate=0.001, warm_up=0.1)

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        rows: int = 3,
        columns: int = 3,
        grids: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__()
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be in [0, 1); got {dropout}.")
        self.grids = TileGrids(rows, columns, grids)
        self.max_views = self.grids.n_tiles
        texts, width = TextScorer(encoder, names, templates=templates).texts, encoder.width
        self.queries, self.weights = nn.Parameter(texts.clone()), nn.Parameter(texts.clone())
        self.positions = nn.Parameter(0.02 * torch.randn(1 + self.max_views, width))
        n_heads = len(ATTENTION_SCALES)
        self.keys = nn.ModuleList(_scaled_identity(width, 1.0) for _ in range(n_heads))
        self.values = nn.ModuleList(_scaled_identity(width, 1 / n_heads) for _ in range(n_heads))
        self.log_scales = nn.Parameter(torch.tensor(ATTENTION_SCALES).log())
        self.hidden_norm, self.output_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 2 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            _small_linear(2 * width, width),
        )
        self.dropout = nn.Dropout(dropout)
        self.bias = nn.Parameter(torch.zeros(len(names)))
        self.to(texts.device)

    def next_views(self, features: Features) -> TileLayout | None:
        """Return the next grid of tiles to be encoded, in order from coarse to fine."""
        return self.grids.next_layout(features)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize the scale of the weights and the biases by Platt scaling.

        See ``initial_scale_and_bias``.
        """
        is_training = self.training
        scores = self.eval()(features)
        self.train(is_training)
        slope, bias = initial_scale_and_bias(scores, targets, known, link)
        self.weights.mul_(slope)
        self.bias.fill_(bias)

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``pooled`` ``(n, d)`` and ``views`` ``(n, t, d)``."""
        return self._scores(image_and_view_vectors(features))

    def view_scores(self, features: Features) -> Tensor:
        """Return the scores of the whole image, then of each tile, ``(n, 1 + t, c)``.

        Each tile is scored like a whole image without tiles.
        """
        instances = image_and_view_vectors(features)
        scores = self._scores(instances.flatten(0, 1)[:, None])
        return scores.view(*instances.shape[:2], -1)

    def _scores(self, instances: Tensor) -> Tensor:
        """Return the scores ``(n, c)`` of images with instances ``(n, t, d)``."""
        n_images = max(PAIRS_PER_BATCH // len(self.queries), 1)
        return torch.cat(
            [self._batch_scores(batch) for batch in inference_batches(instances, n_images)]
        )

    def _batch_scores(self, instances: Tensor) -> Tensor:
        """Return the scores ``(n, c)`` of a batch of images with instances ``(n, t, d)``."""
        attended = QUERY_WEIGHT * self.dropout(self.queries)
        positioned = instances + self.positions[: instances.shape[1]]
        for key, value, scale in zip(self.keys, self.values, self.log_scales.exp(), strict=True):
            similarities = scale * self.queries @ key(positioned).transpose(1, 2)
            attended = attended + similarities.softmax(dim=-1) @ value(instances)
        hidden = self.hidden_norm(attended)
        hidden = self.output_norm(hidden + self.dropout(self.feed_forward(hidden)))
        # after a sum over the last axis, OpenVINO 2026.4 adds wrong biases in a batch of images
        scores: Tensor = torch.einsum("ncd,cd->nc", hidden, self.weights) + self.bias
        return scores


@torch.no_grad()
def _scaled_identity(width: int, factor: float) -> nn.Linear:
    """Return a linear layer that multiplies vectors of a width by a factor."""
    linear = nn.Linear(width, width)
    nn.init.eye_(linear.weight).mul_(factor)
    nn.init.zeros_(linear.bias)
    return linear


@torch.no_grad()
def _small_linear(width: int, output_width: int) -> nn.Linear:
    """Return a linear layer with a tenth of the default random weights, and zero biases."""
    linear = nn.Linear(width, output_width)
    linear.weight.mul_(0.1)
    nn.init.zeros_(linear.bias)
    return linear
