"""Regularizers for training, called as ``regularizer(step, *, settings)``, with a scalar result.

The training loop multiplies the result by a weight and adds the product to the loss. To add a
regularizer, add one line to the table ``REGULARIZERS``.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.regularizers.class_correlation import class_correlation
from surelabel.regularizers.class_covariance import class_covariance
from surelabel.regularizers.class_covariance_of_logits import class_covariance_of_logits
from surelabel.regularizers.class_covariance_pairwise import class_covariance_pairwise
from surelabel.regularizers.class_second_moment import class_second_moment
from surelabel.regularizers.knowledge import knowledge
from surelabel.regularizers.label_pair import label_pair
from surelabel.regularizers.label_pair_on_grid import label_pair_on_grid
from surelabel.regularizers.label_pair_sampled import label_pair_sampled
from surelabel.regularizers.mdca import mdca

REGULARIZERS: dict[str, Callable[..., Tensor]] = {
    "class_correlation": class_correlation,
    "class_covariance": class_covariance,
    "class_covariance_of_logits": class_covariance_of_logits,
    "class_covariance_pairwise": class_covariance_pairwise,
    "class_second_moment": class_second_moment,
    "knowledge": knowledge,
    "label_pair": label_pair,
    "label_pair_on_grid": label_pair_on_grid,
    "label_pair_sampled": label_pair_sampled,
    "mdca": mdca,
}

__all__ = [
    "REGULARIZERS",
    "class_correlation",
    "class_covariance",
    "class_covariance_of_logits",
    "class_covariance_pairwise",
    "class_second_moment",
    "knowledge",
    "label_pair",
    "label_pair_on_grid",
    "label_pair_sampled",
    "mdca",
]
