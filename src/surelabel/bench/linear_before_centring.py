"""Define the settings with which comparisons fit ``linear``, without centred features."""

from surelabel.config import Choice

LINEAR_BEFORE_CENTRING = Choice("linear", {"centred": False, "penalty_folds": 0})


def choice_of_bench_method(method: str) -> Choice:
    """Return a method with its default settings, or ``linear`` without centring.

    The published tables were measured without centring and without penalties selected by folds. New
    rows of ``linear`` are fitted with the same settings, so that they are comparable.

    Args:
        method: Key of the method.

    Example:
        >>> choice_of_bench_method("linear").settings
        {'centred': False, 'penalty_folds': 0}
        >>> choice_of_bench_method("tiles").settings
        {}
    """
    return LINEAR_BEFORE_CENTRING if method == "linear" else Choice(method)
