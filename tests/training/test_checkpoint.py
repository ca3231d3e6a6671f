import json
import os

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from surelabel.errors import DataError
from surelabel.training.checkpoint import Checkpoint, delete_checkpoint


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


def test_deleting_twice_is_no_error_and_includes_the_folds_only(tmp_path):
    kept = Checkpoint(tmp_path / "a[1]", run_id="p")
    kept.save(state(), [])
    for number in (1, 2):
        kept.for_fold(number, 2).save(state(), [])
    (tmp_path / "a1.fold-1-of-2").touch()
    delete_checkpoint(kept.path)
    delete_checkpoint(kept.path)
    assert [file.name for file in tmp_path.iterdir()] == ["a1.fold-1-of-2"]


def test_a_checkpoint_that_cannot_be_deleted_is_a_warning(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.warns(UserWarning, match=r"checkpoint .*a cannot be deleted: Is a directory\. Del"):
        delete_checkpoint(tmp_path / "a")


def test_the_checkpoint_of_another_fold_is_refused(tmp_path):
    kept = Checkpoint(tmp_path / "a", run_id="p")
    kept.for_fold(1, 2).save(state(), [])
    kept.for_fold(1, 2).path.rename(tmp_path / "a.fold-2-of-2")
    with pytest.raises(DataError, match=r"this run \(p, fold 2 of 2\); got .*\(p, fold 1 of 2\)"):
        kept.for_fold(2, 2).resume(state())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"pairs": [', '"pears": ['),
        ('{"tensor": "method/weight"}', '{"tensor": "method/other"}'),
        ('{"tensor": "method/weight"}', "[]"),
        ('["weight", ', "["),
        ('"history": []', '"history": [3]'),
        ('"state": {', '"state": 3, "x": {'),
        ('"format": 2', '"format": ' + "1" * 5000),
        ('"history": []', '"history": ' + "[" * 100_000),
    ],
)
def test_a_header_with_other_values_is_refused_on_one_line(tmp_path, old, new):
    saved = Checkpoint(tmp_path / "a", run_id="p")
    saved.save(state(), [])
    with safe_open(tmp_path / "a", "pt") as file:
        header, tensors = file.metadata()["run"], {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
    assert old in header
    save_file(tensors, tmp_path / "a", metadata={"run": header.replace(old, new, 1)})
    with pytest.raises(DataError, match=r"a (is damaged|must contain the state).*Delete") as caught:
        saved.resume(state())
    assert "\n" not in str(caught.value)


def test_a_named_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "a")
    with pytest.raises(DataError, match=r"a cannot be read: .* got a named pipe\. Delete"):
        Checkpoint(tmp_path / "a", run_id="p").resume(state())
