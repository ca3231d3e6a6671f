"""Fit extremely randomized trees on precomputed vectors, such as tables of measurements."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from surelabel.arrays import Array, Flags
from surelabel.encoders import Encoder
from surelabel.errors import ConfigError
from surelabel.methods.decision_trees.tree_ensemble import ALL_LABELS, TreeEnsemble
from surelabel.methods.decision_trees.tree_limits import limit_trees, min_leaf_images_of_fit
from surelabel.methods.decision_trees.tree_nodes import (
    TreeNodes,
    single_leaf_tree,
    tree_nodes_of_scikit_learn,
)
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.records import Features

TIMED_TREES = 5  # trees whose fit is timed
Forest = list[tuple[TreeNodes, Array]]  # nodes of each tree, and the values of its leaves


class ExtraTrees(Method):
    """Average the label frequencies in the leaves of randomized trees, and return log-odds.

        p_c   = (sum_t f_tc(x) + q_c) / (T + 1)
        score = log p_c - log(1 - p_c)

    f_tc(x) is the mean target of label c in the leaf of tree t that the vector x reaches. q_c is
    the smoothed prevalence (n_c + 1/2) / (m_c + 1) of n_c positives among m_c known targets. T is
    the number of trees of the forest.

    Images without a known target are ignored. If all targets of the other images are known, one
    forest is fitted for all labels, and each split minimizes the sum of the squared errors of all
    labels. Otherwise, each label has a forest, which is fitted on the images with a known target. A
    forest whose images have equal targets is one tree without splits. The trees need at most 50 MB;
    for many images, there are therefore fewer trees with larger leaves.

    Args:
        encoder: Encoder of the images, such as ``features:WIDTH``.
        names: Labels. Each label needs annotated images.
        n_trees: Number of trees (T) of a forest, >= 1.
        min_leaf_images: Smallest number of training images of a leaf, >= 1. A value above a tenth
            of the training images is reduced to a tenth.
        feature_share: Fraction of the features that each split compares, in (0, 1].

    Raises:
        ConfigError: If a setting is out of range.

    Source:
        Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 63, 2006.

    Differs:
        The trees are those of ``ExtraTreesRegressor`` of scikit-learn. For targets 0 and 1 they
        differ from those of ``ExtraTreesClassifier`` only if two splits are equally good, because
        the Gini impurity is twice the variance. If targets are graded, f is the mean of the graded
        targets. The prevalence has the weight of one tree without splits, so that the log-odds are
        finite. If leaves are smoothed by 0.1 to 2 images of the prevalence instead, the
        cross-validated log loss on emotions and yeast of Mulan is higher. On both datasets, leaves
        of two images and 0.3 of the features have a lower log loss than one image and sqrt(d)
        features, the defaults of the classifier.
    """

    learns_from = "labels"
    needs = ()
    open_vocabulary = False
    recipe = TrainingRecipe()

    prevalence: Tensor

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        n_trees: int = 300,
        min_leaf_images: int = 2,
        feature_share: float = 0.3,
    ):
        super().__init__()
        for name, value in (("n_trees", n_trees), ("min_leaf_images", min_leaf_images)):
            if value < 1:
                raise ConfigError(f"{name} must be 1 or more; got {value}.")
        if not 0 < feature_share <= 1:
            raise ConfigError(f"feature_share must be in (0, 1]; got {feature_share}.")
        self.n_trees, self.min_leaf_images = n_trees, min_leaf_images
        self.feature_share = feature_share
        self.trees = TreeEnsemble(encoder.width, len(names))
        self.register_buffer("prevalence", torch.full((len(names),), 0.5))

    def fit_targets(self, features: Features, targets: Tensor, known: Tensor, seed: int) -> None:
        """Fit the forests on the targets of images; see ``FitsTargets``."""
        n_positives = (targets * known).double().sum(dim=0)
        self.prevalence = ((n_positives + 0.5) / (known.sum(dim=0) + 1)).float()
        sample = _ForestSample.of_images(features, targets, known)
        n_trees, min_leaf_images = self._limited_settings(sample)
        forests = [
            (label, self._fit_forest(x, y, n_trees, min_leaf_images, seed))
            for label, x, y in sample.forests()
        ]
        self.trees.set_trees(
            [nodes for _, forest in forests for nodes, _ in forest],
            [values for _, forest in forests for _, values in forest],
            [label for label, forest in forests for _ in forest],
        )

    def expected_fit_seconds(
        self, features: Features, targets: Tensor, known: Tensor, seed: int
    ) -> float:
        """Return the expected fit time in seconds, extrapolated from the fit of a few trees."""
        sample = _ForestSample.of_images(features, targets, known)
        n_trees, min_leaf_images = self._limited_settings(sample)
        import_module("sklearn.ensemble")  # its import is not timed
        _, x, y = max(sample.forests(), key=lambda forest: len(forest[1]))
        start = time.perf_counter()
        self._fit_forest(x, y, TIMED_TREES, min_leaf_images, seed)
        return n_trees / TIMED_TREES * sample.n_forests * (time.perf_counter() - start)

    def _limited_settings(self, sample: "_ForestSample") -> tuple[int, int]:
        """Return the number of trees of a forest, and the smallest number of images of a leaf."""
        n_values = sample.y.shape[1] if sample.is_complete else 1
        min_leaf_images = min_leaf_images_of_fit(self.min_leaf_images, len(sample.x))
        return limit_trees(sample.n_forest_images, n_values, self.n_trees, min_leaf_images)

    def _fit_forest(
        self,
        x: npt.NDArray[np.float32],
        y: Array,
        n_trees: int,
        min_leaf_images: int,
        seed: int,
    ) -> list[tuple[TreeNodes, Array]]:
        """Return the nodes and the leaf values of each tree of a forest.

        If all images have equal targets, the forest is one tree without splits. If there are no
        images, the value of this tree is 1/2.
        """
        if not len(y) or (y == y[0]).all():
            return [(single_leaf_tree(), y[:1] if len(y) else np.full((1, y.shape[1]), 0.5))]
        from sklearn.ensemble import ExtraTreesRegressor

        forest = ExtraTreesRegressor(
            n_trees,
            min_samples_leaf=min_leaf_images,
            max_features=self.feature_share,
            random_state=seed,
            n_jobs=torch.get_num_threads(),
        )
        forest.fit(x, y if y.shape[1] > 1 else y[:, 0])
        return [_nodes_and_leaf_values(estimator.tree_) for estimator in forest.estimators_]

    def forward(self, features: Features) -> Tensor:
        """Return the log-odds ``(n, c)`` of ``features.pooled`` ``(n, d)``.

        Raises:
            NotFitted: If ``fit_targets`` was not called before.
        """
        prevalence = self.prevalence.double().cpu().numpy()
        p = (self.trees(features.pooled) + prevalence) / (self.trees.n_trees + 1)
        log_odds = torch.from_numpy(np.log(p) - np.log1p(-p))
        return log_odds.to(features.pooled.device, torch.float32)


@dataclass(frozen=True)
class _ForestSample:
    """Store vectors ``(n, d)``, targets and their mask ``(n, c)`` of images with known targets."""

    x: npt.NDArray[np.float32]
    y: Array
    known: Flags

    @classmethod
    def of_images(cls, features: Features, targets: Tensor, known: Tensor) -> "_ForestSample":
        x, y, is_known = (a.cpu().numpy() for a in (features.pooled, targets, known))
        rows = is_known.any(axis=1)
        return cls(x[rows], y[rows].astype(np.float64), is_known[rows])

    @property
    def is_complete(self) -> bool:
        """Return whether all targets are known, so that one forest is fitted for all labels."""
        return bool(len(self.x)) and bool(self.known.all())

    @property
    def n_forests(self) -> int:
        return 1 if self.is_complete else self.y.shape[1]

    @property
    def n_forest_images(self) -> int:
        """Return the sum of the numbers of training images of all forests."""
        return len(self.x) if self.is_complete else int(self.known.sum())

    def forests(self) -> Iterator[tuple[int, npt.NDArray[np.float32], Array]]:
        """Yield the label, the vectors and the targets of each forest."""
        if self.is_complete:
            yield ALL_LABELS, self.x, self.y
            return
        for label, rows in enumerate(self.known.T):
            yield label, self.x[rows], self.y[rows, label, None]


def _nodes_and_leaf_values(tree: Any) -> tuple[TreeNodes, Array]:
    """Return the nodes of a regression tree of scikit-learn, and the values of its leaves."""
    is_leaf = tree.children_left < 0
    nodes = tree_nodes_of_scikit_learn(
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.children_right,
        tree.missing_go_to_left,
        is_leaf,
    )
    return nodes, tree.value[is_leaf, :, 0]
