"""Convert between the names of surelabel 0.1.0 and the current names.

The tables below map names of version 0.1.0 to current names. Fingerprints are computed from the
names of version 0.1.0, so that the fingerprint of a recognizer is equal in all versions.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Value = TypeVar("Value")

ENCODER_FOLDER = "backbone"  # in the folder of a saved recognizer
ENCODER_MANIFEST = "surelabel_backbone.json"

RUN = {
    "backbone": "encoder",
    "batch": "batch_size",
    "at_once": "micro_batch_size",
    "averaging": "ema_decay",
}
ENTRIES = {
    "standardised": "standardized",
    "mean_of_standardised": "mean_of_standardized",
    "sewn": "cut_and_sew",
    "as_many": "expected_count",
}
COVARIANCE = {"target": "similarity", "least": "min_images"}
SETTINGS = {  # by the current key of the entry
    "crops": {
        "count": "max_crops",
        "at_once": "crops_per_round",
        "change": "tolerance",
        "amount": "fusion_parameter",
    },
    "tiles": {"down": "rows", "across": "columns", "amount": "fusion_parameter"},
    "dense_regions": {"side": "image_size", "part": "window_size", "share": "patch_weight"},
    "region_statistics": {
        "side": "image_size",
        "window": "pooling_window",
        "count": "patches_per_label",
        "trust": "prior_strength",
        "sharpness": "patch_logit_scale",
        "share": "patch_weight",
    },
    "recover_match": {
        "first": "first_block",
        "selection": "text_guided_selection",
        "prompts": "text_prompts",
        "text_layers": "text_prompt_layers",
        "knowledge": "knowledge_weight",
        "presence": "presence_scale",
    },
    "standardized": {"compounds": "pairs_per_label"},
    "tailor": {"side": "image_size", "decoder_rate": "decoder_learning_rate_scale"},
    "ccd": {"kept": "image_weight"},
    "tailored": {"top": "top_k"},
    "cut_and_sew": {
        "overlays": "max_overlays",
        "chance": "overlay_probability",
        "side": "overlay_scale",
        "patches": "images_per_label",
        "strong": "strong_view_weight",
        "rate": "label_learning_rate",
        "decay": "label_weight_decay",
    },
    "class_covariance": COVARIANCE,
    "class_covariance_of_logits": COVARIANCE,
    "class_covariance_pairwise": COVARIANCE,
    "class_correlation": COVARIANCE,
    "class_second_moment": COVARIANCE,
    "cost": {"of_miss": "miss_cost"},
}
SETTINGS_BEFORE = {  # settings that are missing in older run files, with their values, by method
    "linear": {"centred": False, "penalty_folds": 0},
}
ENTRY_SETTINGS = {"domain", "fusion"}  # settings whose value is the key of an entry
SCORER = {"wording.": "text_scorer."}
WEIGHTS = {  # prefixes of the keys in weights.safetensors, by the current key of the method
    "zero_shot": SCORER,
    "clip_adapter": {"zero_shot.wording.": "zero_shot.text_scorer.", "level": "bias"},
    "linear": {"level": "bias"},
    "finetune": {"head.level": "head.bias"},
    "crops": {"fused.wording.": "view_fusion.text_scorer."},
    "tiles": {"fused.wording.": "view_fusion.text_scorer."},
    "dense_regions": SCORER,
    "region_statistics": SCORER | {"level": "bias", "pictures": "image_counts"},
    "standardized": {"single.": "label_scorer.", "joint.": "pair_scorer.", "seen": "n_images"},
    "tailor": {
        "places.down": "token_adapter.row_positions",
        "places.across": "token_adapter.column_positions",
        "places.": "token_adapter.",
        "decoder.level": "decoder.bias",
    },
    "recover_match": {
        "names.prompts": "prompted_labels.prompts",
        "stream.prompts": "local_adapter.prompts",
        "stream.adapters.#.narrow.": "local_adapter.selections.#.down_convs.",
        "stream.adapters.#.norms.": "local_adapter.selections.#.norms.",
        "stream.adapters.#.queries.": "local_adapter.selections.#.query_norms.",
        "stream.adapters.#.keys.": "local_adapter.selections.#.key_norm.",
        "stream.adapters.#.masks.": "local_adapter.selections.#.mask_conv.",
        "stream.adapters.#.widen.": "local_adapter.selections.#.up_conv.",
        "levels": "biases",
    },
}
RECORD = {  # arrays of record.safetensors
    "pictures": "images",
    "shown": "predicted_positives",
    "present": "true_positives",
    "expected": "expected_true_positives",
    "tagged": "images_with_predictions",
    "wrong": "false_discovery_sum",
    "missed": "false_negative_sum",
    "with_labels": "images_with_positives",
}
PACKAGE = {  # attributes of the package
    "backbones": "encoders",
    "encoding": "features",
    "find_pictures": "find_images",
}
RECOGNIZER = {  # methods of Recognizer
    "where": "localize",
    "linked": "logits_of",
    "move_to": "adapt_to_shift",
    "predict_pictures": "predict",
}
OPTIONS = {  # options of the command line
    "--as-many": "--expected-count",
    "--pictures": "--images-root",
    "--up-to": "--max-literals",
    "--where": "--heat-maps",
}


def migrate_run(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a run file with current names.

    Args:
        sections: Content of a TOML file of version 0.1.0 or later, as nested dictionaries.
    """
    return {
        RUN.get(name, name): _migrate_run_section(value) if isinstance(value, Mapping) else value
        for name, value in sections.items()
    }


