import numpy as np

from surelabel.bench.open_vocabulary.fitted_rows import FittedPredictions
from surelabel.bench.open_vocabulary.rows import SeedMetrics, open_vocabulary_row


def test_a_row_has_the_time_of_each_seed_and_the_parameters_of_one():
    nothing = np.zeros((0, 0))
    predictions = [FittedPredictions(nothing, nothing, 7, seconds) for seconds in (2.5, 1.5)]
    metrics = SeedMetrics(predictions, {"zsl_map": [0.1, 0.2]}, {})
    row = open_vocabulary_row("a row", metrics, metrics)
    assert (row.seconds, row.parameters) == ([2.5, 1.5], 7)
