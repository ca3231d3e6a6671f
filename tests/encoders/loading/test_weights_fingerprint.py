import torch

from surelabel.encoders.loading.weights_fingerprint import weights_fingerprint

WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}
CONFIG = {"embed_dim": 24, "vision_cfg": {"head_width": 64, "width": 64}}


def mark(weights, config=CONFIG, preprocess_cfg=None):
    return weights_fingerprint(weights, config=config, preprocess_cfg=preprocess_cfg or {})


def test_the_order_of_tensors_and_settings_does_not_matter():
    assert mark(dict(reversed(WEIGHTS.items()))) == mark(WEIGHTS)
    assert mark(WEIGHTS, dict(reversed(CONFIG.items()))) == mark(WEIGHTS)


def test_values_shapes_types_names_and_preprocessing_all_matter():
    changed = [
        {**WEIGHTS, "a": WEIGHTS["a"] + torch.tensor([[0, 0, 0], [0, 0, 1e-6]])},
        {**WEIGHTS, "a": WEIGHTS["a"].reshape(3, 2)},
        {**WEIGHTS, "a": WEIGHTS["a"].double()},
        {"c": WEIGHTS["a"], "b": WEIGHTS["b"]},
    ]
    prints = [mark(weights) for weights in [WEIGHTS, *changed]]
    prints.append(mark(WEIGHTS, preprocess_cfg={"mean": 0.5}))
    assert len(set(prints)) == len(prints)


def test_the_same_weights_in_another_architecture_are_another_model():
    wider_heads = {**CONFIG, "vision_cfg": {"head_width": 32, "width": 64}}
    prints = [mark(WEIGHTS, c) for c in (CONFIG, {**CONFIG, "quick_gelu": True}, wider_heads)]
    assert len(set(prints)) == 3


def test_settings_of_one_kind_are_never_taken_for_the_other():
    assert mark(WEIGHTS, {"size": 1}, {"mean": 2}) != mark(WEIGHTS, {"mean": 2}, {"size": 1})


def test_a_large_tensor_is_told_apart_by_values_spread_over_all_of_it():
    large = torch.zeros(300_000)
    moved = large.clone()
    moved[150_000:] += 1e-3
    assert mark({"a": large}) != mark({"a": moved})


def test_of_a_large_tensor_every_other_or_every_k_th_value_is_read():
    large = torch.zeros(131_072)
    unseen, seen = large.clone(), large.clone()
    unseen[1::2], seen[2] = 1, 1
    assert mark({"a": large}) == mark({"a": unseen})
    assert mark({"a": large}) != mark({"a": seen})
