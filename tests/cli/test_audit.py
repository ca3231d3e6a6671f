import json


def test_suspected_targets_are_corrected_and_fitted_again(home, run):
    path = (home / "labels.csv").read_text().splitlines()[1].split(",")[0]
    audit = ["audit", "labels.csv", "--out", "audit", "--method", "zero_shot", "--folds", "2"]
    done = run(*audit)
    assert (done.code, "Report: audit/index.html" in done.err) == (0, True)
    assert "zero_shot of tiny-vit, calibrated by " in done.out
    first, *rows = (home / "audit" / "corrections.csv").read_text().splitlines()
    assert all(row.endswith(",") for row in rows)
    (home / "filled.csv").write_text(f"{first}\n{home / path},lion,0,0.9,0.9,unknown\n")
    done = run("calibrate", "tiny-vit", "labels.csv", "--corrections", "filled.csv")
    assert "filled.csv: 1 target changed." in done.err
    again = run(*audit)
    assert (again.code, "must be new or empty" in again.err) == (1, True)


def test_an_audit_without_a_folder_names_the_option(home, run):
    line = ["audit", "labels.csv", "--method", "zero_shot", "--folds", "2"]
    assert run(*line).out.rstrip().endswith("and the file corrections.csv.")
    results = json.loads(run(*line, "--json").out)
    assert (results["rows"], results["labels"]) == (24, 4)


def test_corrections_need_annotated_data(home, run):
    (home / "captions.csv").write_text("path,label,corrected\n")
    done = run("calibrate", "recognizer", "images", "--unlabelled", "--corrections", "captions.csv")
    assert (done.code, "or --corrections." in done.err) == (2, True)
