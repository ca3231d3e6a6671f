import pytest


@pytest.mark.parametrize("shard", ["3/2", "0/2", "a/b", "2"])
def test_a_shard_that_does_not_exist_is_refused_in_one_line(home, run, shard):
    done = run("tag", "images", "--model", "recognizer", "--out", "out", "--shard", shard)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"Error: --shard must be i/n with 1 <= i <= n; got '{shard}'. For 3 shards, give 1/3, "
        "2/3 and 3/3 in separate commands.\n"
    )
    assert not (home / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--shard requires --out FOLDER; got no --out"),
        (
            ["--out", "out.parquet"],
            "With --shard, --out must be a folder; got the file out.parquet",
        ),
        (["--out", "names.txt"], "With --shard, --out must be a folder; got the file names.txt"),
        (["--out", "out", "--gallery", "page.html"], "got --gallery too"),
        (["--out", "out", "--sidecar", "xmp"], "got --sidecar too"),
    ],
)
def test_a_shard_needs_a_folder_and_no_other_output(home, run, options, message):
    done = run("tag", "images", "--model", "recognizer", "--shard", "1/2", *options)
    assert done.code == 2
    assert message in done.err


def test_scores_have_no_shards(home, run):
    (home / "scores.csv").write_text("path,lion\na.jpg,0.5\n")
    done = run("tag", "scores:scores.csv", "--model", "recognizer", "--shard", "1/2", "--out", "o")
    assert done.code != 0
    assert len(done.err.splitlines()[-1]) > 0
    assert "Traceback" not in done.err
