import numpy as np
import pytest

from surelabel.retrieval.file_state import file_state_table
from surelabel.retrieval.shard_rows import ShardRows


@pytest.fixture
def batch():
    """Return a function that generates rows of a shard, of images without files."""

    def generate(n, c=3, *, start=0):
        random = np.random.default_rng(start)
        logits, scores = random.standard_normal((2, c, n)).astype(np.float32)
        table = file_state_table([f"/nowhere/{start + row}.jpg" for row in range(n)])
        features = random.standard_normal((n, 4)).astype(np.float16)
        return ShardRows.from_arrays(table, logits, scores, features)

    return generate
