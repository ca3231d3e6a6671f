"""Names as the last layers of a text tower read them, with prompts of one's own inside."""

from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from surelabel.backbones.causal_tower import causal_tower
from surelabel.backbones.prompts import for_each
from surelabel.backbones.templates import check_templates
from surelabel.errors import ConfigError

TEXTS_AT_ONCE = 256


class DeepTexts:
    """A label set, run once up to the last layers of a frozen text tower.

        [w_0, _, W_l] = layer_l([w_0, p_l, W_(l-1)])    for the last ``depth`` layers

    with w_0 the start token and W the rest of a sentence: prompts stand behind the start token,
    each layer has its own and drops what it made of them. Positions do not move. No token sees one
    behind it, so all behind the last end token is cut off without a change.

    It is no module, so that the tower's weights never become part of what holds it, and a copy of
    it is itself. Where prompts need no gradients, none are recorded.

    Args:
        model: An open_clip model with a causal text tower that is read at its end token.
        tokenizer: Turns sentences into token ids, ``(s, length)``.
        names: What to look for; ``sofa|couch`` are two spellings of one label.
        templates: Sentences with one ``{}``.
        depth: How many of the last layers take prompts; more than there are means all.

    Raises:
        ConfigError: the text tower is of another kind, ``depth`` is no number of 1 or more, or a
            template has not exactly one ``{}``.

    Source:
        Recover and Match (CVPR 2025, arXiv:2503.15337), section 4.1; where prompts stand, by the
        authors' code.

    Differs:
        The authors cut a layer's input back to the context, so in a sentence that fills it the end
        token leaves and the prompts go unheard. Here it never leaves.
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
        self._tower = tower = causal_tower(model)
        layers = list(tower.transformer.resblocks)
        self.depth, self.width = _depth(depth, layers), int(tower.transformer.width)
        self._layers = layers[-self.depth :]
        spellings = [name.split("|") for name in names]
        sentences = _sentences(spellings, templates)
        tokens = tokenizer(sentences).to(tower.positional_embedding.device)
        self._spellings = torch.tensor([len(several) for several in spellings])
        self._templates = len(templates)
        order = tower.ends(tokens).argsort(stable=True)  # sentences of one length side by side
        self._back = order.argsort()
        parts = tokens[order].split(TEXTS_AT_ONCE)
        self._parts = [self._below(some, layers[: -self.depth]) for some in parts]

    @torch.no_grad()
    def _below(self, tokens: Tensor, layers: Sequence[nn.Module]) -> tuple[Tensor, Tensor]:
        """What enters the first of the last layers, ``(s, k, w)``, and where sentences end."""
        ends = self._tower.ends(tokens)
        seen = self._tower.embedded(tokens[:, : int(ends.max()) + 1])
        for layer in layers:
            seen = layer(seen, attn_mask=_causal(seen))
        return seen, ends

    def vectors(self, prompts: Tensor | None = None) -> Tensor:
        """One vector a label, ``(c, d)``.

        A label of one sentence has its vector, not of unit length. One of several has the direction
        of the mean of unit vectors over templates, then over spellings, and their mean length.

        Args:
            prompts: What stands behind the start token in each layer, ``(depth, m, w)``.

        Raises:
            InputError: ``prompts`` have another shape.
        """
        each = for_each(prompts, depth=self.depth, width=self.width)
        vectors = torch.cat([self._read(*part, each) for part in self._parts])
        return self._of_labels(vectors[self._back])

    def _read(self, seen: Tensor, ends: Tensor, each: Sequence[Tensor | None]) -> Tensor:
        """The vectors ``(s, d)`` of sentences, of what enters the first of the last layers."""
        *lower, last = zip(self._layers, each, strict=True)
        for layer, prompt in lower:
            seen = _after(layer, seen, prompt)
        return self._tower.joint(_ending(*last, seen, ends))

    def _of_labels(self, vectors: Tensor) -> Tensor:
        """Vectors ``(c, d)`` of labels, of those of their sentences ``(s, d)``."""
        if len(vectors) == len(self._spellings):
            return vectors
        lengths = vectors.norm(dim=-1).unflatten(0, (-1, self._templates)).mean(dim=1)
        unit = F.normalize(vectors, dim=-1).unflatten(0, (-1, self._templates)).mean(dim=1)
        spellings = self._spellings.to(vectors.device)
        owner = torch.arange(len(spellings), device=vectors.device).repeat_interleave(spellings)
        summed = unit.new_zeros(len(spellings), unit.shape[1])
        summed = summed.index_add(0, owner, F.normalize(unit, dim=-1))
        length = lengths.new_zeros(len(spellings)).index_add(0, owner, lengths) / spellings
        labels: Tensor = F.normalize(summed, dim=-1) * length[:, None]
        return labels

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _depth(depth: int, layers: Sequence[nn.Module]) -> int:
    if not isinstance(depth, int) or depth < 1:
        raise ConfigError(f"depth must be a number of layers, 1 or more. Got {depth!r}.")
    return min(depth, len(layers))


def _sentences(spellings: Sequence[Sequence[str]], templates: Sequence[str]) -> list[str]:
    """One for each label, spelling and template, in this order."""
    check_templates(tuple(templates))
    flat = [one.strip() for several in spellings for one in several]
    return [template.replace("{}", one) for one in flat for template in templates]


def _causal(tokens: Tensor) -> Tensor:
    """What is added to attention so that no token sees one behind it, ``(k, k)``."""
    k = tokens.shape[1]
    return torch.full((k, k), -torch.inf, dtype=tokens.dtype, device=tokens.device).triu(1)


def _prompted(seen: Tensor, prompt: Tensor | None) -> Tensor:
    """Tokens ``(s, k, w)`` with prompts ``(m, w)`` behind their start, ``(s, k + m, w)``."""
    if prompt is None:
        return seen
    return torch.cat([seen[:, :1], prompt.expand(len(seen), -1, -1), seen[:, 1:]], dim=1)


def _after(layer: Any, seen: Tensor, prompt: Tensor | None) -> Tensor:
    """Tokens ``(s, k, w)`` after a layer with prompts, which are dropped."""
    longer = _prompted(seen, prompt)
    more = longer.shape[1] - seen.shape[1]
    after = layer(longer, attn_mask=_causal(longer))
    return torch.cat([after[:, :1], after[:, 1 + more :]], dim=1) if more else after


def _ending(layer: Any, prompt: Tensor | None, seen: Tensor, ends: Tensor) -> Tensor:
    """The end tokens ``(s, w)`` after a layer with prompts: of the last one no more is read."""
    longer = _prompted(seen, prompt)
    ends = ends + longer.shape[1] - seen.shape[1]
    behind = torch.arange(longer.shape[1], device=seen.device) > ends[:, None]
    last = longer[torch.arange(len(seen), device=seen.device), ends][:, None]
    heard = layer.ln_1(longer)
    attended, _ = layer.attn(
        layer.ln_1(last), heard, heard, key_padding_mask=behind, need_weights=False
    )
    last = last + layer.ls_1(attended)
    after: Tensor = (last + layer.ls_2(layer.mlp(layer.ln_2(last))))[:, 0]
    return after
