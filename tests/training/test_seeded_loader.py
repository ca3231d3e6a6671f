import os
import signal

import pytest
import torch

from surelabel.training.batches import BatchPart
from surelabel.training.seeded_loader import SeededLoader

MAIN_PROCESS = os.getpid()


def generator():
    return torch.Generator().manual_seed(3)


def loader(load_item, *, n_items=7, workers=2):
    def paths_of_item(row, seed):
        return ["6.jpg", "overlay.jpg"] if row == 6 else [f"{row}.jpg"]

    return SeededLoader(load_item, paths_of_item, n_items, batch_size=3, workers=workers)


def killing(rows):
    """Return a function whose process is killed while it loads one of the rows."""

    def load_item(row, seed):
        if row in rows:
            assert os.getpid() != MAIN_PROCESS
            os.kill(os.getpid(), signal.SIGKILL)
        return row, seed

    return load_item


def batches_by_hand(rows_left_out=()):
    draws = generator()
    order = torch.randperm(7, generator=draws).tolist()
    seeds = torch.randint(2**62, (7,), generator=draws).tolist()
    items = list(zip(order, seeds, strict=True))
    batches = [items[:3], items[3:6], items[6:]]
    return [[item for item in batch if item[0] not in rows_left_out] for batch in batches]


def items_of(batches):
    return [items for items, _ in batches]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_order_and_seeds_are_sampled_from_the_generator_for_any_number_of_workers(workers):
    it = loader(lambda row, seed: (row, seed), workers=workers)
    assert items_of(it.batches(generator())) == batches_by_hand()
    assert items_of(it.batches(generator(), skip=2)) == batches_by_hand()[2:]
    assert len(it) == 3


def test_an_item_whose_processes_are_killed_is_left_out_and_the_others_stay():
    last = batches_by_hand()[2][0][0]  # the only item of the last batch
    it = loader(killing({6, last}))
    with pytest.warns(UserWarning, match=r"is left out of this epoch") as caught:
        assert items_of(it.batches(generator())) == batches_by_hand({6, last})
    reason = "the decoding process was killed (SIGKILL), possibly because of too little memory"
    assert sorted(str(warning.message) for warning in caught) == sorted(
        f"{paths} is left out of this epoch, and of each later epoch in which decoding fails "
        f"again: {reason}. Free memory, or remove the image."
        for paths in ("6.jpg (with overlay.jpg)", f"{last}.jpg")
    )
    # the second epoch has no second warning, which would be an error here
    assert items_of(it.batches(generator(), skip=1)) == batches_by_hand({6, last})[1:]


def test_an_item_whose_process_is_killed_once_is_complete(tmp_path):
    def load_item(row, seed):
        if row == 2 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return row, seed

    assert items_of(loader(load_item).batches(generator())) == batches_by_hand()


def test_the_parts_of_two_processes_are_the_batch_and_a_single_item_is_in_both():
    parts = [
        list(loader(lambda row, seed: (row, seed), workers=0).batches(generator(), part=part))
        for part in (BatchPart(0, 2), BatchPart(1, 2))
    ]
    whole = batches_by_hand()
    for number, ((first, divided), (second, _)) in enumerate(zip(*parts, strict=True)):
        assert divided == (number < 2)
        assert (first + second if divided else first) == whole[number]
        assert divided or second == whole[number]
