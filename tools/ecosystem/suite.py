"""Runs one test suite in one environment to its end, whatever the tests do to their process.

pytest runs with the recorder plugin. When the process dies or stops making progress, the test that
was under way is written down as crashed or hung, and a new process goes on with those not yet run.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from environment import clean_environment, python_of
from project import HERE, Project

FINISHED = (0, 1, 5)
STALL_SECONDS = 120
RESTARTS = 40
CONFIGURATIONS = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": r"^\[tool\.pytest\b",
    "tox.ini": r"^\[pytest\]",
    "setup.cfg": r"^\[tool:pytest\]",
}


@dataclasses.dataclass
class Outcome:
    outcome: str
    message: str
    seconds: float


@dataclasses.dataclass
class Results:
    tests: dict[str, Outcome] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    trouble: str = ""

    def of(self, *outcomes: str) -> list[str]:
        return [test for test, result in self.tests.items() if result.outcome in outcomes]


def read(path: pathlib.Path) -> tuple[dict[str, Outcome], list[str]]:
    """What has ended and what has only started."""
    tests: dict[str, Outcome] = {}
    running: dict[str, None] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        if "start" in record:
            running[record["start"]] = None
        else:
            test = record.pop("id")
            running.pop(test, None)
            tests[test] = Outcome(**record)
    return tests, list(running)


def configured(folder: pathlib.Path) -> bool:
    """Whether pytest would take its options from a file in this folder."""
    return any(
        path.exists() and re.search(section, path.read_text(), re.MULTILINE)
        for path, section in ((folder / name, section) for name, section in CONFIGURATIONS.items())
    )


def place_of(project: Project, work: pathlib.Path) -> list[str]:
    """Where pytest finds itself. Left to itself it looks upwards from the tests for a
    configuration, past the unpacked source up to that of the tree in which all this lies: then the
    ids would depend on where that is and our options would hold for a foreign suite."""
    source = work / "src"
    start = source / project.cwd
    tests = [(start / test.split("::")[0]).resolve() for test in project.tests] or [start.resolve()]
    common = pathlib.Path(os.path.commonpath(tests))
    folders = [common, *common.parents]
    inside = folders[: folders.index(source.resolve()) + 1]
    words = [f"--rootdir={start}"]
    if not any(configured(folder) for folder in inside if folder.is_dir()):
        empty = work / "pytest.ini"
        empty.write_text("[pytest]\n")
        words += ["-c", str(empty)]
    return words


def command_of(project: Project, venv: pathlib.Path, work: pathlib.Path, jobs: int) -> list[str]:
    words = [str(python_of(venv)), str(venv / "bin" / "pytest"), "-q", "-p", "cresset_recorder"]
    words += ["-p", "no:cacheprovider", "--continue-on-collection-errors", "--tb=short"]
    words += [f"--timeout={project.timeout}", "--timeout-method=signal"]
    words += [f"--junitxml={work / 'junit.xml'}", *(["-n", str(jobs)] if jobs > 1 else [])]
    words += place_of(project, work)
    words += project.args
    return words + ([project.script] if project.script else project.tests)


def watch(process: subprocess.Popen[bytes], log: pathlib.Path, limit: float) -> bool:
    """Waits for the end; kills the process group and says False when nothing moves any more."""
    started = time.time()
    while process.poll() is None:
        time.sleep(0.5)
        last = log.stat().st_mtime if log.exists() else started
        if time.time() - max(last, started) > limit:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
    return True


def run(project: Project, venv: pathlib.Path, work: pathlib.Path, jobs: int) -> Results:
    """`work` holds src (the tests) and receives results.jsonl and log.txt."""
    log, done = work / "results.jsonl", work / "done.txt"
    log.unlink(missing_ok=True)
    environment = clean_environment() | project.env
    environment.pop("PYTEST_ADDOPTS", None)
    # Test suites are long rows of tiny operations: thread pools would only wake up and wait.
    environment.setdefault("OMP_NUM_THREADS", "1")
    environment["PYTHONPATH"] = str(HERE / "plugin")
    environment["ECOSYSTEM_RESULTS"], environment["ECOSYSTEM_DONE"] = str(log), str(done)
    environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{environment.get('PATH', '')}"
    start, results = time.time(), Results()
    with open(work / "log.txt", "wb") as output:
        for _ in range(RESTARTS):
            tests, _ = read(log)
            done.write_text("".join(f"{test}\n" for test in tests))
            process = subprocess.Popen(
                command_of(project, venv, work, jobs),
                cwd=work / "src" / project.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            moving = watch(process, log, project.timeout + STALL_SECONDS)
            if moving and process.returncode in FINISHED:
                break
            _, running = read(log)
            if not running:
                results.trouble = f"pytest ended with status {process.returncode}; see log.txt"
                break
            word = f"status {process.returncode}" if moving else "no progress, killed"
            with open(log, "a") as file:
                for test in running:
                    record = {"id": test, "outcome": "crashed", "message": word, "seconds": 0}
                    file.write(json.dumps(record) + "\n")
    results.tests, _ = read(log)
    results.seconds = time.time() - start
    return results
