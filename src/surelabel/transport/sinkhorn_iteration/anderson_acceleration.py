"""Accelerate Sinkhorn's iteration by Anderson's method, with arrays of numpy or torch."""

from types import ModuleType
from typing import Any

REJECTION_FACTOR = 2.0  # an extrapolation that raises the error by more than this is discarded
MAX_CORRECTION = 20.0  # nats; larger corrections could overflow the scaling factors in float32
MIN_INDEPENDENCE = 1e-6  # squared sine of the angle between two changes that are combined


class AndersonAcceleration:
    """Extrapolate the logarithms of the left scaling factors from the last two steps.

    A step of Sinkhorn's iteration changes the logarithms f of the left scaling factors to f - r.
    Here r is the logarithm of the quotient of the row sums of the plan and the weights of the
    regions. The extrapolation adds a linear combination of the last two changes of r - f. The
    coefficients minimize the distance between r and the same combination of the changes of r. The
    distance is weighted with the weights of the regions, so regions without weight have no
    influence.

    If the error of an image rises, its next step is a step of Sinkhorn's iteration, without
    extrapolation. If the error more than doubles, this step starts from the last step before the
    rise.

    Args:
        library: The module ``numpy`` or ``torch``.
        weights: Weights of the regions, ``(n, p)``.

    Source:
        Anderson, Iterative procedures for nonlinear integral equations, Journal of the ACM, 1965,
        with two previous steps and beta = 1.

    Differs:
        Anderson weights all components equally and has no safeguard against rising errors.
    """

    def __init__(self, library: ModuleType, weights: Any) -> None:
        self.library, self.weights = library, weights
        zeros, zero_sums = library.zeros_like(weights), library.zeros_like(weights[:, 0])
        self.newest = self.oldest = (zeros, zeros, zeros, zero_sums)
        self.base_residual = self.correction = zeros
        self.base_error = zero_sums + library.inf
        self.is_plain = zero_sums == 0  # whether the last step was not extrapolated
        self.has_base = False

    def next_correction(self, residual: Any, error: Any) -> tuple[Any, Any]:
        """Return the correction of the next logarithms, and a mask of the images to reset.

        Args:
            residual: Logarithm of the quotient of row sums and weights (r), in nats, ``(n, p)``.
            error: Error of the region marginal, ``(n,)``.

        Returns:
            Correction in nats, ``(n, p)``, 0 for a step of Sinkhorn's iteration, and True for each
            image whose next step starts from the last step that was not discarded, ``(n,)``.
        """
        is_rising = (error > self.base_error) & ~self.is_plain
        is_discarded = is_rising & (error > REJECTION_FACTOR * self.base_error)
        if self.has_base:
            self._append_change(residual - self.base_residual, residual - self.correction)
        self.has_base = True
        self.correction = self._extrapolate(residual)
        self.correction[is_rising] = 0
        base_residual, base_error = residual, error
        if is_discarded.any():
            base_residual = self.library.where(is_discarded[:, None], self.base_residual, residual)
            base_error = self.library.where(is_discarded, self.base_error, error)
        self.base_residual, self.base_error, self.is_plain = base_residual, base_error, is_rising
        return self.correction, is_discarded

    def _append_change(self, change: Any, step: Any) -> None:
        """Store a change of r and the change of r - f, and keep only the last two changes."""
        weighted = self.weights * change
        square = self._sums_of_products(weighted, change)
        self.oldest, self.newest = self.newest, (change, step, weighted, square)

    def _extrapolate(self, residual: Any) -> Any:
        """Return the weighted least-squares combination of the last two changes, ``(n, p)``."""
        newest, newest_step, weighted_newest, square_newest = self.newest
        _, oldest_step, weighted_oldest, square_oldest = self.oldest
        product = self._sums_of_products(weighted_oldest, newest)
        along_newest = self._sums_of_products(weighted_newest, residual)
        along_oldest = self._sums_of_products(weighted_oldest, residual)
        squares = square_newest * square_oldest
        determinant = squares - product * product
        is_independent = determinant > MIN_INDEPENDENCE * squares
        where = self.library.where
        divisor = where(is_independent, determinant, where(square_newest > 0, square_newest, 1))
        numerator = square_oldest * along_newest - product * along_oldest
        newest_factor = where(is_independent, numerator, along_newest) / divisor
        numerator = square_newest * along_oldest - product * along_newest
        oldest_factor = where(is_independent, numerator, 0) / divisor
        correction = newest_factor[:, None] * newest_step + oldest_factor[:, None] * oldest_step
        correction -= self._sums_of_products(self.weights, correction)[:, None]
        return self.library.clip(correction, -MAX_CORRECTION, MAX_CORRECTION)

    def _sums_of_products(self, first: Any, second: Any) -> Any:
        """Return the sum of the products of each row, ``(n,)``."""
        return self.library.einsum("np,np->n", first, second)
