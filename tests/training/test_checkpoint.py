import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from surelabel.errors import DataError
from surelabel.training import Checkpoint


def state(seed=0):
    torch.manual_seed(seed)
    method = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(method.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    method(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    schedule.step()
    generator = torch.Generator().manual_seed(seed)
    return {"method": method, "optimizer": optimizer, "schedule": schedule, "generator": generator}


def test_everything_comes_back_as_it_was(tmp_path):
    kept, first, second = Checkpoint(tmp_path / "a", run_id="p"), state(0), state(1)
    kept.save(first, [(0.5, 0.0)])
    assert kept.resume(second) == [[0.5, 0.0]]
    for a, b in zip(first["method"].parameters(), second["method"].parameters(), strict=True):
        assert torch.equal(a, b)
    moments = [s["optimizer"].state_dict()["state"][0]["exp_avg"] for s in (first, second)]
    assert torch.equal(*moments)
    assert first["schedule"].state_dict() == second["schedule"].state_dict()
    draws = [torch.rand(3, generator=s["generator"]) for s in (first, second)]
    assert torch.equal(*draws)


def test_without_a_file_there_is_nothing_to_go_on_from(tmp_path):
    assert Checkpoint(tmp_path / "a", run_id="p").resume(state()) == []


def test_the_state_of_another_run_is_refused(tmp_path):
    Checkpoint(tmp_path / "a", run_id="one").save(state(), [])
    with pytest.raises(DataError, match=r"this run \(two\); got .* run \(one\)\. Delete"):
        Checkpoint(tmp_path / "a", run_id="two").resume(state())


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_refused(tmp_path, damage):
    kept = Checkpoint(tmp_path / "a", run_id="p")
    kept.save(state(), [])
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole[:-20] if damage is None else damage)
    with pytest.raises(DataError, match="is damaged"):
        kept.resume(state())


def test_the_state_of_another_version_is_refused(tmp_path):
    Checkpoint(tmp_path / "a", run_id="p").save({"method": nn.Linear(3, 2)}, [])
    with pytest.raises(DataError, match="must contain the state of method, optimizer"):
        Checkpoint(tmp_path / "a", run_id="p").resume(state())
    save_file({"x": torch.ones(1)}, tmp_path / "b", metadata={"run": '{"format": 2}'})
    with pytest.raises(DataError, match="is damaged"):
        Checkpoint(tmp_path / "b", run_id="p").resume(state())


@pytest.mark.parametrize("version", [{}, {"format": 1}, {"format": 99}, {"format": "2"}])
def test_a_checkpoint_of_another_format_is_refused_with_what_to_do(tmp_path, version):
    header = {"purpose": "p", "tree": {}, "history": [[0.5, 0.0]]} | version  # as in 0.1.0
    save_file({"x": torch.ones(1)}, tmp_path / "a", metadata={"run": json.dumps(header)})
    with pytest.raises(DataError, match=r"format 2; got format .* start the fit again") as refused:
        Checkpoint(tmp_path / "a", run_id="p").resume(state())
    assert "\n" not in str(refused.value)
    assert (tmp_path / "a").exists()


def test_removing_twice_is_no_error(tmp_path):
    kept = Checkpoint(tmp_path / "a", run_id="p")
    kept.save(state(), [])
    kept.remove()
    kept.remove()
    assert not list(tmp_path.iterdir())
