import json
from pathlib import Path

import pytest
import torch

from surelabel.optimizers import OPTIMIZERS
from surelabel.tables import configure_table_entry

GOLDEN = json.loads((Path(__file__).parent / "golden/variational.json").read_text())["adamp"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_minimizes_a_quadratic(name):
    place = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = OPTIMIZERS[name]([{"params": [place], "weight_decay": 0.0}], 0.05)
    for _ in range(500):
        optimizer.zero_grad()
        place.square().sum().backward()
        optimizer.step()
    assert place.abs().max() < 0.01


def test_momentum_is_what_makes_the_second_step_longer():
    steps = []
    for momentum in (0.0, 0.9):
        place = torch.nn.Parameter(torch.tensor([1.0]))
        optimizer = configure_table_entry(OPTIMIZERS, "sgd", momentum=momentum)(
            [{"params": [place]}], lr=0.1
        )
        for _ in range(2):
            place.grad = torch.ones(1)
            optimizer.step()
        steps.append(1 - place.item())
    assert steps == pytest.approx([0.2, 0.29])


def recorded(values):
    return torch.tensor(values, dtype=torch.float64)


def test_adamp_equals_the_recorded_steps_of_its_authors():
    weight, bias = (torch.nn.Parameter(recorded(GOLDEN[name])) for name in ("w0", "b0"))
    optimizer = OPTIMIZERS["adamp"](
        [{"params": [weight, bias], "weight_decay": GOLDEN["wd"]}], GOLDEN["lr"]
    )
    for step in GOLDEN["steps"]:
        optimizer.zero_grad()
        outputs = recorded(GOLDEN["x"]) @ weight.T + bias
        loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, recorded(GOLDEN["y"]))
        assert loss.item() == pytest.approx(step["loss"], rel=1e-10)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(weight.data, recorded(step["w"]), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(bias.data, recorded(step["b"]), rtol=1e-10, atol=1e-12)


def test_adamp_projects_the_steps_of_scale_invariant_weights_like_its_authors():
    case = GOLDEN["projection_case"]
    weight = torch.nn.Parameter(recorded(case["w0"]))
    optimizer = OPTIMIZERS["adamp"]([{"params": [weight], "weight_decay": case["wd"]}], case["lr"])
    for step in case["steps"]:
        optimizer.zero_grad()
        loss = -(torch.nn.functional.normalize(weight, dim=1) * recorded(case["target"])).sum()
        assert loss.item() == pytest.approx(step["loss"], rel=1e-10)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(weight.data, recorded(step["w"]), rtol=1e-10, atol=1e-12)


def test_adamp_without_projection_is_adamw():
    places = [torch.nn.Parameter(torch.tensor([[3.0, -2.0], [0.5, 1.0]])) for _ in range(2)]
    groups = [[{"params": [place], "weight_decay": 0.1}] for place in places]
    optimizers = [
        configure_table_entry(OPTIMIZERS, "adamp", delta=0.0)(groups[0], 0.05),
        OPTIMIZERS["adamw"](groups[1], 0.05),
    ]
    for _ in range(5):
        for place, optimizer in zip(places, optimizers, strict=True):
            optimizer.zero_grad()
            torch.nn.functional.normalize(place, dim=1)[0, 0].square().backward()
            optimizer.step()
    torch.testing.assert_close(places[0], places[1])
