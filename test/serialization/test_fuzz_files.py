"""The fuzzers of loading and saving (tools/fuzz): they notice planted faults, short runs of them
are clean, and files that once were not refused as they should be never come back."""

import pathlib
import pickle
import subprocess
import sys

import pytest

FUZZ = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fuzz"
CORPUS = pathlib.Path(__file__).parent / "load_corpus.txt"
sys.path.insert(0, str(FUZZ))

import load  # noqa: E402
from checkpoints import Samples, Sequence  # noqa: E402


def run(tool, *arguments):
    command = [sys.executable, str(FUZZ / tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_mutated_files_are_refused_or_harmless():
    done = run("load.py", "--n", "800", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "800 files" in done.stdout


FIRST_LOADS = """
import io, pickle, sys, torch
files = pickle.load(sys.stdin.buffer)
calls = {"safetensors": torch.serialization.load_safetensors}
for kind, data in files:
    before = set(sys.modules)
    try:
        calls.get(kind, torch.load)(io.BytesIO(data))
    except torch.serialization.CheckpointError:
        pass
    if set(sys.modules) != before:
        print(kind, set(sys.modules) - before)
"""


def test_first_load_of_a_process_imports_nothing():
    files = [(kind, data) for kind, all_ in Samples().files.items() for data in all_]
    files += [(kind, data[:-1]) for kind, data in files]
    command = [sys.executable, "-c", FIRST_LOADS]
    done = subprocess.run(command, input=pickle.dumps(files), capture_output=True, check=True)
    assert done.stdout == b""


def test_mutated_script_archives_are_refused_or_harmless():
    done = run("scripts.py", "--n", "150", "--seed", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 archives" in done.stdout


@pytest.mark.slow
def test_planted_faults_of_the_reader_of_script_archives_are_found():
    done = run("scripts.py", "--self-test")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_planted_faults_of_the_loader_are_found():
    done = run("load.py", "--self-test")
    assert done.returncode == 0, done.stdout + done.stderr


def test_mutated_files_depend_on_seed_and_number_alone():
    first, again = Sequence(3), Sequence(3)
    assert [first(i) for i in range(40)] == [again(i) for i in reversed(range(40))][::-1]


def test_corpus_stays_refused_or_harmless():
    loader = load.Loader()
    loader.warm_up(Sequence(1).samples.files)
    for line in CORPUS.read_text().splitlines():
        kind, way, data = load.corpus_entry(line)
        assert loader.load(kind, data, way)[1:] == [], line[:80]
    loader.close()


def test_interrupted_saves_leave_the_old_file_or_the_new_one():
    done = run("save.py", "--kills", "25", "--full", "20", "--errors", "40")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_planted_faults_of_saving_are_found():
    done = run("save.py", "--self-test")
    assert done.returncode == 0, done.stdout + done.stderr
