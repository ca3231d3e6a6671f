"""Define the interface of methods, which compute the scores of labels from features of images."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

from torch import Tensor, nn

from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.links import Link
from surelabel.records import Features
from surelabel.views import ViewLayout

LearnsFrom = Literal["labels", "images", "texts", "pairs", "nothing"]
CONTRACT_PAGE = "docs/extending.md"


@dataclass(frozen=True)
class TrainingRecipe:
    """Default training settings of a method; settings of a run replace these defaults.

    Attributes:
        optimizer: Entry of ``OPTIMIZERS``.
        loss: Entry of ``LOSSES`` or ``SET_LOSSES``.
        epochs: Number of passes over the training images.
        batch_size: Number of images per optimizer step.
        micro_batch_size: Largest number of images in memory at once; the gradients of a larger
            batch are accumulated.
        learning_rate: Peak learning rate.
        weight_decay: Weight decay, applied to weight matrices only.
        warm_up: Fraction of the training steps with linear warm-up of the learning rate, in [0, 1).
        ema_decay: Decay of the exponential moving average of the weights, in [0, 1). If 0, the
            weights of the last step are used.
        regularizers: Weights of the entries of ``REGULARIZERS`` that belong to the method. The
            regularizer of a run is added. If the method has the same regularizer, the weight of the
            run replaces the weight of the method.
    """

    optimizer: str = "adamw"
    loss: str = "binary"
    epochs: int = 30
    batch_size: int = 64
    micro_batch_size: int = 4096
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    warm_up: float = 0.0
    ema_decay: float = 0.0
    regularizers: Mapping[str, float] = field(default_factory=dict)


class Method(nn.Module, ABC):
    """Define the base class of the entries of ``METHODS``, modules that compute scores of labels.

    An entry is constructed by ``method(encoder, names, *, settings)``. If a method has one of the
    optional abilities below, such as ``LocalizesLabels``, it defines the members of the protocol;
    the protocol is not a base class.

    Attributes:
        learns_from: Data that the method is fitted on: ``labels`` (annotated images), ``images``
            (unlabelled images), ``texts`` (texts with labels, such as captions), ``pairs`` (images
            with captions, see ``ScoresPairs``), or ``nothing`` (no fit). In features of sentences,
            ``pooled`` are the vectors of sentences, and ``patches`` with ``patch_mask`` those of
            their tokens; other parts of ``Features`` are missing.
        needs: Parts of ``Features`` that the method uses in addition to ``pooled``. Parts are
            ``patches`` (plain patches), ``self_aware`` (patches from self-aware attention),
            ``attention`` (between patches), ``multi_layer`` (patches and the outputs of several
            layers), ``trunk`` (``layers[-1]``), ``ladder`` (see ``UsesLadder``) and ``views`` (see
            ``UsesViews``). A method that needs ``pixels`` also trains the encoder (see
            ``TrainsEncoder``).
        open_vocabulary: Whether the method accepts new labels without another fit.
        recipe: Default training settings.
        image_size: Height and width in pixels at which the whole image is encoded. If None, the
            default size of the encoder is used.
        max_views: Largest number of views of an image in all layouts of ``next_views`` together.
            If the method uses no views, the number is 0.
    """

    learns_from: ClassVar[LearnsFrom]
    needs: tuple[str, ...]
    open_vocabulary: bool
    recipe: ClassVar[TrainingRecipe]
    image_size: int | None = None
    max_views: int = 0

    @abstractmethod
    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of n images for c labels."""

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether labels that are added after the fit change the scores of other labels.

        If True, ``Recognizer.with_names`` drops the calibration. An open-vocabulary method whose
        scores compare the labels with each other overrides this property.
        """
        return False

    @classmethod
    def settings_in_run(cls, *, uses_training_loop: bool) -> dict[str, Any]:
        """Return the values of the settings that a run always states, also if they are defaults.

        A saved recognizer therefore does not depend on the defaults of a version. Settings that the
        user sets replace these values.

        Args:
            uses_training_loop: Whether the run contains a setting of the training loop, a
                regularizer or a loss of ``SET_LOSSES``.
        """
        return {}

    if TYPE_CHECKING:  # the types of ``forward``; those of nn.Module are unspecified

        def __call__(self, features: Features) -> Tensor: ...


@runtime_checkable
class LearnsFromTargets(Protocol):
    """Describe a method that is trained by gradient descent on targets of images or texts."""

    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Set initial values, so that training starts with approximately calibrated scores.

        ``Recognizer.fit`` calls ``initialize`` once, before the first training step.

        Args:
            features: Features of n training images, or of n training texts.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.
            link: Link of the loss; its method ``scores`` converts log-odds to scores.
        """


