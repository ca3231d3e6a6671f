"""Deep text prompts: label vectors with learned prompts in the last layers of a text tower."""

from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.encoders.prompts.templates import check_templates
from surelabel.encoders.towers.causal_text_tower import causal_text_tower
from surelabel.encoders.towers.prompt_tokens import prompts_per_layer
from surelabel.errors import ConfigError

TEXT_BATCH = 256


class DeepPromptTextEncoder:
    """Encoder of a fixed set of labels with deep prompts in a frozen text tower.

        [w_0, _, W_l] = layer_l([w_0, p_l, W_(l-1)])    for the last ``depth`` layers

    with w_0 the start token and W the other tokens of a sentence. Prompts are inserted after the
    start token. Each layer has its own prompts, and their outputs are dropped. Positions of the
    other tokens do not change. Attention is causal, so all tokens after the last end token are
    cut off without effect. The lower layers run once, in the constructor.

    It is not an ``nn.Module``, so the weights of the tower are not in the state dict of its
    owner. A deep copy returns the same object. Gradients are recorded only if the prompts need
    them.

    Args:
        model: An open_clip model with a causal text tower that pools the end token.
        tokenizer: Function from sentences to token ids, ``(s, length)``.
        names: The labels; ``sofa|couch`` are two spellings of one label.
        templates: Prompt templates with one ``{}``.
        depth: Number of last layers with prompts; a larger number than that of all layers means
            all layers.

    Raises:
        ConfigError: If the text tower is of another kind, ``depth`` is not an integer of 1 or
            more, or a template does not contain exactly one ``{}``.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.1; the place of the prompts, by
        the authors' code.

    Differs:
        The authors truncate the input of a layer to the context length. In a sentence of full
        length this drops the end token, and the prompts have no effect. Here it is never dropped.
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
        self.depth, self.width = _check_prompt_depth(depth, layers), int(tower.transformer.width)
        self._layers = layers[-self.depth :]
        spellings = [name.split("|") for name in names]
        sentences = _fill_templates(spellings, templates)
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
        """Return the input of the first prompted layer, ``(s, k, w)``, and end positions."""
        ends = self._tower.end_positions(tokens)
        hidden = self._tower.embed_tokens(tokens[:, : int(ends.max()) + 1])
        for layer in layers:
            hidden = layer(hidden, attn_mask=_causal_mask(hidden))
        return hidden, ends

    def encode(self, prompts: Tensor | None = None) -> Tensor:
        """Return one vector per label, ``(c, d)``, without normalization.

        A label with one sentence has the vector of this sentence. For a label with several
        sentences, the direction is the mean of unit vectors over templates, then over spellings,
        and the length is the mean length.

        Args:
            prompts: Prompts of each layer, ``(depth, m, w)``, or None for no prompts.

        Raises:
            InputError: If ``prompts`` has another shape.
        """
        layer_prompts = prompts_per_layer(prompts, depth=self.depth, width=self.width)
        vectors = torch.cat([self._run_last_layers(*b, layer_prompts) for b in self._batches])
        return self._average_sentences(vectors[self._inverse_order])

    def _run_last_layers(
        self, hidden: Tensor, ends: Tensor, layer_prompts: Sequence[Tensor | None]
    ) -> Tensor:
        """Return sentence vectors ``(s, d)`` from the input of the first prompted layer."""
        *lower, last = zip(self._layers, layer_prompts, strict=True)
        for layer, prompt in lower:
            hidden = _run_prompted_layer(layer, hidden, prompt)
        return self._tower.project(_run_last_layer_at_ends(*last, hidden, ends))

    def _average_sentences(self, vectors: Tensor) -> Tensor:
        """Return label vectors ``(c, d)`` from the vectors of their sentences ``(s, d)``."""
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


def _check_prompt_depth(depth: int, layers: Sequence[nn.Module]) -> int:
    if not isinstance(depth, int) or depth < 1:
        raise ConfigError(f"depth must be a number of layers, 1 or more; got {depth!r}.")
    return min(depth, len(layers))


def _fill_templates(spellings: Sequence[Sequence[str]], templates: Sequence[str]) -> list[str]:
    """Return one sentence for each label, spelling and template, in this order."""
    check_templates(tuple(templates))
    flat = [spelling.strip() for group in spellings for spelling in group]
    return [template.replace("{}", spelling) for spelling in flat for template in templates]


def _causal_mask(tokens: Tensor) -> Tensor:
    """Return the additive mask of causal attention, ``(k, k)``."""
    k = tokens.shape[1]
    return torch.full((k, k), -torch.inf, dtype=tokens.dtype, device=tokens.device).triu(1)


def _insert_prompts(hidden: Tensor, prompt: Tensor | None) -> Tensor:
    """Insert prompts ``(m, w)`` after the start token of ``(s, k, w)``: ``(s, k + m, w)``."""
    if prompt is None:
        return hidden
    return torch.cat([hidden[:, :1], prompt.expand(len(hidden), -1, -1), hidden[:, 1:]], dim=1)


def _run_prompted_layer(layer: Any, hidden: Tensor, prompt: Tensor | None) -> Tensor:
    """Run a layer with prompts, and drop the outputs at the prompts."""
    prompted = _insert_prompts(hidden, prompt)
    n_prompts = prompted.shape[1] - hidden.shape[1]
    output = layer(prompted, attn_mask=_causal_mask(prompted))
    return torch.cat([output[:, :1], output[:, 1 + n_prompts :]], dim=1) if n_prompts else output


def _run_last_layer_at_ends(
    layer: Any, prompt: Tensor | None, hidden: Tensor, ends: Tensor
) -> Tensor:
    """Run the last layer with prompts for the end tokens only, ``(s, w)``."""
    prompted = _insert_prompts(hidden, prompt)
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
