"""The examples run: the small GPT learns, goes on from a checkpoint bit for bit, does not depend on
the number of threads, and draws a picture that can be decoded. Each of the others reaches, in its
quick form, a result that its untrained model is far from."""

import importlib
import math
import pathlib
import re
import signal
import struct
import subprocess
import sys
import zlib

import pytest

import torch

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
GPT = EXAMPLES / "gpt"
SMALL = "--layers 2 --width 32 --heads 2 --context 32 --batch 8 --sample 40".split()


@pytest.fixture
def gpt(monkeypatch):
    """The modules of the example."""
    monkeypatch.syspath_prepend(str(GPT))
    names = ("model", "plot", "text", "train")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)


def trainer_of(gpt, *arguments):
    """A trainer with a model small enough for a test."""
    options = gpt["train"].parse([*SMALL, *arguments])
    return gpt["train"].Trainer(gpt["text"].Text.bundled(), options)


def test_bundled_text_is_large_enough_and_decodes_to_itself(gpt):
    files = sorted((GPT / "data").glob("*.txt"))
    assert sum(file.stat().st_size for file in files) >= 60_000
    text = gpt["text"].Text.bundled()
    assert text.decode(text.encode("The keeper")) == "The keeper"


def test_twenty_steps_lower_the_loss(gpt):
    trainer = trainer_of(gpt, "--steps", "20", "--rate", "0.02")
    losses = [trainer.train_step() for _ in range(20)]
    assert losses[0] == pytest.approx(math.log(len(trainer.text.characters)), rel=0.05)
    assert sum(losses[-5:]) / 5 < losses[0] - 0.5


def test_resumed_run_is_bit_exact(gpt, tmp_path):
    whole = trainer_of(gpt, "--steps", "12")
    for _ in range(12):
        whole.train_step()
    first = trainer_of(gpt, "--steps", "12")
    for _ in range(5):
        first.train_step()
    torch.save(first.state(), tmp_path / "checkpoint.pt")
    second = trainer_of(gpt, "--steps", "12")
    second.restore(torch.load(tmp_path / "checkpoint.pt"))
    while second.step < 12:
        second.train_step()
    assert second.losses == whole.losses
    for mine, theirs in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_losses_do_not_depend_on_the_number_of_threads(gpt):
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            trainer = trainer_of(gpt, "--steps", "6", "--width", "64", "--batch", "16")
            found.append([trainer.train_step() for _ in range(6)])
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1]


def test_checkpoint_of_another_model_is_refused(gpt):
    state = trainer_of(gpt).state()
    with pytest.raises(SystemExit, match="another config"):
        trainer_of(gpt, "--width", "64").restore(state)