@runtime_checkable
class SelectsPenalties(Protocol):
    """Describe a method with linear heads, whose L2 penalties can be chosen by cross-validation.

    Each label has one head. If ``penalty_folds`` is above 0, ``Recognizer.fit`` uses the members
    instead of the training loop. The loss must then be elementwise, and a regularizer raises an
    error.

    Attributes:
        penalty_folds: Number of cross-validation folds by which the penalties are chosen. If 0, the
            training loop is used.
        penalties: Penalty of each label, ``(c,)``, which is 0 before the fit. If ``penalty_folds``
            is 0, the value is None.
    """

    penalty_folds: int
    penalties: Tensor | None

    def centred_vectors(self, features: Features) -> Tensor:
        """Return the vectors of n images that the heads are applied to, ``(n, d)``."""

    def set_heads(self, weights: Tensor, biases: Tensor, penalties: Tensor) -> None:
        """Set weight vectors ``(c, d)``, biases ``(c,)`` and penalties ``(c,)`` of the labels."""


@runtime_checkable
class FitsTargets(Protocol):
    """Describe a method that is fitted on targets without gradients, and whose scores are logits.

    The value of ``learns_from`` is ``labels``. The method is fitted without the training loop, and
    supports neither a loss other than ``binary`` nor a regularizer. Model selection compares such a
    method only on precomputed vectors.
    """

    def fit_targets(self, features: Features, targets: Tensor, known: Tensor, seed: int) -> None:
        """Fit the method from scratch, independently of an earlier fit.

        Args:
            features: Features of n training images.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.
            seed: Seed of all random numbers.
        """

    def expected_fit_seconds(
        self, features: Features, targets: Tensor, known: Tensor, seed: int
    ) -> float:
        """Return the expected time of ``fit_targets`` in seconds, estimated from a part of the fit.

        The arguments are those of ``fit_targets``. The method is not changed.
        """


