"""Train the contexts of TaI-DPT together with a vector for each label (TaI++)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.methods.prompt_tuning.class_vectors import ClassVectors
from surelabel.methods.tai import TaI
from surelabel.records import Features

VECTOR_RATE = 10.0  # factor of the learning rate of the class vectors


class TaIPlus(TaI):
    """Learn a vector for each label beside the global and the local context of ``tai``.

        vector = tau · cos(x, v_c) - log mean_r exp(tau · cos(x, t_r))
        score  = a · ((global + vector) / 2 + local) / 2 + b

    v_c is a free vector of label c, which is initialized by its text and trained on the vectors of
    sentences. The global and the local score, x and the other symbols are those of ``tai``. A label
    that is added after the fit has no vector; its score is that of ``tai``.

    Args:
        encoder: Encoder of images and texts with patch vectors.
        names: Labels. Synonyms of one label are separated by ``|``. Other labels can be scored
            after the fit.
        initial_context: Words whose token embeddings initialize both contexts.
        context_length: Number of vectors of each context that are initialized at random, >= 1. If
            None, the contexts are initialized by ``initial_context``, or have 16 vectors each if
            ``initial_context`` is empty.
        token_scale: Inverse temperature, >= 0, of the softmax over the tokens of a sentence.
        spatial_scale: Inverse temperature, >= 0, of the softmax over the patches of an image.

    Raises:
        ConfigError: If a setting is out of range, or if the encoder has no text tower of open_clip
            or no patch vectors. Also if a context and a label together are longer than the text
            tower allows.

    Source:
        Wu et al., TAI++: Text as Image for Multi-Label Image Classification by Co-Learning
        Transferable Prompt, IJCAI 2024, arXiv:2405.06926. Free class vectors are those of the later
        code of the same group, TaAM-CPT.

    Differs:
        The code of the paper is not available. The pseudo-visual prompts of the paper are
        image-shaped tensors for the image encoder; here they are vectors in the joint space. The
        loss is ``binary``. The contrastive term and the dual adapter of the paper are left out,
        because they do not improve the mAP. The contrastive term, a symmetric cross-entropy of 100
        · cos(t_c, v_c'), is 0 from the first step, because the class vectors are initialized by the
        texts. The dual adapter was tried as two bottleneck networks with the weight 0.2, one for
        texts and one for class vectors. The mAP was measured on the validation images of scenes-80,
        after 10 epochs on at least 16 captions per label (mean of two seeds). For 40 labels of the
        fit, the mAP is 54.0 with the dual adapter and 54.1 without it (tiny-vit), and 56.3 and 56.2
        (tiny-rn). For 40 other labels, the mAP is 50.5 and 50.5 (tiny-vit), and 52.1 and 52.2
        (tiny-rn).

        On the test images of scenes-80, the mAP of 40 labels of the fit is 54.0 with tiny-vit and
        53.9 with tiny-rn; that of ``tai`` is 52.0 and 52.2.

        If only the class vectors are trained and not the contexts, the mAP on the validation images
        is 55.9 with tiny-vit and 57.6 with tiny-rn, at a learning rate of 0.005 and 20 epochs.
        Without class vectors, it is 53.8 and 55.9. At a learning rate of 0.0005, it is 55.6 and
        57.1. With ``ranking`` on 4 · cos, a learning rate of 0.05 and 10 epochs, it is 55.9 and
        57.7. With random initial vectors, it is then 55.8 and 57.8.
    """

    branch_weights = (0.25, 0.5, 0.25)  # global score, local score and score of the class vectors

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        initial_context: str = "a photo of a",
        context_length: int | None = None,
        token_scale: float = 50.0,
        spatial_scale: float = 40.0,
    ):
        super().__init__(
            encoder,
            names,
            initial_context=initial_context,
            context_length=context_length,
            token_scale=token_scale,
            spatial_scale=spatial_scale,
        )
        self.class_vectors = ClassVectors(names, self.text_scorer.texts)
        self.learning_rate_scales = {"class_vectors": VECTOR_RATE}

    @property
    def fit_names(self) -> list[str]:
        """Return the labels of the fit, which have learned vectors."""
        return self.class_vectors.fit_names

    def use_fit_labels(self, encoder: Encoder, names: Sequence[str]) -> None:
        """Set the labels of the fit, after their vectors were loaded.

        Args:
            encoder: Encoder of this method.
            names: Labels of the fit.

        Raises:
            DataError: If the number of labels differs from that of the vectors.
        """
        self.class_vectors.use_fit_labels(names)

    def _branch_scores(self, features: Features, scale: float) -> Tensor:
        """Return global, local and vector scores without scale and bias, ``(3, n, c)``."""
        branches = super()._branch_scores(features, scale)
        vectors = self.class_vectors(self.global_context.latest())
        return torch.cat([branches, self.text_scorer(features.pooled, vectors)[None]])
