"""Implement the estimator interface of scikit-learn: parameters, clones and classes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from surelabel.errors import ConfigError

if TYPE_CHECKING:
    from sklearn.utils import Tags


class ScikitLearnInterface:
    """Methods that scikit-learn calls on an estimator, such as in ``cross_val_predict``.

    A subclass passes its constructor arguments to ``_set_parameters``.

    Attributes:
        names: Labels in the order of the columns, length c.

    Source:
        scikit-learn, Developing scikit-learn estimators.

    Differs:
        ``predict`` of a recognizer returns ``Predictions`` instead of classes. The parameters are
        only the arguments of the constructor. To change a setting of the run, give another run.
        Scorers of scikit-learn, as in ``cross_val_score``, treat two classes as one binary problem.
        With exactly two labels, use ``cross_val_predict`` and compute the metric.
        ``cross_val_predict(method="predict_proba")`` encodes the values of each target column as
        0, 1, and so on. Therefore its targets must be 0 or 1, with both values in each column. For
        unknown or soft targets, split the images and call ``fit`` and ``predict_proba``.
    """

    names: Sequence[str]

    def _set_parameters(self, arguments: dict[str, Any], *, shared: dict[str, Any]) -> None:
        """Store constructor arguments, and the arguments that clones share with the original."""
        self._arguments, self._shared_arguments = arguments, shared

    @property
    def classes_(self) -> npt.NDArray[np.str_]:
        """Return the labels in the order of the columns of ``predict_proba``, ``(c,)``."""
        return np.array(self.names)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor; ``deep`` has no effect."""
        return dict(self._arguments)

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor, reset the fit, and return the recognizer.

        Raises:
            ConfigError: If a parameter is not an argument of the constructor.
        """
        unknown = sorted(params.keys() - self._arguments.keys())
        if unknown:
            raise ConfigError(
                f"Parameters must be among {', '.join(self._arguments)}; got {', '.join(unknown)}. "
                "To change a setting of the run, give another run."
            )
        self.__dict__ = self._with_arguments(self._arguments | params).__dict__
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted recognizer with the same arguments and the same frozen encoder."""
        return self._with_arguments(self._arguments)

    def _with_arguments(self, arguments: dict[str, Any]) -> Self:
        """Return an unfitted recognizer, with this encoder if its arguments do not change."""
        old, new = (
            (given["run"].encoder, given["device"], given["encoder"], given["cache"])
            for given in (self._arguments, arguments)
        )
        other = type(self)(**arguments | (self._shared_arguments if old == new else {}))
        other._arguments = dict(arguments)
        return other

    def __sklearn_tags__(self) -> "Tags":
        """Return the description of the estimator for scikit-learn."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=False, multi_output=True),
            classifier_tags=ClassifierTags(multi_class=False, multi_label=True),
            input_tags=InputTags(string=True, three_d_array=True),
            non_deterministic=False,
        )
