"""Text-guided spatial selection, against the released code of "Recover and Match"."""

import json
from pathlib import Path

import pytest
import torch

from surelabel.errors import InputError
from surelabel.methods.recover_match.ladder import LadderTextGuidedSelection

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/recover_match.json").read_text())
TRUTH = GOLDEN["selection"]
OURS = {  # the authors' names of parts, and these here
    "conv_adapter_layers1.0": "down_convs.0",
    "conv_adapter_layers1.1": "norms.0",
    "conv_adapter_layers2.0": "down_convs.1",
    "conv_adapter_layers2.1": "norms.1",
    "conv_adapter_layers": "mask_conv",
    "conv_adapter_final": "up_conv",
    "adapter_norm_q1": "query_norms.0",
    "adapter_norm_q2": "query_norms.1",
    "adapter_norm_kv": "key_norm",
}


def double(values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def adapter():
    """One with the weights of the golden file."""
    it = LadderTextGuidedSelection(6, 4).double()
    state = {}
    for theirs, values in TRUTH["weights"].items():
        part, _, what = theirs.rpartition(".")
        state[f"{OURS[part]}.{what}"] = double(values)
    it.load_state_dict(state)
    return it


def released(key):
    """Patches ``(2, 9, 6)`` of the released code's tokens, whose class token comes first."""
    return double(TRUTH[key])[1:].transpose(0, 1)


TEXTS = double(TRUTH["text_fea"])[:, 0]


@pytest.mark.parametrize(("training", "key"), [(False, "y_eval"), (True, "y_train_batchstats")])
def test_gives_what_the_released_code_gives(adapter, training, key):
    found = adapter.train(training)(released("x"), (3, 3), TEXTS)
    torch.testing.assert_close(found, released(key), rtol=0, atol=1e-12)


def test_masks_of_the_paper_see_one_map_each():
    parts = {
        v: LadderTextGuidedSelection(6, 4, variant=v).mask_conv.weight.numel()
        for v in ("paper", "code")
    }
    assert parts == {"paper": 18, "code": 36}
    assert LadderTextGuidedSelection(6, 4, variant="paper")(
        torch.randn(2, 9, 6), (3, 3), torch.randn(5, 4)
    ).shape


def test_names_in_another_order_change_nothing(adapter):
    one = adapter.eval()(released("x"), (3, 3), TEXTS)
    torch.testing.assert_close(adapter(released("x"), (3, 3), TEXTS.flip(0)), one)


def test_a_transposed_grid_is_another_image(adapter):
    patches = released("x")[:, :6]
    assert not torch.allclose(
        adapter.eval()(patches, (2, 3), TEXTS), adapter(patches, (3, 2), TEXTS)
    )


@pytest.mark.parametrize("training", [True, False])
def test_one_patch_of_one_image_is_enough(adapter, training):
    found = adapter.train(training)(released("x")[:1, :1], (1, 1), TEXTS[:1])
    assert found.shape == (1, 1, 6)
    assert found.isfinite().all()


def test_gradients_reach_every_weight(adapter):
    adapter.train()(released("x"), (3, 3), TEXTS).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in adapter.parameters())


def test_texts_of_another_kind_are_refused(adapter):
    with pytest.raises(InputError, match=r"texts must have axes \(c, d\)"):
        adapter(released("x"), (3, 3), TEXTS[0])
