"""Compute logits and variances of all image-text pairs in blocks that need limited memory."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.errors import InputError
from surelabel.methods.variational.available_memory import available_memory_bytes
from surelabel.methods.variational.folded_heads import FoldedHeads
from surelabel.shapes import check_shapes

FloatArray = npt.NDArray[np.float32]
HIDDEN_BYTES = 2**21  # hidden values that are computed at once, which fit into the cache
MEMORY_SHARE = 1 / 3  # fraction of the available memory for a block of results
MIN_CHUNK = 16


class PairBlock(NamedTuple):
    """Store the logits and log variances of b successive images with all s texts.

    Attributes:
        first_image: Index of the first image of the block.
        logits: Logits of the pairs, ``(b, s)``.
        log_variances: Mean log variances of the latent mixtures, ``(b, s)``.
    """

    first_image: int
    logits: FloatArray
    log_variances: FloatArray


class PairBlockSizes(NamedTuple):
    """Store the sizes of the blocks in which all pairs are computed.

    Attributes:
        images: Number of images of a block of results.
        chunk: Largest number of vectors whose hidden layers are computed at once, with one vector
            of the other kind.
    """

    images: int
    chunk: int


def pair_block_sizes(
    n_texts: int, heads: FoldedHeads, *, available_bytes: int | None = None
) -> PairBlockSizes:
    """Return block sizes for which the results and hidden layers fit into the available memory.

    A block of results has at most a third of the available memory: b images need
    4 · b · n_texts · r bytes for r outputs. A chunk of m hidden layers of width h needs 4 · m · h
    bytes, which are at most 2 MiB and at most a third of the available memory. A block has at
    least one image, and a chunk at least 16 vectors.

    Args:
        n_texts: Number of texts.
        heads: Folded heads with r outputs and a hidden layer of width h.
        available_bytes: Available memory in bytes. If None, the available memory of the machine is
            used.
    """
    available = available_memory_bytes() if available_bytes is None else available_bytes
    budget = int(available * MEMORY_SHARE)
    hidden_width, n_outputs = heads.vectors.shape
    images = budget // (4 * max(n_texts, 1) * n_outputs)
    chunk = min(HIDDEN_BYTES, budget) // (4 * hidden_width)
    return PairBlockSizes(max(images, 1), max(chunk, MIN_CHUNK))


def compute_pair_blocks(
    heads: FoldedHeads, images: Tensor, texts: Tensor, *, available_bytes: int | None = None
) -> Iterator[PairBlock]:
    """Yield logits and log variances of successive images with all texts.

    Only one block is in memory at a time. The caller can reduce each block, for example to the best
    texts of each image, before the next block is computed.

    Args:
        heads: Folded heads of a fitted method.
        images: Unit vectors of n images, ``(n, d)``.
        texts: Unit vectors of s texts, ``(s, d)``.
        available_bytes: Available memory in bytes, from which ``pair_block_sizes`` computes the
            sizes of the blocks. If None, the available memory of the machine is used.

    Raises:
        InputError: If the shapes do not match.
    """
    check_shapes(images=(images, "n d"), texts=(texts, "s d"), weight=(heads.weight, "h d"))
    sizes = pair_block_sizes(len(texts), heads, available_bytes=available_bytes)
    for first in range(0, len(images), sizes.images):
        outputs = folded_pair_outputs(
            heads, images[first : first + sizes.images], texts, chunk=sizes.chunk
        )
        logits, log_variances = outputs[:2].float().cpu().numpy()
        yield PairBlock(first, logits, log_variances)


def all_pair_scores(
    heads: FoldedHeads, images: Tensor, texts: Tensor, *, available_bytes: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the logits and the log variances of all pairs, ``(n, s)`` each.

    The results need 8 · n · s bytes. For larger numbers of pairs, use ``compute_pair_blocks``.

    Args:
        heads: Folded heads of a fitted method.
        images: Unit vectors of n images, ``(n, d)``.
        texts: Unit vectors of s texts, ``(s, d)``.
        available_bytes: Available memory in bytes. If None, the available memory of the machine is
            used.

    Raises:
        InputError: If the shapes do not match.
    """
    logits = np.empty((len(images), len(texts)), np.float32)
    log_variances = np.empty_like(logits)
    for block in compute_pair_blocks(heads, images, texts, available_bytes=available_bytes):
        rows = slice(block.first_image, block.first_image + len(block.logits))
        logits[rows], log_variances[rows] = block.logits, block.log_variances
    return logits, log_variances