@runtime_checkable
class ScoresPairs(Protocol):
    """Describe a method that scores pairs of an image and a sentence.

    All methods that learn from pairs must have these members. In shapes, n is the number of images,
    and s is the number of sentences.
    """

    def pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the score of each image with each sentence, ``(n, s)``, without sampling.

        Args:
            images: Features of n images.
            texts: Features of s sentences; ``patches`` are the vectors of their tokens, or None if
                only the vectors of the sentences are known.
        """

    def training_pair_scores(self, images: Features, texts: Features) -> Tensor:
        """Return the scores from which the loss is computed, ``(n, s)``; they may be sampled.

        The training loop calls ``training_pair_scores`` in each step.

        Args:
            images: Features of n images.
            texts: Features of s sentences.
        """


@runtime_checkable
class AddsTrainingLosses(Protocol):
    """Describe a method with loss terms of internal quantities, such as a latent variance."""

    def training_losses(self, targets: Tensor, known: Tensor) -> Tensor:
        """Return the weighted sum of the additional loss terms of the last forward pass, a scalar.

        The training loop adds the value to the loss of each step, like the value of a regularizer.

        Args:
            targets: Targets in [0, 1] of the last forward pass, ``(n, c)``, or ``(n, s)`` for pairs
                of n images and s sentences.
            known: True where the target is known, with the shape of ``targets``.
        """


@runtime_checkable
class EstimatesUncertainty(Protocol):
    """Describe a method with learned uncertainties of labels; see ``Recognizer.predict``."""

    def residual_errors(self, features: Features) -> Tensor:
        """Return the expected squared error of each probability, ``(n, c)``, in [0, 1]."""

    def match_variances(self, features: Features) -> Tensor:
        """Return the variance of the latent similarity, ``(n, c)``, above 0.

        A lower variance means a more reliable match. Only accepted labels can be compared.
        """


@runtime_checkable
class EstimatesPairUncertainty(Protocol):
    """Describe a method with learned uncertainties of pairs of an image and a sentence."""

    def pair_variances(self, images: Features, texts: Features) -> Tensor:
        """Return the variance of the latent similarity of each pair, ``(n, s)``, above 0.

        Args:
            images: Features of n images.
            texts: Features of s sentences.
        """


@runtime_checkable
class LearnsFromImages(Protocol):
    """Describe a method that is fitted on unlabelled images without gradients."""

    def fit_unlabelled(self, features: Features) -> None:
        """Fit the method on the features of unlabelled images.

        ``Recognizer.fit`` calls ``fit_unlabelled``, and self-training calls it if the method is the
        teacher.
        """


@runtime_checkable
class HasModelLink(Protocol):
    """Describe a method without a fit, whose scores can be converted to log-odds of the encoder.

    Attributes:
        model_link: Link of the scores to the log-odds of the encoder, or None. With a link, the
            recognizer returns probabilities before any calibration.
    """

    model_link: Link | None


@runtime_checkable
class UsesViews(Protocol):
    """Describe a method that also scores views of an image; its ``needs`` contain ``views``."""

    def next_views(self, features: Features) -> ViewLayout | Sequence[ViewLayout | None] | None:
        """Return the views that are encoded next, or None if no further views are needed.

        Feature extraction calls ``next_views`` until the result is None.

        Args:
            features: Features of n images, with the vectors of all earlier views in ``views``, in
                the order of the layouts, encoded at the default size of the encoder.

        Returns:
            One layout for all images, or one layout (or None) per image.
        """

    def view_scores(self, features: Features) -> Tensor:
        """Return the scores of the whole image and of its views, ``(n, 1 + t, c)``.

        Self-training calls ``view_scores`` if the method is the teacher.
        """


@runtime_checkable
class LocalizesLabels(Protocol):
    """Describe a method with heat maps.

    All methods that need patches or layers must have heat maps. Methods without heat maps score the
    patches of the frozen encoder like images.
    """

    def heat_maps(self, features: Features) -> Tensor:
        """Return the score of each label in each region, ``(n, c, down, across)``.

        ``Recognizer.localize`` and ``localize_labels`` call ``heat_maps``.
        """


@runtime_checkable
class MatchesRegions(Protocol):
    """Describe a method that matches regions to labels; localization also returns its maps."""

    def presence_maps(self, features: Features) -> Tensor:
        """Return the weight of each region in the score of the image, ``(n, down, across)``."""

    def similarity_maps(self, features: Features) -> Tensor:
        """Return the cosines of regions with each label, ``(n, c, down, across)``."""


@runtime_checkable
class UsesLadder(Protocol):
    """Describe a method that runs the last blocks again; its ``needs`` contain ``ladder``.

    Feature extraction passes ``ladder_blocks`` to ``Encoder.encode_ladder_features``. If the method
    learns from pairs, sentences are encoded by ``Encoder.encode_sentence_block_tokens`` with the
    same number of blocks.

    Attributes:
        ladder_blocks: Index of the first block in the sum of self-aware attention, and number of
            blocks that the method runs again.
    """

    ladder_blocks: tuple[int, int]


@runtime_checkable
class UsesFitLabels(Protocol):
    """Describe an open-vocabulary method that needs the labels of the fit to score other labels.

    Attributes:
        fit_names: Labels of the fit. Before ``use_fit_labels`` is called, the labels of the method.
    """

    fit_names: list[str]

    def use_fit_labels(self, encoder: Encoder, names: Sequence[str]) -> None:
        """Set the labels of the fit, after the weights of the fit were loaded.

        ``Recognizer.with_names`` and ``Recognizer.load`` call ``use_fit_labels``.
        """


@runtime_checkable
class TrainsEncoder(Protocol):
    """Describe a method that trains the image network on pixels; its ``needs`` contain ``pixels``.

    ``Recognizer.fit`` calls both functions: ``frozen_feature_head`` before the network is trained,
    and ``finetuned_encoder`` afterwards.
    """

    def frozen_feature_head(self) -> Method:
        """Return the head, which is first fitted on features of the unchanged network."""

    def finetuned_encoder(self) -> Encoder:
        """Return the encoder with the trained network."""


@runtime_checkable
class TrainsSeveralHeads(Protocol):
    """Describe a method that is trained on scores other than those of ``forward``."""

    def training_scores(self, features: Features, targets: Tensor, known: Tensor) -> Tensor:
        """Return the scores of h heads, ``(h, n, c)``; the loss is the mean over the heads.

        The training loop calls ``training_scores`` in each step.

        Args:
            features: Features of n images.
            targets: Targets in [0, 1], ``(n, c)``, for c labels.
            known: True where the target is known, ``(n, c)``.
        """


@runtime_checkable
class TunesTexts(Protocol):
    """Describe a method with learned prompts in the text tower.

    Regularizers and calibrators compare the text vectors with those of the frozen text tower.
    """

    def tuned_texts(self) -> Tensor:
        """Return unit vectors of the labels from the learned prompts, ``(c, d)``.

        In training, the vectors are those of the last forward pass, with gradients.
        """

    def encode_words(self, words: Sequence[str]) -> Tensor:
        """Return unit vectors of k words from the learned prompts, ``(k, d)``.

        Raises:
            ConfigError: If the prompts exist only for the labels of the fit.
        """


@runtime_checkable
class ScalesLearningRates(Protocol):
    """Describe a method whose modules have different learning rates in the training loop.

    Attributes:
        learning_rate_scales: Factors of the learning rate by module path, such as
            ``decoder.layers``. The factor of all other modules is 1.
    """

    learning_rate_scales: Mapping[str, float]


REQUIRED_MEMBERS = ("learns_from", "needs", "open_vocabulary", "recipe")
MEMBERS_OF_NEED: dict[str, tuple[str, ...]] = {  # members that a method with this need must define
    "views": ("next_views", "view_scores"),
    "pixels": ("frozen_feature_head", "finetuned_encoder"),
    **dict.fromkeys(
        ("patches", "self_aware", "attention", "multi_layer", "trunk", "ladder"), ("heat_maps",)
    ),
}


def copy_method_fit(fitted: Method, method: Method, encoder: Encoder) -> None:
    """Copy the fit of a method to a new method with other labels.

    Args:
        fitted: Open-vocabulary method.
        method: New method with the same settings and other labels, changed in place.
        encoder: Encoder of both methods.
    """
    method.load_state_dict(fitted.state_dict())
    if isinstance(fitted, UsesFitLabels) and isinstance(method, UsesFitLabels):
        method.use_fit_labels(encoder, fitted.fit_names)


def method_is_student(method: type[Method]) -> bool:
    """Return whether a method is trained on unlabelled images with targets from a teacher."""
    return method.learns_from == "images" and not issubclass(method, LearnsFromImages)


def check_method_contract(name: str, method: object) -> None:
    """Check that an entry of ``METHODS`` has all members that its use requires.

    Args:
        name: Key of the entry.
        method: The entry.

    Raises:
        ConfigError: If the entry is not a subclass of ``Method``, a member is missing, or
            ``learns_from`` or ``needs`` has an unknown value.
    """
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise ConfigError(
            f"Method {name} must be a subclass of surelabel.methods.Method; got {method!r}. "
            f"See {CONTRACT_PAGE}."
        )
    _check_method_members(name, method, REQUIRED_MEMBERS)
    if method.learns_from not in get_args(LearnsFrom):
        raise ConfigError(
            f'learns_from of method {name} must be "labels", "images", "texts", "pairs" or '
            f'"nothing"; got {method.learns_from!r}. See {CONTRACT_PAGE}.'
        )
    known_needs = list(MEMBERS_OF_NEED)
    if not isinstance(method.needs, tuple) or any(n not in known_needs for n in method.needs):
        raise ConfigError(
            f"needs of method {name}, class {method.__qualname__}, must be a tuple with values "
            f"among {', '.join(known_needs)}; got {method.needs!r}. See {CONTRACT_PAGE}."
        )
    members = {member for need in method.needs for member in MEMBERS_OF_NEED[need]}
    if issubclass(method, FitsTargets) and method.learns_from == "labels":
        members |= {"fit_targets", "expected_fit_seconds"}
    elif method.learns_from in ("labels", "texts") or method_is_student(method):
        members.add("initialize")
    if method.learns_from == "pairs":
        members |= {"pair_scores", "training_pair_scores"}
    _check_method_members(name, method, ["forward", *sorted(members)])


def _check_method_members(name: str, method: type[Method], members: Sequence[str]) -> None:
    missing = [
        member
        for member in members
        if member not in dir(method) or member in method.__abstractmethods__
    ]
    if missing:
        raise ConfigError(
            f"Method {name} must define {', '.join(missing)}; its class {method.__qualname__} does "
            f"not. See {CONTRACT_PAGE}."
        )


def score_patches_with_any_method(method: Method, features: Features) -> Tensor:
    """Return the scores of patches, ``(n, p, c)``; each patch is scored like an image.

    Args:
        method: Fitted method that needs only ``pooled``.
        features: Features of n images with ``patches``, ``(n, p, d)``.
    """
    assert features.patches is not None
    n, p, _ = features.patches.shape
    return method(Features(pooled=features.patches.flatten(0, 1))).view(n, p, -1)


def score_pairs_with_any_method(method: Method, images: Features, texts: Features) -> Tensor:
    """Return the similarity of each image and sentence, ``(n, s)``.

    If the method does not score pairs, the similarities are the cosines of the encoder.

    Args:
        method: Fitted method.
        images: Features of n images. If the method does not score pairs, only ``pooled`` is used.
        texts: Features of s sentences.
    """
    if isinstance(method, ScoresPairs):
        return method.pair_scores(images, texts)
    return images.pooled @ texts.pooled.T


def pair_variances_with_any_method(
    method: Method, images: Features, texts: Features
) -> Tensor | None:
    """Return the variance of each similarity, ``(n, s)``, or None if the method estimates none."""
    if isinstance(method, EstimatesPairUncertainty):
        return method.pair_variances(images, texts)
    return None
