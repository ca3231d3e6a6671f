import torch

from surelabel.backbones.fingerprint import fingerprint

WEIGHTS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}


def test_the_order_of_the_tensors_does_not_matter():
    assert fingerprint(dict(reversed(WEIGHTS.items())), {}) == fingerprint(WEIGHTS, {})


def test_values_shapes_types_names_and_preprocessing_all_matter():
    changed = [
        {**WEIGHTS, "a": WEIGHTS["a"] + torch.tensor([[0, 0, 0], [0, 0, 1e-6]])},
        {**WEIGHTS, "a": WEIGHTS["a"].reshape(3, 2)},
        {**WEIGHTS, "a": WEIGHTS["a"].double()},
        {"c": WEIGHTS["a"], "b": WEIGHTS["b"]},
    ]
    prints = [fingerprint(weights, {}) for weights in [WEIGHTS, *changed]]
    prints.append(fingerprint(WEIGHTS, {"mean": 0.5}))
    assert len(set(prints)) == len(prints)


def test_a_large_tensor_is_told_apart_by_values_spread_over_all_of_it():
    large = torch.zeros(300_000)
    moved = large.clone()
    moved[150_000:] += 1e-3
    assert fingerprint({"a": large}, {}) != fingerprint({"a": moved}, {})
