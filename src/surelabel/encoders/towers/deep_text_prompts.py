"""Encode labels with learned prompts in the last layers of a text tower."""

from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders.prompts.templates import check_prompt_templates
from surelabel.encoders.towers.prompt_tokens import prompt_tokens_per_layer
from surelabel.encoders.towers.text_tower import causal_attention_mask, causal_text_tower
from surelabel.errors import ConfigError
from surelabel.label_aliases import split_label_aliases

TEXT_BATCH = 256


class DeepPromptTextEncoder:
    """Encoder of a fixed set of labels with deep prompts in the layers of a frozen text tower.

        [h_l, _, W_l] = layer_l([h_(l-1), P_l, W_(l-1)])    for the last ``depth`` layers

    where h_l is the output of layer l at the start token, and P_l are the prompts of layer l. W_l
    are the outputs of layer l at the other tokens of a sentence. Prompts are learned vectors, which
    are inserted after the start token. Each layer has separate prompts, and the outputs at the
    prompts are dropped. The position embeddings of the other tokens do not change. Attention is
    causal, so removing all tokens after the last end token has no effect. The constructor runs the
    lower layers once.

    The encoder is not an ``nn.Module``, so a module that contains the encoder does not save the
    weights of the tower. A deep copy returns the same object. Gradients are recorded only if the
    prompts require gradients.

    Args:
        model: Model of open_clip with a causal text tower that pools the end token.
        tokenizer: Function that converts ``s`` sentences to token ids ``(s, k)``, where ``k`` is
            the context length.
        names: The labels. Different spellings of a label are separated by ``|``, such as
            ``sofa|couch``.
        templates: Prompt templates, each with one ``{}``.
        depth: Number of last layers with prompts, 1 or more. If ``depth`` exceeds the number of
            layers, all layers have prompts.

    Raises:
        ConfigError: If the text tower is not a causal tower that pools the end token, ``depth`` is
            not an integer >= 1, or a template does not contain exactly one ``{}``.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.1. The position of the prompts
        is taken from the authors' code.

    Differs:
        The authors truncate the input of a layer to the context length. If the sentence has as many
        tokens as the context length, the truncation drops the end token, so that the prompts have
        no effect. Here the end token is never dropped.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        names: Sequence[str],
        templates: Sequence[str],
        *,
        depth: int,
    ):
        self._tower = tower = causal_text_tower(model)
        layers = list(tower.transformer.resblocks)
        self.depth, self.width = (
            _check_deep_prompt_depth(depth, layers),
            int(tower.transformer.width),
        )
        self._layers = layers[-self.depth :]
        spellings = [split_label_aliases(name) for name in names]
        sentences = _deep_prompt_sentences(spellings, templates)
        tokens = tokenizer(sentences).to(tower.positional_embedding.device)
        self._n_spellings = torch.tensor([len(group) for group in spellings])
        self._n_templates = len(templates)
        order = tower.end_positions(tokens).argsort(stable=True)  # batches of similar length
        self._inverse_order = order.argsort()
        batches = tokens[order].split(TEXT_BATCH)
        self._batches = [self._run_lower_layers(batch, layers[: -self.depth]) for batch in batches]

    @torch.no_grad()
    def _run_lower_layers(
        self, tokens: Tensor, layers: Sequence[nn.Module]
    ) -> tuple[Tensor, Tensor]:
        """Return the input of the first layer with prompts, and the positions of the end tokens."""
        ends = self._tower.end_positions(tokens)
        hidden = self._tower.embed_tokens(tokens[:, : int(ends.max()) + 1])
        for layer in layers:
            hidden = layer(hidden, attn_mask=causal_attention_mask(hidden))
        return hidden, ends

    def encode(self, prompts: Tensor | None = None) -> Tensor:
        """Return one vector for each of ``c`` labels, ``(c, d)``, without normalization.

        A label has one sentence per spelling and template. If a label has only one sentence, the
        label vector equals the sentence vector. Otherwise, the unit vectors of the sentences are
        averaged over templates and normalized, and then averaged over spellings. This mean is the
        direction of the label vector. The length of the label vector is the mean length of the
        sentence vectors.

        Args:
            prompts: The ``m`` prompts of each layer, ``(depth, m, w)``, where ``w`` is the width of
                the tower. If None, no prompts are inserted.

        Raises:
            InputError: If ``prompts`` does not have the shape ``(depth, m, w)``.
        """
        layer_prompts = prompt_tokens_per_layer(prompts, depth=self.depth, width=self.width)
        vectors = torch.cat([self._run_last_layers(*b, layer_prompts) for b in self._batches])
        return self._average_sentences(vectors[self._inverse_order])

    def _run_last_layers(
        self, hidden: Tensor, ends: Tensor, layer_prompts: Sequence[Tensor | None]
    ) -> Tensor:
        """Return sentence vectors ``(s, d)`` from the input of the first layer with prompts."""
        *lower, last = zip(self._layers, layer_prompts, strict=True)
        for layer, prompt in lower:
            hidden = _run_layer_with_deep_text_prompts(layer, hidden, prompt)
        return self._tower.project(_run_last_deep_text_prompt_layer(*last, hidden, ends))

    def _average_sentences(self, vectors: Tensor) -> Tensor:
        """Return label vectors ``(c, d)``, averaged over the sentence vectors ``(s, d)``."""
        if len(vectors) == len(self._n_spellings):
            return vectors
        lengths = vectors.norm(dim=-1).unflatten(0, (-1, self._n_templates)).mean(dim=1)
        unit = F.normalize(vectors, dim=-1).unflatten(0, (-1, self._n_templates)).mean(dim=1)
        n_spellings = self._n_spellings.to(vectors.device)
        label = torch.arange(len(n_spellings), device=vectors.device)
        label = label.repeat_interleave(n_spellings)
        direction = unit.new_zeros(len(n_spellings), unit.shape[1])
        direction = direction.index_add(0, label, F.normalize(unit, dim=-1))
        length = lengths.new_zeros(len(n_spellings)).index_add(0, label, lengths) / n_spellings
        label_vectors: Tensor = F.normalize(direction, dim=-1) * length[:, None]
        return label_vectors

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _check_deep_prompt_depth(depth: int, layers: Sequence[nn.Module]) -> int:
    if not isinstance(depth, int) or depth < 1:
        raise ConfigError(
            f"depth, the number of layers with prompts, must be 1 or more; got {depth!r}."
        )
    return min(depth, len(layers))


def _deep_prompt_sentences(
    spellings: Sequence[Sequence[str]], templates: Sequence[str]
) -> list[str]:
    """Return one sentence per spelling and template, ordered by label."""
    check_prompt_templates(tuple(templates))
    flat = [spelling.strip() for group in spellings for spelling in group]
    return [template.replace("{}", spelling) for spelling in flat for template in templates]


def _insert_deep_text_prompts(hidden: Tensor, prompt: Tensor | None) -> Tensor:
    """Insert prompts ``(m, w)`` after the start token of sentences ``(s, k, w)``."""
    if prompt is None:
        return hidden
    return torch.cat([hidden[:, :1], prompt.expand(len(hidden), -1, -1), hidden[:, 1:]], dim=1)


def _run_layer_with_deep_text_prompts(layer: Any, hidden: Tensor, prompt: Tensor | None) -> Tensor:
    """Return the output of a layer with prompts, without the outputs at the prompts."""
    prompted = _insert_deep_text_prompts(hidden, prompt)
    n_prompts = prompted.shape[1] - hidden.shape[1]
    output = layer(prompted, attn_mask=causal_attention_mask(prompted))
    return torch.cat([output[:, :1], output[:, 1 + n_prompts :]], dim=1) if n_prompts else output


def _run_last_deep_text_prompt_layer(
    layer: Any, prompt: Tensor | None, hidden: Tensor, ends: Tensor
) -> Tensor:
    """Return the output of the last layer with prompts at the end tokens, ``(s, w)``."""
    prompted = _insert_deep_text_prompts(hidden, prompt)
    ends = ends + prompted.shape[1] - hidden.shape[1]
    is_after_end = torch.arange(prompted.shape[1], device=hidden.device) > ends[:, None]
    end_tokens = prompted[torch.arange(len(hidden), device=hidden.device), ends][:, None]
    keys = layer.ln_1(prompted)
    attended, _ = layer.attn(
        layer.ln_1(end_tokens), keys, keys, key_padding_mask=is_after_end, need_weights=False
    )
    end_tokens = end_tokens + layer.ls_1(attended)
    output: Tensor = (end_tokens + layer.ls_2(layer.mlp(layer.ln_2(end_tokens))))[:, 0]
    return output
