import json
import tomllib

from surelabel.config import load_run


def test_check_prints_a_run_that_reads_back(run, tmp_path):
    done = run("check", "--set", "loss.name=asymmetric", "--set", "loss.clip=0.1", "--seed", "5")
    file = tmp_path / "run.toml"
    file.write_text(done.out)
    found = load_run(file)
    assert (found.seed, found.loss.settings) == (5, {"clip": 0.1})
    assert tomllib.loads(done.out)["epochs"] == found.epochs


def test_check_as_json(run):
    assert json.loads(run("check", "--json").out)["method"]["name"] == load_run().method.name
