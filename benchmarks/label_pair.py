"""The label-pair regularizer, exact, on a grid and sampled, against the form of all T · T pairs.

    python benchmarks/label_pair.py [--quick]

Log-odds are drawn at random, with about 3, 5 or (dense) 300 of T labels present. Every case runs
in a process of its own, on one thread, in float32: processor seconds of value and gradient, the
best of several rounds, and the peak of memory above the data. The T · T form is plain torch with
its own backward pass. Values and gradients are held against it, or where it would not fit against
the exact sum.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from surelabel.records import Step
from surelabel.regularizers import label_pair, label_pair_on_grid, label_pair_sampled

CASES = [  # labels T, pictures B, present labels, forms
    (80, 256, 3, ["square", "label_pair", "label_pair_on_grid"]),
    (1_000, 64, 5, ["square", "label_pair", "label_pair_on_grid"]),
    (1_000, 256, 5, ["square", "label_pair", "label_pair_on_grid"]),
    (1_000, 256, 300, ["label_pair", "label_pair_on_grid"]),
    (10_000, 2, 5, ["square", "label_pair", "label_pair_on_grid"]),
    (10_000, 256, 5, ["label_pair", "label_pair_on_grid", "label_pair_sampled"]),
    (10_000, 256, 300, ["label_pair", "label_pair_on_grid"]),
]
GOAL = "1,000 labels × 256 pictures: 20 × the speed, 50 × less memory, or more"


def square(step: Step) -> Tensor:
    """All T · T pairs of every picture at once."""
    z, targets = step.scores, step.targets
    labels = z.shape[1]
    gaps = z[:, None, :] - z[:, :, None]
    pairs = targets[:, :, None] * (1 - targets)[:, None, :]
    return 2 / (labels * (labels - 1)) * (F.softplus(gaps) * pairs).sum((1, 2)).mean()


FORMS: dict[str, Callable[[Step], Tensor]] = {
    "square": square,
    "label_pair": label_pair,
    "label_pair_on_grid": label_pair_on_grid,
    "label_pair_sampled": label_pair_sampled,
}


def measured(form: str, labels: int, pictures: int, present: int, file: str) -> None:
    """Print value, seconds and MiB of one case, and write its gradient."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    z = 2 * torch.randn(pictures, labels, generator=generator)
    targets = (torch.rand(pictures, labels, generator=generator) < present / labels).float()
    step = Step(z.requires_grad_(), None, targets, targets >= 0)
    small = Step(z.detach()[:1, :9].requires_grad_(), None, targets[:1, :9], targets[:1, :9] >= 0)
    FORMS[form](small).backward()  # loads what torch loads on first use
    before, taken = resident(reset=True), []
    while len(taken) < 2 or (sum(taken) < 2 and len(taken) < 15):
        z.grad = None
        start = time.process_time()
        value = FORMS[form](step)
        value.backward()
        taken.append(time.process_time() - start)
    memory = resident() - before
    np.save(file, z.grad)
    print(json.dumps({"value": value.item(), "seconds": min(taken), "memory": memory}))


def resident(*, reset: bool = False) -> float:
    """The most memory held since the last reset, in MiB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> None:
    """Print one line a form of every case, beside the first form of the case."""
    print(f"{'T':>6} {'B':>4} {'present':>8}  {'form':20}{'seconds':>9}{'MiB':>8}", end="")
    print(f"{'faster':>9}{'smaller':>9}  {'value':12}{'off by':>9}{'gradient off by':>17}")
    for labels, pictures, present, forms in CASES:
        if "--quick" in sys.argv and labels * labels * pictures > 10**8:
            forms = [form for form in forms if form != "square"]
        with tempfile.TemporaryDirectory() as folder:
            compare(labels, pictures, present, forms, Path(folder))
    print(f"goal: {GOAL}")


def compare(labels: int, pictures: int, present: int, forms: list[str], folder: Path) -> None:
    """Every form of one case, the first of them as the measure."""
    measure, pull = {}, np.zeros(1)
    for form in forms:
        file = folder / f"{form}.npy"
        case = [form, labels, pictures, present, file]
        run = subprocess.run(
            [sys.executable, __file__, *map(str, case)], capture_output=True, text=True, check=True
        )
        found, gradient = json.loads(run.stdout), np.load(file)
        if not measure:
            measure, pull = found, gradient
        print(
            f"{labels:6} {pictures:4} {present:8}  {form:20}{found['seconds']:9.4f}"
            f"{found['memory']:8.1f}{measure['seconds'] / found['seconds']:8.1f}×"
            f"{measure['memory'] / max(found['memory'], 0.1):8.1f}×  {found['value']:<12.9f}"
            f"{abs(found['value'] / measure['value'] - 1):9.1e}"
            f"{np.abs(gradient - pull).max() / np.abs(pull).max():17.1e}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) == 6:
        measured(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5])
    else:
        main()
