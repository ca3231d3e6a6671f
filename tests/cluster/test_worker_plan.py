import pytest

from surelabel.cluster.worker_plan import READ_CPUS, plan_workers
from surelabel.errors import ConfigError


@pytest.mark.parametrize("n_cpus", [1, 2, 3, 4, 16, 256])
@pytest.mark.parametrize("workers", [None, 1, 2, 7])
def test_the_actors_and_the_task_that_reads_fit_into_the_cluster(n_cpus, workers):
    plan = plan_workers({"CPU": n_cpus}, workers=workers, on_gpu=False)
    assert plan.workers == (workers or n_cpus)
    assert plan.workers * plan.cpus + READ_CPUS <= n_cpus
    assert plan.cpus > 0
    assert plan.cpus <= 1 or plan.cpus == int(plan.cpus)


def test_an_encoder_on_a_gpu_has_one_actor_per_gpu():
    plan = plan_workers({"CPU": 16, "GPU": 4}, workers=None, on_gpu=True)
    assert (plan.workers, plan.gpus, plan.cpus, plan.decoders) == (4, 1.0, 3.0, 3)


def test_a_cluster_without_gpu_is_refused_for_an_encoder_on_a_gpu():
    with pytest.raises(ConfigError, match="must have a GPU"):
        plan_workers({"CPU": 16}, workers=None, on_gpu=True)
