"""Plan the number of actors of a cluster, and the resources that each actor reserves."""

from collections.abc import Mapping
from dataclasses import dataclass

from surelabel.errors import ConfigError

READ_CPUS = 0.25  # of the task of Ray that reads the manifest; tasks wait if no CPU is free


@dataclass(frozen=True)
class WorkerPlan:
    """Actors that predict images.

    Attributes:
        workers: Number of actors.
        cpus: Number of CPUs that each actor reserves.
        gpus: Number of GPUs that each actor reserves.
        decoders: Number of processes of each actor that decode images.
    """

    workers: int
    cpus: float
    gpus: float
    decoders: int


def plan_workers(
    resources: Mapping[str, float], *, workers: int | None, on_gpu: bool
) -> WorkerPlan:
    """Return the actors for the resources of a cluster.

    All actors and the task that reads the manifest fit into the CPUs of the cluster. Therefore an
    actor reserves less than one CPU if there are as many actors as CPUs.

    Args:
        resources: Number of ``CPU`` and ``GPU`` of the cluster.
        workers: Number of actors, >= 1. If None, there is one actor per GPU if the encoder is on a
            GPU, and otherwise one per CPU.
        on_gpu: Whether the encoder is on a GPU.

    Raises:
        ConfigError: If the encoder is on a GPU, and the cluster has none.

    Example:
        >>> plan_workers({"CPU": 2.0}, workers=None, on_gpu=False)
        WorkerPlan(workers=2, cpus=0.87, gpus=0.0, decoders=1)
    """
    n_cpus, n_gpus = resources.get("CPU", 0.0), resources.get("GPU", 0.0)
    if on_gpu and n_gpus < 1:
        raise ConfigError(
            "The cluster must have a GPU for --device cuda; it has none. Give --device cpu."
        )
    count = workers or max(1, int(n_gpus if on_gpu else n_cpus))
    hundredths = int(100 * max(0.0, n_cpus - READ_CPUS) / count)  # rounded down
    cpus = max(0.01, hundredths / 100)
    if cpus > 1:
        cpus = float(int(cpus))  # Ray reserves whole CPUs above 1
    gpus = min(1.0, int(100 * n_gpus / count) / 100) if on_gpu else 0.0
    return WorkerPlan(count, cpus, gpus, max(1, int(cpus)))
