from pathlib import Path

import pytest

from surelabel.cluster import node_checks
from surelabel.cluster.node_checks import check_node_reports, check_nodes, versions_of_packages
from surelabel.errors import ConfigError, DataError

VERSIONS = {"surelabel": "0.1.0", "ray": "2.60.0", "Python": "3.11"}
NODE = {"host": "node-1", "sees_folder": True, **VERSIONS}


def test_equal_nodes_are_accepted():
    assert check_node_reports([NODE, NODE], VERSIONS, Path("out")) is None


@pytest.mark.parametrize("package", VERSIONS)
@pytest.mark.parametrize("found", ["9.9", None])
def test_another_version_is_refused(package, found):
    node_package = f"{package} {found}" if found else f"no {package}"
    expected = f"must have {package} {VERSIONS[package]}; node-1 has {node_package}"
    with pytest.raises(ConfigError, match=expected):
        check_node_reports([NODE, NODE | {package: found}], VERSIONS, Path("out"))


def test_a_folder_that_a_node_does_not_see_is_refused():
    with pytest.raises(DataError, match="node-1 has no access"):
        check_node_reports([NODE | {"sees_folder": False}], VERSIONS, Path("out"))


def test_the_nodes_of_a_local_cluster_pass_and_no_file_remains(cluster, tmp_path):
    check_nodes(tmp_path)
    assert not list(tmp_path.iterdir())
    assert set(versions_of_packages()) == set(VERSIONS)


def test_after_an_error_a_missing_folder_is_missing_again(cluster, tmp_path, monkeypatch):
    versions = versions_of_packages() | {"ray": "0.1"}
    monkeypatch.setattr(node_checks, "versions_of_packages", lambda: versions)
    with pytest.raises(ConfigError, match=r"must have ray 0\.1"):
        check_nodes(tmp_path / "new" / "out")
    assert not list(tmp_path.iterdir())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"must have ray 0\.1"):
        check_nodes(tmp_path / "empty")
    assert (tmp_path / "empty").is_dir()


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"out cannot be written: Not a directory\. Give another"):
        check_nodes(tmp_path / "file" / "out")
