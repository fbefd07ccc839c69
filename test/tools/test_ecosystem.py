"""The runner of other projects' suites: what it counts, what it calls explained, and the package
metadata that lets those projects find torch. The suites themselves run by `make test-ecosystem`."""

import importlib.metadata
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "ecosystem"), str(ROOT / "tools" / "build")]

import metadata  # noqa: E402
import project  # noqa: E402
import run  # noqa: E402
import suite  # noqa: E402


def results(**outcomes):
    tests = {name: suite.Outcome(outcome, "", 0.0) for name, outcome in outcomes.items()}
    return suite.Results(tests)


def row(baseline, known=(), **outcomes):
    explained = [project.Known(cause, tests) for cause, tests in known]
    subject = project.Project("p", [], sdist="p==1", known=explained)
    return run.compare(subject, results(**outcomes), baseline)


def test_ratio_counts_only_what_passes_on_the_peer():
    one = row(run.Baseline("2", 2, {"c": "failed"}), a="passed", b="failed", c="passed")
    assert (one.passed, one.expected, one.ratio) == (1, 2, 0.5)
    assert one.failures == ["b"] and not one.good()


def test_skipped_here_but_passed_on_the_peer_is_a_failure():
    assert row(run.Baseline("2", 1, {}), a="skipped").failures == ["a"]
    assert row(None, a="skipped").failures == []


def test_not_collected_tests_count_against_us():
    one = row(run.Baseline("2", 3, {}), a="passed")
    assert one.missing == 2 and one.ratio == pytest.approx(1 / 3) and not one.good()


def test_known_cause_explains_by_pattern_with_brackets():
    many = {f"t{i}": "passed" for i in range(30)}
    one = row(run.Baseline("2", 31, {}), [("no card", ["x[[]*"])], **many, **{"x[a]": "failed"})
    assert one.causes() == {"": ["x[a]"]}
    one = row(run.Baseline("2", 31, {}), [("no card", ["x[*]"])], **many, **{"x[a]": "failed"})
    assert one.causes() == {"no card": ["x[a]"]} and one.good()


def test_baseline_round_trip(tmp_path):
    path = tmp_path / "b.txt"
    run.Baseline("2.13, Python 3", 7, {"a b[c d]": "failed", "z": "skipped"}).write(path)
    again = run.Baseline.read(path)
    assert (again.passed, again.others) == (7, {"a b[c d]": "failed", "z": "skipped"})


def test_every_project_file_loads():
    for one in project.load_all([]):
        assert one.requires and (one.sdist or (project.HERE / "scripts" / one.script).exists())


def test_recorder_writes_outcomes_and_leaves_out_what_is_done(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "def test_ok(): pass\n"
        "def test_bad(): assert 0, 'why'\n"
        "@pytest.mark.skip(reason='skipped tests are recorded too')\n"
        "def test_skip(): pass\n"
        "def test_done(): raise SystemExit\n"
    )
    done, log = tmp_path / "done", tmp_path / "log"
    done.write_text("test_x.py::test_done\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "cresset_recorder", "-p"]
    command += ["no:cacheprovider", "test_x.py"]
    env = {
        "PYTHONPATH": str(ROOT / "tools" / "ecosystem" / "plugin"),
        "ECOSYSTEM_RESULTS": str(log),
        "ECOSYSTEM_DONE": str(done),
    }
    subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=60)
    tests, running = suite.read(log)
    assert {name.split("::")[1]: test.outcome for name, test in tests.items()} == {
        "test_ok": "passed",
        "test_bad": "failed",
        "test_skip": "skipped",
    }
    assert "why" in tests["test_x.py::test_bad"].message and running == []


def test_test_under_way_is_known_after_a_crash(tmp_path):
    log = tmp_path / "log"
    lines = [{"start": "a"}, {"id": "a", "outcome": "passed", "message": "", "seconds": 1}]
    log.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"start": "b"}]))
    tests, running = suite.read(log)
    assert list(tests) == ["a"] and running == ["b"]


def test_metadata_names_the_version_of_the_package(tmp_path):
    import torch

    metadata.write(tmp_path)
    (found,) = importlib.metadata.distributions(path=[str(tmp_path)])
    assert found.metadata["Name"] == "torch" and found.version == torch.__version__
    assert any("openblas" in one for one in found.requires)
    assert all(str(file).startswith("torch-") for file in found.files)


def test_torch_has_package_metadata():
    import torch

    assert importlib.metadata.version("torch") == torch.__version__
