"""Define the regularizers, functions ``regularizer(step, *, settings)`` that return a scalar.

The training loop multiplies the scalar by a weight and adds the product to the loss. To add a
regularizer, add one line to the table ``REGULARIZERS``. If its default weight is not 1, also add
the weight to ``DEFAULT_WEIGHTS``.
"""

from collections.abc import Callable

from torch import Tensor

from surelabel.regularizers.class_correlation import class_correlation
from surelabel.regularizers.class_covariance import class_covariance
from surelabel.regularizers.class_covariance_of_logits import class_covariance_of_logits
from surelabel.regularizers.class_covariance_of_softmax import class_covariance_of_softmax
from surelabel.regularizers.class_covariance_pairwise import class_covariance_pairwise
from surelabel.regularizers.class_covariance_shuffled import class_covariance_shuffled
from surelabel.regularizers.class_second_moment import class_second_moment
from surelabel.regularizers.knowledge import knowledge
from surelabel.regularizers.label_pair import label_pair
from surelabel.regularizers.label_pair_on_grid import label_pair_on_grid
from surelabel.regularizers.label_pair_sampled import label_pair_sampled
from surelabel.regularizers.label_smoothing import label_smoothing
from surelabel.regularizers.mdca import mdca
from surelabel.regularizers.outlier import outlier

REGULARIZERS: dict[str, Callable[..., Tensor]] = {
    "class_correlation": class_correlation,
    "class_covariance": class_covariance,
    "class_covariance_of_logits": class_covariance_of_logits,
    "class_covariance_of_softmax": class_covariance_of_softmax,
    "class_covariance_pairwise": class_covariance_pairwise,
    "class_covariance_shuffled": class_covariance_shuffled,
    "class_second_moment": class_second_moment,
    "knowledge": knowledge,
    "label_pair": label_pair,
    "label_pair_on_grid": label_pair_on_grid,
    "label_pair_sampled": label_pair_sampled,
    "label_smoothing": label_smoothing,
    "mdca": mdca,
    "outlier": outlier,
}
DEFAULT_WEIGHTS: dict[str, float] = {  # default weights (lambda) other than 1
    "class_correlation": 0.1,
    "class_covariance": 0.1,
    "class_covariance_of_logits": 0.1,
    "class_covariance_of_softmax": 0.1,
    "class_covariance_pairwise": 0.1,
    "class_covariance_shuffled": 0.1,
    "class_second_moment": 0.1,
    "knowledge": 8.0,
    "label_smoothing": 0.05,
    "mdca": 0.1,
    "outlier": 2.0,
}

__all__ = [
    "DEFAULT_WEIGHTS",
    "REGULARIZERS",
    "class_correlation",
    "class_covariance",
    "class_covariance_of_logits",
    "class_covariance_of_softmax",
    "class_covariance_pairwise",
    "class_covariance_shuffled",
    "class_second_moment",
    "knowledge",
    "label_pair",
    "label_pair_on_grid",
    "label_pair_sampled",
    "label_smoothing",
    "mdca",
    "outlier",
]
