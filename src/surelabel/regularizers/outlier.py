"""Penalize learned prompts that change the texts of other words (dynamic outliers)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from surelabel.errors import ConfigError
from surelabel.label_aliases import split_label_aliases
from surelabel.records import FrozenTextVectors, TrainingStep


def outlier(
    step: TrainingStep,
    *,
    words: Sequence[str] = (),
    exclude: Sequence[str] = (),
    nearest: int = 200,
    sampled: int = 100,
) -> Tensor:
    """Penalize learned prompts that change the text vectors of words that are not labels.

        1 - mean over sampled words of cos(t_o, t⁰_o)

    In this formula, t_o is the text vector of word o from the learned prompts. t⁰_o is the text
    vector of "a photo of a o." from the frozen text tower. The words are sampled in each step from
    the words that are nearest to the labels, by the mean cosine of t⁰_o and the frozen texts of all
    labels. The sample depends on the seed of the run.

    Frozen text vectors are computed once. In each step, only the sampled words are encoded with the
    learned prompts, so the cost of a step is that of ``sampled`` more labels.

    Args:
        step: Training step of a method with learned prompts in the text tower, such as ``coop``.
        words: Words to sample from; in a run, also the path of a text file with one word per line.
            If empty, the nouns of the reference list of ``zero_shot`` that the encoder was trained
            on are used.
        exclude: Words that are never sampled, such as labels that are added after the fit. Labels
            of the fit and their synonyms are never sampled.
        nearest: Number of words that are nearest to the labels (K in the paper), >= 1.
        sampled: Number of words per step, >= 1.

    Returns:
        Scalar loss in [0, 2], ``()``, in float32 or a wider type.

    Raises:
        ConfigError: If the method has no learned prompts in the text tower, or its prompts exist
            only for the labels of the fit. The error is also raised if no word is left, or a
            setting has the wrong type or is out of range.

    Source:
        Wang, Li and Wei, Understanding and Mitigating Miscalibration in Prompt Tuning for
        Vision-Language Models, ICML 2025, arXiv:2410.02681. The weight of the paper is 8 for
        ``coop`` and 2 for other methods.

    Differs:
        The paper samples from the 5,000 nearest of all WordNet nouns. The reference list has 414
        nouns, so ``nearest`` is smaller; set ``words`` to use a longer list. The paper does not
        state the number of sampled words.

    Example:
        >>> frozen = torch.eye(3)
        >>> step = TrainingStep(
        ...     *(torch.zeros(4, 1), None, torch.zeros(4, 1), torch.ones(4, 1) > 0),
        ...     texts=frozen[:1],
        ...     encode_words=lambda words: frozen[:1].expand(2, 3),
        ...     frozen_text_vectors=FrozenTextVectors(
        ...         ["lion"], [], encode=lambda words: frozen[1:]
        ...     ),
        ... )
        >>> outlier(step, words=["tiger", "lion", "bus"])
        tensor(1.)
    """
    if step.encode_words is None or step.frozen_text_vectors is None or step.texts is None:
        raise ConfigError(
            "The regularizer outlier needs a method with learned prompts in the text tower; got a "
            "method without learned prompts. Use method.name=coop, or another regularizer."
        )
    candidates = _outlier_candidates(step.frozen_text_vectors, words, exclude)
    for setting, value in (("nearest", nearest), ("sampled", sampled)):
        if value < 1:
            raise ConfigError(f"{setting} must be 1 or more; got {value}.")
    vectors = step.frozen_text_vectors.encode(candidates)
    similarity = vectors @ step.texts.to(vectors).mean(dim=0)
    nearest_rows = similarity.topk(min(nearest, len(candidates))).indices
    rows = nearest_rows[torch.randperm(len(nearest_rows))[:sampled].to(nearest_rows.device)]
    tuned = step.encode_words([candidates[row] for row in rows.tolist()])
    return 1 - (tuned * vectors[rows].to(tuned)).sum(dim=1).mean()


def _outlier_candidates(
    frozen_text_vectors: FrozenTextVectors, words: Sequence[str], exclude: Sequence[str]
) -> tuple[str, ...]:
    """Return the words that are neither labels, synonyms of labels nor excluded, in order.

    Raises:
        ConfigError: If ``words`` or ``exclude`` is a single string, or if no word is left.
    """
    for setting, value in (("words", words), ("exclude", exclude)):
        if isinstance(value, str):
            raise ConfigError(
                f"{setting} must be a list of words; got the string {value!r}. Use [{value!r}]."
            )
    removed = {
        spelling.casefold()
        for name in (*frozen_text_vectors.labels, *exclude)
        for spelling in split_label_aliases(name)
    }
    candidates = dict.fromkeys(word.strip() for word in words or frozen_text_vectors.reference)
    left = tuple(word for word in candidates if word and word.casefold() not in removed)
    if not left:
        raise ConfigError(
            f"words must contain a word that is neither a label nor excluded; got "
            f"only labels and excluded words ({len(candidates)}). Add words."
        )
    return left