def decode_png(data):
    """Width, height and the pixels of a grey picture without filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    position, pixels, size = 8, b"", None
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        body = data[position + 8 : position + 8 + length]
        (checksum,) = struct.unpack(">I", data[position + 8 + length : position + 12 + length])
        assert checksum == zlib.crc32(kind + body)
        if kind == b"IHDR":
            size = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            pixels += body
        position += 12 + length
    width, height, depth, colour = size[:4]
    assert (depth, colour) == (8, 0)
    raw, stride = zlib.decompress(pixels), width + 1
    rows = [raw[y * stride :][:stride] for y in range(height)]
    assert len(raw) == height * stride and all(row[0] == 0 for row in rows)
    return width, height, [row[1:] for row in rows]


def colours_of(path):
    """Every colour of a picture as (red, green, blue) in 0..255."""
    from matplotlib.image import imread

    pixels = (imread(path)[..., :3] * 255).round().astype(int)
    return pixels.shape[:2], {tuple(p) for p in pixels.reshape(-1, 3).tolist()}


def test_picture_shows_steps_mean_and_held_out_loss(gpt, tmp_path):
    plot = gpt["plot"]
    losses = [4 - i / 50 + (0.3 if i % 2 else 0) for i in range(100)]
    plot.draw_losses(tmp_path / "loss.png", losses, [(50, 3.1), (99, 2.2)], "loss")
    (height, width), colours = colours_of(tmp_path / "loss.png")
    assert width > 800 and height > 480
    for colour in (plot.MEAN, plot.HELD_OUT):
        assert tuple(bytes.fromhex(colour[1:])) in colours


def test_running_mean_is_the_mean_of_what_it_has_seen(gpt):
    assert gpt["plot"].running_mean([1.0, 3.0, 5.0, 7.0], 2) == [1, 2, 4, 6]
    assert gpt["plot"].running_mean([1.0, 3.0], 5) == [1, 2]


def test_picture_of_no_steps_is_refused(gpt, tmp_path):
    with pytest.raises(ValueError, match="nothing to draw"):
        gpt["plot"].draw_losses(tmp_path / "loss.png", [], [], "loss")


def run_training(out, *arguments):
    command = [sys.executable, str(GPT / "train.py"), *SMALL, "--out", str(out), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_command_trains_writes_and_draws(tmp_path):
    process = run_training(tmp_path, "--steps", "10")
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 0, output
    assert "tokens/s" in output and "left" in output
    assert len(colours_of(tmp_path / "loss.png")[1]) > 2
    assert len(torch.load(tmp_path / "checkpoint.pt")["losses"]) == 10


def test_command_interrupted_and_repeated_gives_the_losses_of_one_run(tmp_path):
    steps = ("--steps", "150")
    process = run_training(tmp_path / "a", *steps)
    for line in process.stdout:
        if "50/150" in line:
            process.send_signal(signal.SIGINT)
            break
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 130, output
    assert "goes on from" in output
    for folder in ("a", "b"):
        process = run_training(tmp_path / folder, *steps)
        output = process.communicate(timeout=180)[0]
        assert process.returncode == 0, output
    first, second = (torch.load(tmp_path / f / "checkpoint.pt") for f in ("a", "b"))
    assert first["losses"] == second["losses"]
    assert first["tests"] == second["tests"]


def run_example(name, *arguments):
    """What the quick form of an example prints."""
    command = [sys.executable, str(EXAMPLES / name / "train.py"), "--quick", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def result_of(output):
    """The numbers of the last line."""
    last = output.splitlines()[-1]
    assert last.startswith("result: "), output
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", last)]


def losses_of(output):
    """The losses or returns of the lines of progress, which also tell the time."""
    found = re.findall(r"(?:loss|losses|mean return) (\d+\.\d+).*  \d+\.\d s$", output, re.M)
    return [float(loss) for loss in found]


def test_image_classifier_reads_new_digits():
    output = run_example("image_classifier")
    assert result_of(output)[0] > 95
    losses = losses_of(output)
    assert len(losses) == 3 and losses[-1] < 0.3 < 1 < losses[0]
    assert result_of(run_example("image_classifier", "--epochs", 0))[0] < 30


def test_vae_raises_the_bound_and_draws_samples(tmp_path):
    output = run_example("vae", "--out", tmp_path)
    after, before = result_of(output)[:2]
    assert after > -80 and before < -200
    losses = losses_of(output)
    assert len(losses) == 5 and losses == sorted(losses, reverse=True)
    width, height, rows = decode_png((tmp_path / "samples.png").read_bytes())
    assert (width, height) == (660, 396)
    shades = {shade for row in rows for shade in row}
    assert min(shades) < 10 and max(shades) > 240  # the untrained decoder paints all of it grey


def test_rl_keeps_the_pole_up_for_longer():
    output = run_example("rl")
    after, limit, before = result_of(output)[:3]
    assert limit == 200 and before < 40 and after > 120
    assert losses_of(output)[-1] > 2 * losses_of(output)[0] or losses_of(output)[0] > 100


def test_text_rnn_reads_numbers_that_it_has_not_seen():
    output = run_example("text_rnn")
    assert result_of(output)[0] > 90
    assert losses_of(output)[-1] < 0.1
    assert result_of(run_example("text_rnn", "--epochs", 0))[0] < 5


@pytest.mark.parametrize("workers", [0, 2])
def test_dataloader_resume_is_bit_exact_and_learns(tmp_path, workers):
    output = run_example("dataloader_resume", "--out", tmp_path, "--workers", workers)
    assert "losses equal, weights equal, bit for bit" in output.splitlines()[-1]
    losses = losses_of(output)
    assert losses[:2] == losses[3:5] and losses[2] == losses[5]
    assert losses[2] < 0.3 < losses[0]


@pytest.mark.parametrize("name", ["vae", "rl", "text_rnn"])
def test_second_run_of_an_example_prints_the_same_numbers(name, tmp_path):
    options = {"vae": ("--out", tmp_path, "--epochs", 2), "rl": ("--rounds", 20)}
    arguments = options.get(name, ("--epochs", 2))
    first, second = (losses_of(run_example(name, *arguments)) for _ in range(2))
    assert first == second and len(first) == 2


def test_every_example_is_listed_and_short_enough_to_read():
    listed = (EXAMPLES / "README.md").read_text()
    for folder in sorted(path for path in EXAMPLES.iterdir() if path.is_dir()):
        assert f"({folder.name}/" in listed, folder.name
        if folder != GPT:
            # Beside programs of C++ the Python files are what tests compare them with.
            files = [*folder.glob("*.cpp")] or [*folder.glob("*.py")]
            assert files, folder.name
            for file in files:
                assert len(file.read_text().splitlines()) <= 200
