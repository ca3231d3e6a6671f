"""Test which features work with each encoder family, for docs/models.md.

    python benchmarks/encoder_families.py small
    python benchmarks/encoder_families.py full [FAMILY …]

`small` writes the results of the small checkpoints of tests/encoders/family_encoders.py to
docs/encoder_families.json, and a test compares the file with new results. `full` constructs the
published architectures with random weights, one after another, and adds their results. A weights
file has at most 1.7 GB, or 2.4 GB for MetaCLIP 2. `python docs/generate.py` writes the tables.
"""

import copy
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "encoder_families.json"
sys.path.append(str(ROOT / "tests" / "encoders"))

import open_clip  # noqa: E402
from family_encoders import (  # noqa: E402
    DERIVED,
    FAMILIES,
    IMAGE_FEATURES,
    MEMBERS,
    TEXT_FEATURES,
    family_encoder,
    feature_support,
    small_encoder,
)

from surelabel.encoders import load_encoder  # noqa: E402

XLM_ROBERTA_BASE = {
    "model_type": "xlm-roberta",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "vocab_size": 250002,
    "pad_token_id": 1,
}
FULL_SIZE = {  # family: architecture, configuration of a text tower of transformers
    "OpenAI CLIP, ViT": ("ViT-B-32", None),
    "OpenAI CLIP, ResNet": ("RN50", None),
    "SigLIP": ("ViT-B-16-SigLIP", None),
    "SigLIP 2": ("ViT-B-16-SigLIP2", None),
    "PE-Core, T and S": ("PE-Core-S-16-384", None),
    "MobileCLIP2, S": ("MobileCLIP2-S0", None),
    "MobileCLIP2, B": ("MobileCLIP2-B", None),
    "EVA02": ("EVA02-B-16", None),
    "ConvNeXt": ("convnext_base", None),
    "ConvNeXt, D": ("convnext_large_d", None),
    "ViTamin": ("ViTamin-B", None),
    "CoCa": ("coca_ViT-B-32", None),
    "MetaCLIP 2, ViT-L": ("ViT-L-14-worldwide", None),
    "CLIPA": ("ViT-L-14-CLIPA", None),
    "Swin": ("swin_base_patch4_window7_224", None),
    "ViT of timm, mean": ("vit_medium_patch16_gap_256", None),
    "ViT of timm, relative positions": ("vit_relpos_medium_patch16_cls_224", None),
    "XLM-RoBERTa": ("xlm-roberta-base-ViT-B-32", XLM_ROBERTA_BASE),
}


def small_results() -> dict[str, dict[str, bool]]:
    """Return the features that work with the small checkpoint of each family."""
    results = {}
    for name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            results[name] = feature_support(small_encoder(name, Path(folder)))
    return results


def full_size_result(name: str) -> dict[str, object]:
    """Return the features that work with a full-size model of a family, and its size in GB."""
    architecture, text_config = FULL_SIZE[name]
    config = copy.deepcopy(open_clip.get_model_config(architecture))
    with tempfile.TemporaryDirectory() as folder:
        encoder = family_encoder(FAMILIES[name], config, text_config or {}, Path(folder))
        saved = Path(folder) / "saved"
        encoder.save(saved)
        del encoder
        size = (saved / "open_clip_model.safetensors").stat().st_size / 1e9
        features = feature_support(load_encoder(f"local-dir:{saved}"), n_images=1)
    return {"architecture": architecture, "size": round(size, 2), "features": features}


def pretrained_tag_counts(families: dict[str, dict[str, bool]]) -> dict[str, int]:
    """Return the number of pretrained tags of open_clip for each kind of patches.

    Args:
        families: Features that work with the small checkpoint of each family.
    """
    counts: Counter[str] = Counter()
    for architecture, _ in open_clip.list_pretrained():
        names = [n for n, pattern in MEMBERS.items() if re.fullmatch(pattern, architecture)]
        features = families[(names or DERIVED[architecture])[0]]
        kinds = [k for k in ("self-aware patches", "plain patches") if features[k]]
        counts[kinds[0] if kinds else "no patches"] += 1
    return dict(counts)


def untested_architectures(name: str) -> list[str]:
    """Return the architectures of a family that were not tested."""
    tested = {FAMILIES[name].architecture, FULL_SIZE.get(name, ("",))[0]}
    names = [a for a in open_clip.list_models() if re.fullmatch(MEMBERS[name], a)]
    return sorted({*names} - tested - {*DERIVED})


def main(kind: str, *names: str) -> None:
    """Compute the results, and write them to docs/encoder_families.json."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if kind == "small":
        small = small_results()
        full = {name: row.get("full") for name, row in results.get("families", {}).items()}
        results = {
            "open_clip": open_clip.__version__,
            "image_features": [*IMAGE_FEATURES],
            "text_features": [*TEXT_FEATURES],
            "families": {
                name: {
                    "architecture": family.architecture,
                    "small": small[name],
                    "full": full.get(name),
                    "untested": untested_architectures(name),
                }
                for name, family in FAMILIES.items()
            },
            "pretrained_tags": pretrained_tag_counts(small),
            "derived": {name: [*families] for name, families in DERIVED.items()},
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        return
    for name in names or FULL_SIZE:
        start = time.perf_counter()
        results["families"][name]["full"] = result = full_size_result(name)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        differs = result["features"] != results["families"][name]["small"]
        note = "differs from the small model" if differs else "as the small model"
        print(
            f"{name}: {result['size']} GB, {time.perf_counter() - start:.0f} s, {note}", flush=True
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