@torch.no_grad()
def folded_pair_outputs(heads: FoldedHeads, images: Tensor, texts: Tensor, *, chunk: int) -> Tensor:
    """Return all outputs of all pairs, ``(r, n, s)``, without a tensor of shape ``(n, s, d)``.

    The hidden layer of one image with all texts is one matrix product: W (x ⊙ t) = (W diag(x)) t.
    If there are fewer texts than images, the product is computed for each text. While
    ``torch.export`` records the computation, there is one product for all pairs, because the number
    of images is not known.

    Args:
        heads: Folded heads with r outputs.
        images: Unit vectors of n images, ``(n, d)``.
        texts: Unit vectors of s texts, ``(s, d)``.
        chunk: Largest number of vectors in one matrix product, >= 1.
    """
    if torch.compiler.is_exporting():
        hidden_layers = F.linear(images[:, None] * texts, heads.weight, heads.bias).relu()
        return (hidden_layers @ heads.vectors + heads.constants).movedim(2, 0)
    if len(texts) < len(images):
        return folded_pair_outputs(heads, texts, images, chunk=chunk).transpose(1, 2)
    vectors, constants = heads.vectors.T.contiguous(), heads.constants[:, None]
    outputs = images.new_empty((len(vectors), len(images), len(texts)))
    parts = [(first, texts[first : first + chunk]) for first in range(0, len(texts), chunk)]
    for row, image in enumerate(images):
        weight = heads.weight * image
        for first, part in parts:
            hidden = F.linear(part, weight, heads.bias).relu_()
            outputs[:, row, first : first + len(part)] = vectors @ hidden.T + constants
    return outputs


def shortlist_by_cosine(images: Tensor, texts: Tensor, *, count: int) -> Tensor:
    """Return the indices of the texts with the highest cosines, best first, ``(n, count)``.

    Args:
        images: Unit vectors of n images, ``(n, d)``.
        texts: Unit vectors of s texts, ``(s, d)``.
        count: Number of texts for each image, in [1, s].

    Raises:
        InputError: If ``count`` is out of range, or if the shapes do not match.
    """
    check_shapes(images=(images, "n d"), texts=(texts, "s d"))
    if not 1 <= count <= len(texts):
        raise InputError(f"count must be in [1, {len(texts)}], the number of texts; got {count}.")
    rows = max(HIDDEN_BYTES // (4 * len(texts)), 1)
    shortlists = [(part @ texts.T).topk(count, dim=1).indices for part in images.split(rows)]
    return torch.cat(shortlists)


@torch.no_grad()
def shortlist_pair_scores(
    heads: FoldedHeads, images: Tensor, texts: Tensor, shortlist: Tensor
) -> tuple[FloatArray, FloatArray]:
    """Return the logits and the log variances of the pairs of a shortlist, ``(n, k)`` each.

    Args:
        heads: Folded heads of a fitted method.
        images: Unit vectors of n images, ``(n, d)``.
        texts: Unit vectors of s texts, ``(s, d)``.
        shortlist: Indices of k texts for each image, ``(n, k)``; see ``shortlist_by_cosine``.

    Raises:
        InputError: If the shapes do not match.
    """
    check_shapes(images=(images, "n d"), texts=(texts, "s d"), shortlist=(shortlist, "n k"))
    outputs = images.new_empty((2, *shortlist.shape))
    vectors, constants = heads.vectors[:, :2], heads.constants[:2]
    for row, (image, columns) in enumerate(zip(images, shortlist, strict=True)):
        hidden = F.linear(texts[columns], heads.weight * image, heads.bias).relu_()
        outputs[:, row] = (hidden @ vectors + constants).T
    logits, log_variances = outputs.float().cpu().numpy()
    return logits, log_variances
