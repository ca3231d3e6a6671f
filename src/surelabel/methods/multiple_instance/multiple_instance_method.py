"""Define the base class of methods that pool the scores of the instances of an image."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.links import Link
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.multiple_instance.instance_scorer import InstanceScorer
from surelabel.records import Features
from surelabel.views import image_and_view_vectors


class MultipleInstanceMethod(Method):
    """Score the instances of an image with learned class embeddings, and pool the scores.

    Attributes:
        scorer: Module that contains the class embeddings and pools the scores of all instances.
    """

    learns_from = "labels"
    open_vocabulary = True
    recipe = TrainingRecipe(epochs=8, weight_decay=0.0)
    scorer: InstanceScorer

    @abstractmethod
    def instances(self, features: Features) -> Tensor:
        """Return the vectors of t instances of n images, ``(n, t, d)``."""

    @property
    def fit_names(self) -> list[str]:
        """Return the labels of the fit; those with positive images have learned parameters."""
        return self.scorer.classes.fit_names

    def use_fit_labels(self, encoder: Encoder, names: Sequence[str]) -> None:
        """Set the labels of the fit, after their parameters were loaded.

        Args:
            encoder: Encoder of this method.
            names: Labels of the fit.

        Raises:
            DataError: If the number of labels differs from that of the parameters.
        """
        self.scorer.classes.use_fit_labels(names)

    @torch.no_grad()
    def initialize(self, features: Features, targets: Tensor, known: Tensor, link: Link) -> None:
        """Initialize the shared slope and bias; see ``InstanceScorer``."""
        self.scorer.initialize(self.instances(features), targets, known, link)

    def forward(self, features: Features) -> Tensor:
        """Return the pooled scores of n images for c labels, ``(n, c)``."""
        scores: Tensor = self.scorer(self.instances(features))
        return scores

    def view_scores(self, features: Features) -> Tensor:
        """Return the scores of the whole image, then of each view, ``(n, 1 + t, c)``."""
        return self.scorer.instance_scores(image_and_view_vectors(features))

    def training_losses(self, targets: Tensor, known: Tensor) -> Tensor:
        """Return the weighted sum of squares of the learned parameters, a scalar."""
        return self.scorer.prior_loss()
