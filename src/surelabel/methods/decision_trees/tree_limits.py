"""Limit the number of trees and the size of leaves, so that a saved recognizer stays small."""

import math

MAX_TREE_BYTES = 50_000_000  # limit of the size of all trees of a recognizer
BYTES_PER_NODE = 17  # feature, threshold, left, right: 4 each; missing_goes_left: 1
BYTES_PER_VALUE = 4
IMAGES_PER_LEAF_SHARE = 10  # the required size of a leaf is at most a tenth of the images


def limit_trees(
    n_images: int, n_values: int, n_trees: int, min_leaf_images: int
) -> tuple[int, int]:
    """Return a number of trees and a smallest leaf size with which all trees need at most 50 MB.

    A tree of n images has at most n / min_leaf_images leaves. If the trees would need f times the
    limit, the smallest leaf size is multiplied by sqrt(f) and rounded up. The number of trees is
    then the largest number within the limit, about 1 / sqrt(f) of the requested number. If not even
    one tree would be within the limit, the smallest leaf size is that with which one tree is.

    Args:
        n_images: Number of training images of a forest, or the sum over several forests.
        n_values: Number of values of a leaf.
        n_trees: Requested number of trees of a forest.
        min_leaf_images: Requested smallest number of images of a leaf.

    Example:
        >>> limit_trees(2_000, 14, 300, 2), limit_trees(200_000, 14, 300, 2)
        ((300, 2), (41, 15))
    """
    n_bytes = n_images * (2 * BYTES_PER_NODE + BYTES_PER_VALUE * n_values)
    excess = n_trees * n_bytes / min_leaf_images / MAX_TREE_BYTES
    if excess <= 1:
        return n_trees, min_leaf_images
    smallest_leaf_of_one_tree = n_bytes / MAX_TREE_BYTES
    larger_leaf = min_leaf_images * math.sqrt(excess)
    min_leaf_images = math.ceil(max(larger_leaf, smallest_leaf_of_one_tree))
    return min(n_trees, MAX_TREE_BYTES * min_leaf_images // n_bytes), min_leaf_images


def limit_boosted_trees(n_labels: int, max_leaves: int, n_trees: int) -> int:
    """Return the number of trees per label with which the trees of all labels need at most 50 MB.

    The number is at most ``n_trees``, and at least 1 even if the limit is exceeded.

    Args:
        n_labels: Number of labels.
        max_leaves: Largest number of leaves of a tree, each with one value.
        n_trees: Requested number of trees of a label.

    Example:
        >>> limit_boosted_trees(14, 16, 100), limit_boosted_trees(2_000, 16, 100)
        (100, 41)
    """
    n_bytes = n_labels * max_leaves * (2 * BYTES_PER_NODE + BYTES_PER_VALUE)
    return max(1, min(n_trees, MAX_TREE_BYTES // n_bytes))


def min_leaf_images_of_fit(min_leaf_images: int, n_images: int) -> int:
    """Return the smallest number of images of a leaf, at most a tenth of the training images.

    Args:
        min_leaf_images: Requested smallest number of images of a leaf.
        n_images: Number of training images. With fewer than 20 images, the result is 1.

    Example:
        >>> min_leaf_images_of_fit(20, 1_000), min_leaf_images_of_fit(20, 60)
        (20, 6)
    """
    return max(1, min(min_leaf_images, n_images // IMAGES_PER_LEAF_SHARE))
