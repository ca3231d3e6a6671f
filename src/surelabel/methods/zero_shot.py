"""Compute zero-shot scores from label texts, without training."""

from collections.abc import Sequence

from torch import Tensor

from surelabel.encoders import Encoder
from surelabel.links import Bias
from surelabel.methods.interface import Method, TrainingRecipe
from surelabel.methods.text_scoring.text_scorer import TextScorer, text_scorer_background_words
from surelabel.records import Features


class ZeroShot(Method):
    """Score an image by its cosine with each label text, relative to a fixed reference list.

        score = tau · cos(x, t_c) - log mean_r exp(tau · cos(x, t_r))

    x is the image vector, t_c the text vector of label c, t_r the text vector of entry r of the
    reference list, and tau the scale.

    The reference list is a fixed list of common nouns in the package, and is independent of the
    labels of the user. The score of a label therefore does not change when other labels are added,
    and a single label can be scored. Score domains other than ``reference`` and ``cosine`` compare
    the labels with each other.

    Encoders that were trained with the sigmoid loss, such as SigLIP, have a bias b. For such an
    encoder, the default score is tau · cos(x, t_c), and score + b is the log-odds of the encoder
    itself.

    Args:
        encoder: Encoder of images and texts; ``encoder.scale`` is the default of ``scale``.
        names: Labels. Synonyms of one label are separated by ``|``, as in ``sofa|couch``.
        domain: Score domain; see ``TextScorer``. If None, ``cosine`` is used if the encoder has a
            bias and there are no background words; otherwise, ``reference`` is used.
        templates, background, scale: Settings of the text scores; see ``TextScorer``.

    Attributes:
        model_link: Link of the scores to log-odds by the bias of the encoder. If the encoder has no
            bias, the domain is not ``cosine``, or the scale is not that of the encoder, the value
            is None.

    Raises:
        ConfigError: If a setting is unknown or out of range; see ``TextScorer``.

    Source:
        Radford et al., Learning Transferable Visual Models From Natural Language Supervision, ICML
        2021, arXiv:2103.00020, for the prompts and tau. Zhai et al., Sigmoid Loss for Language
        Image Pre-Training, ICCV 2023, arXiv:2303.15343, for the bias. The reference term is ours;
        see docs/decisions.md.

    Differs:
        The paper computes a softmax over the labels of the user. The softmax of a label depends on
        the other labels, and is 1 for a single label.
    """

    learns_from = "nothing"
    needs = ()
    open_vocabulary = True
    recipe = TrainingRecipe()

    def __init__(
        self,
        encoder: Encoder,
        names: Sequence[str],
        *,
        templates: str | Sequence[str] = "one",
        domain: str | None = None,
        background: str | Sequence[str] = "none",
        scale: float | None = None,
    ):
        super().__init__()
        bias = encoder.logit_bias
        if domain is None:
            has_background = len(text_scorer_background_words(background)) > 0
            domain = "reference" if bias is None or has_background else "cosine"
        self.text_scorer = TextScorer(
            encoder, names, templates=templates, domain=domain, background=background, scale=scale
        )
        is_model_logit = domain == "cosine" and self.text_scorer.scale == encoder.scale
        self.model_link = Bias(bias) if is_model_logit and bias is not None else None

    @property
    def scores_depend_on_other_labels(self) -> bool:
        """Return whether labels that are added after the fit change the scores of other labels."""
        return self.text_scorer.scores_depend_on_other_labels

    def forward(self, features: Features) -> Tensor:
        """Return the scores ``(n, c)`` of ``features.pooled`` ``(n, d)``."""
        scores: Tensor = self.text_scorer(features.pooled)
        return scores
