"""What a method asks to see of pictures: the whole, its patches, and parts on their own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from surelabel.backbones import Backbone
from surelabel.encoding import Encoded, Viewed, encode, encode_pictures, encode_views, ladder_part
from surelabel.errors import DataError
from surelabel.records import Features, Skipped
from surelabel.training import taken

PART_FOR = {  # what is asked of the encoder for each need; of two that give patches the last counts
    "trunk": "trunk",
    "attention": "attentive",
    "self_aware": "self_aware",
    "patches": "patches",
}
CHANGED = "changed while it was being read"

Pictures = Sequence[str] | Sequence[Image.Image]


def looked_at(
    pictures: Pictures, method: Any, backbone: Backbone, *, strict: bool = False, **options: Any
) -> Encoded:
    """All that a method needs of pictures.

    Args:
        pictures: Files, or pictures in memory.
        method: Says what it ``needs``, and at which ``side`` the whole picture is seen.
        backbone: The encoder.
        strict: A picture that cannot be read is an error instead of being skipped.
        options: ``cache``, ``workers`` and ``progress``, for files.

    Raises:
        DataError: no picture could be read, or ``strict`` and one could not.
    """
    large = backbone.at(method.side) if method.side else backbone
    first, *others = parts_of(method)
    found = _whole(pictures, large, first, strict=strict, options=options)
    for part in others:
        same = [pictures[r] for r in found.rows]
        more = _whole(same, large, part, strict=strict, options=options)
        found = _joined(found, more, pictures)
    return _parts_too(found, pictures, method, backbone, strict=strict, options=options)


def parts_for(needs: Sequence[str]) -> list[str]:
    """What the encoder is asked for: each part is a pass of its own."""
    parts = [part for need, part in PART_FOR.items() if need in needs]
    if "attentive" in parts and "self_aware" in parts:
        parts.remove("self_aware")  # attention comes with these patches
    return parts or ["images"]


def parts_of(method: Any) -> list[str]:
    """The same for a method, which names its own blocks where it needs a ladder."""
    ladder = [ladder_part(*method.ladder)] if "ladder" in method.needs else []
    parts = parts_for(method.needs)
    return [part for part in parts if not ladder or part != "images"] + ladder


def _whole(
    pictures: Any, backbone: Backbone, part: str, *, strict: bool, options: dict[str, Any]
) -> Encoded:
    if len(pictures) and isinstance(pictures[0], Image.Image):
        return encode_pictures(backbone, pictures, part=part)
    return encode(backbone, pictures, part=part, strict=strict, **options)


def _joined(found: Encoded, more: Encoded, pictures: Pictures) -> Encoded:
    """Both, of the pictures that could be read twice and stayed what they were."""
    same = np.array([found.hashes[r] == h for r, h in zip(more.rows, more.hashes, strict=True)])
    gone = [Skipped(str(pictures[found.rows[r]]), CHANGED) for r in more.rows[~same]]
    both = _of(found, more.rows[same], [*more.skipped, *gone])
    seen = taken(more.features, torch.from_numpy(np.flatnonzero(same)))
    fresh = {k: v for k, v in vars(seen).items() if v is not None and k != "pooled"}
    return replace(
        both,
        features=replace(both.features, **fresh),
        cached=min(found.cached, more.cached),
        decode_seconds=found.decode_seconds + more.decode_seconds,
        model_seconds=found.model_seconds + more.model_seconds,
        passes=both.passes + more.passes[same],
    )


@torch.no_grad()
def _parts_too(
    found: Encoded,
    pictures: Any,
    method: Any,
    backbone: Backbone,
    *,
    strict: bool,
    options: dict[str, Any],
) -> Encoded:
    """Look again for as long as the method asks for parts."""
    while "views" in method.needs and (cut := method.cut(found.features)) is not None:
        same = [pictures[r] for r in found.rows]
        seen = encode_views(backbone, same, cut, hashes=found.hashes, **options)
        if not seen.counts.any() and not seen.unread:
            break  # no picture wanted any
        gone = [Skipped(str(same[r]), reason) for r, reason in seen.unread.items()]
        if gone and strict:
            raise DataError(f"{gone[0].path}: {gone[0].reason}")
        left = np.setdiff1d(np.arange(len(same)), list(seen.unread))
        found = _of(_added(found, seen), left, gone)
    return found


def _added(found: Encoded, seen: Viewed) -> Encoded:
    """Views after those that were there; a picture's own vector where it had fewer."""
    features = found.features
    looked = torch.arange(seen.views.shape[1]) < torch.from_numpy(seen.counts)[:, None]
    fresh = torch.where(looked[:, :, None], seen.views, features.pooled[:, None])
    views = fresh if features.views is None else torch.cat([features.views, fresh], dim=1)
    anew = int((seen.counts > 0).sum()) - seen.cached
    return replace(
        found,
        features=replace(features, views=views),
        cached=max(found.cached - anew, 0),
        decode_seconds=found.decode_seconds + seen.decode_seconds,
        model_seconds=found.model_seconds + seen.model_seconds,
        passes=found.passes + seen.counts,
    )


def _of(found: Encoded, left: npt.NDArray[np.int64], gone: Sequence[Skipped]) -> Encoded:
    """Only these of the pictures, for others are gone meanwhile.

    Raises:
        DataError: none is left.
    """
    if not len(left):
        raise DataError(
            f"None of {len(found.rows)} pictures could be read again; the first: "
            f"{gone[0].path}: {gone[0].reason}."
        )
    if len(left) == len(found.rows):
        return found
    features: Features = taken(found.features, torch.from_numpy(left))
    return replace(
        found,
        features=features,
        rows=found.rows[left],
        skipped=(*found.skipped, *gone),
        hashes=tuple(found.hashes[r] for r in left),
        passes=found.passes[left],
    )