def _migrate_run_section(section: Mapping[str, Any]) -> dict[str, Any]:
    renamed = _migrate_entry_names(section, {"name"} | ENTRY_SETTINGS)
    names = SETTINGS.get(str(renamed.get("name")), {})
    return {names.get(key, key): value for key, value in renamed.items()}


def _migrate_entry_names(settings: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {
        key: ENTRIES.get(value, value) if key in keys and isinstance(value, str) else value
        for key, value in settings.items()
    }


def settings_of_saved_method(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a saved method, with the values that earlier versions implied.

    Args:
        method: Current key of the method.
        settings: Settings in the run file of a saved recognizer. A run file of the current version
            contains all settings of ``SETTINGS_BEFORE``.
    """
    return SETTINGS_BEFORE.get(method, {}) | dict(settings)


def migrate_weights(method: str, weights: Mapping[str, Value]) -> dict[str, Value]:
    """Return the weights of a method under the current keys.

    Args:
        method: Current key of the method.
        weights: Content of a file ``weights.safetensors`` of version 0.1.0.
    """
    rename = _migration_prefix_renamer(WEIGHTS.get(method, {}))
    return {rename(key): value for key, value in weights.items()}


def migrate_validation_record(arrays: Mapping[str, Value]) -> dict[str, Value]:
    """Return the arrays of a validation record under the current names."""
    return {RECORD.get(name, name): array for name, array in arrays.items()}


def choice_before_migration(method: str, settings: Mapping[str, Any]) -> str:
    """Return a method and its settings as text with names of version 0.1.0, for fingerprints.

    Settings whose value is equal to the value in ``SETTINGS_BEFORE`` are omitted.
    """
    implied = SETTINGS_BEFORE.get(method, {})
    settings = {k: v for k, v in settings.items() if k not in implied or implied[k] != v}
    entries = {today: before for before, today in ENTRIES.items()}
    names = {today: before for before, today in SETTINGS.get(method, {}).items()}
    hashed = {
        names.get(key, key): entries.get(value, value)
        if key in ENTRY_SETTINGS and isinstance(value, str)
        else value
        for key, value in settings.items()
    }
    return f"Choice(name={entries.get(method, method)!r}, settings={hashed!r})"


def weights_before_migration(method: str, weights: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """Return the weights under the keys of version 0.1.0, sorted by key, for fingerprints."""
    names = {today: before for before, today in WEIGHTS.get(method, {}).items()}
    rename = _migration_prefix_renamer(dict(sorted(names.items(), key=lambda pair: -len(pair[0]))))
    return sorted((rename(key), value) for key, value in weights.items())


def migrated_setting_name(entry: str, setting: str) -> str | None:
    """Return the current name of a setting of version 0.1.0, or None if there is no new name."""
    return SETTINGS.get(entry, {}).get(setting)


def _migration_prefix_renamer(prefixes: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces the first matching prefix, where # matches any number.

    A prefix without a dot at its end must match the whole key.
    """
    rules = [
        (re.compile(re.escape(old).replace(r"\#", "#").replace("#", r"(\d+)")), new)
        for old, new in prefixes.items()
    ]

    def rename(key: str) -> str:
        for pattern, new in rules:
            match = pattern.match(key)
            if match and (pattern.pattern.endswith(r"\.") or match.end() == len(key)):
                number = match[1] if match.groups() else ""
                return new.replace("#", number) + key[match.end() :]
        return key

    return rename
