"""Fit Gaussian densities of image vectors, for all images and for the images of each label."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp

from surelabel.arrays import Array

FOLDS = 5  # folds of the cross-fitted log densities
IMAGES_PER_COMPONENT = 4  # fewest images for each principal component
PRIOR_IMAGES = 1.0  # images at the overall mean, added to the images of each label
PRIOR_VARIANCE_IMAGES = 10.0  # images with the overall variance, for the variance in a label
MIN_VARIANCE = 0.05  # lowest variance of a component within labels; the overall variance is 1
MIN_RELATIVE_DEVIATION = 1e-3  # smaller relative deviations are noise of half-precision vectors


@dataclass(frozen=True)
class ImageDensity:
    """Gaussian densities of image vectors in the space of the first k principal components.

    Attributes:
        center: Mean vector of the images, ``(d,)``.
        projection: Matrix from centred vectors to k components of variance 1, ``(k, d)``.
        label_means: Mean of the positive images of each label, ``(c, k)``.
        label_frequencies: Fraction of the label among all positives, ``(c,)``.
        variances: Variance of each component within the labels, ``(k,)``.
    """

    center: Array
    projection: Array
    label_means: Array
    label_frequencies: Array
    variances: Array

    def __repr__(self) -> str:
        """Return the numbers of components and labels."""
        labels, components = self.label_means.shape
        return f"ImageDensity({components} components, {labels} labels)"

    def log_densities(self, vectors: Array) -> Array:
        """Return two log densities of each image, without constants, ``(n, 2)``.

        The first column is the log density of the mixture of the Gaussians of all labels. The
        second column is the log density of one Gaussian of all images.

        Args:
            vectors: Vectors of n images, ``(n, d)``.
        """
        components = (vectors - self.center) @ self.projection.T
        precisions = 1 / self.variances
        distances = (  # squared Mahalanobis distances to the label means, (n, c)
            (components**2 @ precisions)[:, None]
            - 2 * (components * precisions) @ self.label_means.T
            + self.label_means**2 @ precisions
        )
        mixture = logsumexp(np.log(self.label_frequencies) - distances / 2, axis=1)
        return np.stack([mixture, -(components**2).sum(axis=1) / 2], axis=1)


def fit_image_density(vectors: Array, targets: Array, *, components: int) -> ImageDensity:
    """Fit Gaussian densities to images with targets.

    The means and variances of the labels are shrunk towards the mean and the variance of all
    images. Therefore labels with few or no positives also have a density.

    Args:
        vectors: Vectors of n images, ``(n, d)``, n >= 1.
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        components: Maximum number of principal components, >= 1. At most one component is used for
            every four images.
    """
    center = vectors.mean(axis=0)
    projection = _whitened_principal_components(
        vectors - center, max(1, min(components, len(vectors) // IMAGES_PER_COMPONENT))
    )
    x = (vectors - center) @ projection.T
    positives = targets.sum(axis=0)
    means = (targets.T @ x) / (positives + PRIOR_IMAGES)[:, None]
    squares = (targets.T @ x**2).sum(axis=0) - positives @ means**2
    variances = (squares + PRIOR_VARIANCE_IMAGES) / (positives.sum() + PRIOR_VARIANCE_IMAGES)
    frequencies = (positives + 1) / (positives + 1).sum()
    return ImageDensity(center, projection, means, frequencies, np.maximum(variances, MIN_VARIANCE))


def _whitened_principal_components(centred: Array, count: int) -> Array:
    """Return the matrix ``(k, d)`` that maps centred vectors ``(d,)`` to components of variance 1.

    k is the smaller of ``count`` and d. Rows of components with a negligible variance are 0.
    """
    n, d = centred.shape
    first = max(d - count, 0)
    variances, directions = eigh(centred.T @ centred / n, subset_by_index=[first, d - 1])
    deviations = np.sqrt(np.maximum(variances, 0))
    is_used = deviations > MIN_RELATIVE_DEVIATION * deviations.max()
    scales = np.divide(1, deviations, out=np.zeros_like(deviations), where=is_used)
    projection: Array = (directions * scales).T
    return projection


def cross_fitted_log_densities(vectors: Array, targets: Array, *, components: int) -> Array:
    """Return the log densities of each image, fitted on other images, ``(n, 2)``.

    The log density of an image is higher if the image itself is in the fit. Cross-fitted log
    densities are comparable with the log densities of new images. The images are split into five
    random folds.

    Args:
        vectors: Vectors of n images, ``(n, d)``, n >= 2.
        targets: Targets in [0, 1], ``(n, c)``. Unknown targets are 0.
        components: Maximum number of principal components, >= 1.
    """
    fold = np.random.default_rng(0).permutation(len(vectors)) % FOLDS
    log_densities = np.empty((len(vectors), 2))
    for k in np.unique(fold):
        in_fold = fold == k
        density = fit_image_density(vectors[~in_fold], targets[~in_fold], components=components)
        log_densities[in_fold] = density.log_densities(vectors[in_fold])
    return log_densities
