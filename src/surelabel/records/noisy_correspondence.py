"""Simulate noisy correspondence: assign captions to wrong images at random."""

import numpy as np

from surelabel.errors import InputError
from surelabel.records.relevance import RowIndices


def noisy_caption_rows(n_captions: int, ratio: float, *, seed: int) -> RowIndices:
    """Return the row of the caption that replaces each caption in noisy correspondence.

    A random subset of ``floor(ratio * n_captions)`` captions is permuted at random. The permutation
    can map a caption to itself, or to another caption of the same image. Therefore, at most the
    fraction ``ratio`` of the captions has a wrong image. All other captions are unchanged.

    Args:
        n_captions: Number of captions s.
        ratio: Fraction of the captions that are permuted, in [0, 1].
        seed: Seed of the permutation, in [0, 2**32).

    Returns:
        Row of the new caption for each old caption, a permutation of 0 to s - 1, ``(s,)``.

    Raises:
        InputError: If ``ratio`` or ``seed`` is out of range.

    Source:
        Huang et al., Learning with Noisy Correspondence for Cross-modal Matching, NeurIPS 2021.

    Differs:
        The original permutes images; here, captions are permuted, as in the released code of PCME++
        (Chun, ICLR 2024, arXiv:2305.18171), with the same random numbers for the same seed.
    """
    if not 0 <= ratio <= 1:
        raise InputError(f"The ratio of noisy captions must be in [0, 1]; got {ratio}.")
    if not 0 <= seed < 2**32:
        raise InputError(f"The seed must be at least 0 and below 2**32; got {seed}.")
    random = np.random.RandomState(seed)
    rows = np.arange(n_captions)
    selected = np.flatnonzero(random.permutation(n_captions) < int(ratio * n_captions))
    rows[selected] = random.permutation(selected)
    return rows
