"""Models of transformers, timm, torchvision and recurrent ones, in small configurations: exported
with fixed sizes and with a batch and a length that vary, saved, loaded and run in a process that
has none of the model's code. Results must be those of plain Python bit for bit, for the example
and, where sizes vary, for others. With --onnx the same as ONNX models, run by ONNX Runtime, within
1e-4 of the largest value.

    python benchmarks/exported_models.py [--onnx] [--only gpt2,vision.resnet18] [--python <other>]
"""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable

SMALL = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}
SHARED = {**SMALL, "num_key_value_heads": 2}
GPT2 = {"vocab_size": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
DISTIL = {"vocab_size": 128, "dim": 64, "hidden_dim": 128, "n_layers": 2, "n_heads": 4}
OPT = {"vocab_size": 128, "hidden_size": 64, "word_embed_proj_dim": 64, "ffn_dim": 128}
OPT |= {"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 128}
T5 = {"vocab_size": 128, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
T5 |= {"pad_token_id": 0, "decoder_start_token_id": 0}
PAIR = {"vocab_size": 128, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2}
PAIR |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128}
PAIR |= {"decoder_ffn_dim": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
PAIR |= {"decoder_start_token_id": 1}
WHISPER = {**PAIR, "num_mel_bins": 16, "max_source_positions": 32, "max_target_positions": 64}
VIT = {**SMALL, "image_size": 32, "patch_size": 8}
CLIP = {
    "text_config": {**SMALL, "eos_token_id": 2},
    "vision_config": {k: v for k, v in VIT.items() if k != "vocab_size"},
    "projection_dim": 32,
}
WAVE = {**SMALL, "conv_dim": (32, 32), "conv_stride": (5, 4), "conv_kernel": (10, 8)}
WAVE |= {"num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16, "feat_extract_norm": "group"}
WAVE |= {"num_conv_pos_embedding_groups": 4, "mask_time_prob": 0.0}
SEGFORMER = {"depths": (1, 1, 1, 1), "hidden_sizes": (8, 16, 32, 64), "decoder_hidden_size": 32}
PHI = {**SMALL, "pad_token_id": 0}
GEMMA = {**SHARED, "head_dim": 16, "pad_token_id": 0}
MOE = {**SHARED, "num_local_experts": 4, "experts_implementation": "batched_mm"}

# Arguments: the letters b and l stand for the batch and a length.
IDS = {"input_ids": "int b l"}
TEXT = {"input_ids": "int b l", "attention_mask": "one b l"}
CACHE = {"use_cache": False}
PICTURE = {"pixel_values": "float b 3 32 32"}
BOTH = {**IDS, "decoder_input_ids": "int b 7"}
# name: (class, configuration, arguments of the configuration, arguments, other arguments)
LANGUAGE = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, TEXT, CACHE),
    "bert": ("BertForMaskedLM", "BertConfig", SMALL, TEXT, {}),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", SMALL, TEXT, {}),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", DISTIL, TEXT, {}),
    "electra": ("ElectraForPreTraining", "ElectraConfig", SMALL, TEXT, {}),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {**SMALL, "embedding_size": 32}, TEXT, {}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", SHARED, TEXT, CACHE),
    "mistral": ("MistralForCausalLM", "MistralConfig", SHARED, TEXT, CACHE),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", SHARED, TEXT, CACHE),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", GEMMA, TEXT, CACHE),
    "phi": ("PhiForCausalLM", "PhiConfig", PHI, TEXT, CACHE),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, TEXT, CACHE),
    "opt": ("OPTForCausalLM", "OPTConfig", OPT, TEXT, CACHE),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", MOE, IDS, CACHE),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5, BOTH, CACHE),
    "bart": ("BartForConditionalGeneration", "BartConfig", PAIR, BOTH, CACHE),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        WHISPER,
        {"input_features": "float b 16 64", "decoder_input_ids": "int b l"},
        CACHE,
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", VIT, PICTURE, {}),
    "clip": ("CLIPModel", "CLIPConfig", CLIP, {**TEXT, **PICTURE}, {}),
    "wav2vec2": ("Wav2Vec2ForCTC", "Wav2Vec2Config", WAVE, {"input_values": "float b 1600"}, {}),
    "segformer": (
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        SEGFORMER,
        {"pixel_values": "float b 3 64 64"},
        {},
    ),
}
TIMM = [
    *("resnet18", "efficientnet_b0", "mobilenetv3_small_050", "vit_tiny_patch16_224"),
    *("convnext_atto", "deit_tiny_patch16_224", "mixer_s32_224", "regnetx_002", "densenet121"),
    "swin_tiny_patch4_window7_224",
]
VISION = ["resnet18", "mobilenet_v2", "squeezenet1_1", "shufflenet_v2_x0_5", "vgg11"]
PLAIN = ["lstm", "bidirectional", "segmentation"]
DETECTORS = {"mobilenet_v3_small": 576, "squeezenet1_1": 512}  # channels of what they see
NAMES = [
    *(*LANGUAGE, *PLAIN, *(f"timm.{name}" for name in TIMM)),
    *(*(f"vision.{name}" for name in VISION), *(f"detection.{name}" for name in DETECTORS)),
]
SIZES = ({"b": 2, "l": 16}, {"b": 3, "l": 11})


def made(name: str) -> tuple[object, dict[str, str], dict[str, object]]:
    """A model, its arguments in words, and further arguments."""
    import torch
    from torch import nn

    class Recurrent(nn.Module):
        def __init__(self, both: bool) -> None:
            super().__init__()
            self.embed = nn.Embedding(128, 24)
            self.lstm = nn.LSTM(24, 32, 2, batch_first=True, bidirectional=both)
            self.out = nn.Linear(64 if both else 32, 10)

        def forward(self, x: torch.Tensor) -> tuple:
            found, state = self.lstm(self.embed(x))
            return self.out(found), state

    class Plain(nn.Module):
        """What a model of transformers returns, without the classes of the package."""

        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, **given: object) -> list:
            return tensors(self.model(**given))

    class Detector(nn.Module):
        """Boxes and scores at each place of a picture's features, the best of overlapping ones,
        and what the features say of each box."""

        def __init__(self, backbone: str) -> None:
            super().__init__()
            models = importlib.import_module("torchvision.models")
            self.features = getattr(models, backbone)(weights=None).features
            self.found = nn.Conv2d(DETECTORS[backbone], 5, 1)
            self.kind = nn.Linear(DETECTORS[backbone], 3)

        def forward(self, x: torch.Tensor) -> tuple:
            from torchvision import ops

            seen = self.features(x)
            found = self.found(seen).flatten(2).transpose(1, 2)
            corner, size = 64 * found[..., 0:2].sigmoid(), 32 * found[..., 2:4].sigmoid() + 1
            boxes = torch.cat([corner, corner + size], -1)
            picture = torch.arange(x.shape[0]).view(-1, 1, 1).expand(-1, boxes.shape[1], 1)
            scores = found[..., 4].sigmoid().flatten()
            # Boxes of different pictures never overlap.
            kept = ops.nms((boxes + 1000.0 * picture).flatten(0, 1), scores, 0.3)
            regions = torch.cat([picture.to(boxes.dtype), boxes], -1).flatten(0, 1)[kept]
            pooled = ops.roi_align(seen, regions, 3, seen.shape[-1] / 64, 2)
            return regions, scores[kept], self.kind(pooled.mean((2, 3))).softmax(-1)

    if name in LANGUAGE:
        model, config, settings, words, more = LANGUAGE[name]
        transformers = importlib.import_module("transformers")
        made = getattr(transformers, config)(**settings)
        return Plain(getattr(transformers, model)(made)), words, more
    if name in ("lstm", "bidirectional"):
        return Recurrent(name != "lstm"), {"x": "int b l"}, {}
    if name == "segmentation":
        models = importlib.import_module("torchvision.models.segmentation")
        model = models.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=3)
        return model, {"input": "float b 3 64 64"}, {}
    package, name = name.split(".")
    if package == "detection":
        return Detector(name), {"x": "float b 3 64 64"}, {}
    size = 224 if "224" in name else 64
    if package == "timm":
        model = importlib.import_module("timm").create_model(name, num_classes=10)
    else:
        model = getattr(importlib.import_module("torchvision.models"), name)(num_classes=10)
    return model, {"x": f"float b 3 {size} {size}"}, {}


def arguments(words: dict[str, str], sizes: dict[str, int]) -> dict[str, object]:
    """Tensors for arguments in words."""
    import torch

    found = {}
    for name, text in words.items():
        kind, *shape = text.split()
        shape = [sizes[s] if s in sizes else int(s) for s in shape]
        if kind == "float":
            found[name] = torch.rand(shape)
        elif kind == "one":
            found[name] = torch.ones(shape, dtype=torch.int64)
        else:
            found[name] = torch.randint(3, 128, shape)
    return found


def varying(words: dict[str, str], more: dict[str, object]) -> dict[str, object] | None:
    """What torch.export is told about sizes; None where none varies."""
    from torch.export import Dim

    dims = {"b": Dim("batch", min=2, max=64), "l": Dim("length", min=2, max=64)}
    shapes: dict[str, object] = dict.fromkeys(more)
    for name, text in words.items():
        shape = text.split()[1:]
        shapes[name] = {i: dims[s] for i, s in enumerate(shape) if s in dims}
    return shapes if any(shapes.values()) else None


def tensors(out: object) -> list:
    """The tensors of what a model returns."""
    import torch

    return [x for x in torch.utils._pytree.tree_leaves(out) if isinstance(x, torch.Tensor)]


def prepared(name: str) -> tuple[object, dict[str, str], dict[str, object]]:
    """A model ready for inference, with pytrees for what it returns."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, words, more = made(name)
    return model.eval(), words, more


def write(name: str, folder: pathlib.Path) -> dict[str, object]:
    """Exports a model in both ways and writes archives, arguments and what plain Python gives."""
    import torch

    model, words, more = prepared(name)
    given = [arguments(words, sizes) for sizes in SIZES]
    shapes = varying(words, more)
    torch.save(given, folder / "given.pt")
    with torch.no_grad():
        wanted = [tensors(model(**one, **more)) for one in given]
        torch.save(wanted, folder / "wanted.pt")
        report: dict[str, object] = {"name": name}
        for kind, told in (("static", None), ("dynamic", shapes)):
            if kind == "dynamic" and shapes is None:
                continue
            start = time.perf_counter()
            try:
                program = torch.export.export(
                    model, (), {**given[0], **more}, dynamic_shapes=told, strict=False
                )
                report[f"{kind}_s"] = round(time.perf_counter() - start, 2)
                torch.export.save(program, folder / f"{kind}.pt2")
            except Exception as error:
                report[f"{kind}_error"] = f"{type(error).__name__}: {error}"[:600]
                traceback.print_exc()
    (folder / "more.json").write_text(json.dumps(more))
    return report


def read(folder: pathlib.Path) -> dict[str, object]:
    """Loads what `write` wrote and compares."""
    import torch

    torch.set_num_threads(1)
    if folder.name.startswith("detection"):
        register_vision()
    given, wanted = (torch.load(folder / f"{n}.pt") for n in ("given", "wanted"))
    more = json.loads((folder / "more.json").read_text())
    report: dict[str, object] = {}
    for kind, count in (("static", 1), ("dynamic", 2)):
        path = folder / f"{kind}.pt2"
        if not path.exists():
            continue
        try:
            with torch.no_grad():
                module = torch.export.load(path).module()
                equal = True
                for one, want in zip(given[:count], wanted, strict=False):
                    got = tensors(module(**one, **more))
                    equal = equal and len(got) == len(want)
                    equal = equal and all(map(torch.equal, got, want))
            report[kind] = equal
        except Exception as error:
            report[f"{kind}_error"] = f"{type(error).__name__}: {error}"[:600]
            traceback.print_exc()
    return report


def register_vision() -> None:
    """torchvision's operators, where the package brings them; its models are not loaded."""
    import torch

    if not hasattr(torch.ops.torchvision, "nms"):
        importlib.import_module("torchvision")


def onnx(folder: pathlib.Path) -> dict[str, object]:
    """The archive as an ONNX model, run by ONNX Runtime."""
    import torch

    torch.set_num_threads(1)
    given, wanted = (torch.load(folder / f"{n}.pt") for n in ("given", "wanted"))
    register_vision()
    kind = "dynamic" if (folder / "dynamic.pt2").exists() else "static"
    start = time.perf_counter()
    program = torch.onnx.export(torch.export.load(folder / f"{kind}.pt2"))
    report: dict[str, object] = {"onnx_s": round(time.perf_counter() - start, 2)}
    program.save(folder / "model.onnx")
    runtime = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    worst = 0.0
    for one, want in zip(given if kind == "dynamic" else given[:1], wanted, strict=False):
        # Arguments in order: one that is called as a function of Python has another name in graphs.
        tensors_given = [value.numpy() for value in one.values()]
        got = session.run(None, dict(zip(names, tensors_given, strict=True)))
        found = [torch.from_numpy(x) for x in got]
        if len(found) != len(want):
            return {**report, "onnx_error": f"{len(found)} results for {len(want)}"}
        for a, b in zip(found, want, strict=True):
            if a.shape != b.shape:
                return {**report, "onnx_error": f"{list(a.shape)} for {list(b.shape)}"}
            if b.numel():
                error = (a.double() - b.double()).abs().max() / max(1.0, float(b.abs().max()))
                worst = max(worst, float(error))
    return {**report, "onnx": worst, "onnx_sizes": kind}


STEPS: dict[str, Callable] = {"read": read, "onnx": onnx}


def in_process(python: str, *words: str) -> dict[str, object]:
    """What a step in a process of its own reports."""
    done = subprocess.run(
        [python, __file__, "--step", *words], capture_output=True, text=True, cwd="/"
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if "Traceback" in done.stderr or not lines:
        sys.stderr.write(done.stderr[-3000:])
    if not lines:
        return {f"{words[0]}_error": "".join(done.stderr.strip().splitlines()[-1:])[:600]}
    return json.loads(lines[-1])


def measured(name: str, python: str, with_onnx: bool) -> dict[str, object]:
    """All that is asked of one model."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / name
        folder.mkdir()
        report = in_process(python, "write", name, str(folder))
        if not list(folder.glob("*.pt2")):
            return report
        report |= in_process(python, "read", str(folder))
        if with_onnx:
            report |= in_process(python, "onnx", str(folder))
    return report


def main() -> int:
    """Prints a line for each model, then how many passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--onnx", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--step", nargs="+")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.step:
        kind, *rest = given.step
        done = write(rest[0], pathlib.Path(rest[1])) if kind == "write" else None
        done = done or STEPS[kind](pathlib.Path(rest[0]))
        print(json.dumps(done), flush=True)
        return 0
    names = [n for n in NAMES if not given.only or n in given.only.split(",")]
    equal = close = 0
    for name in names:
        report = measured(name, given.python, given.onnx)
        print(json.dumps(report), flush=True)
        varies = "dynamic_s" in report or "dynamic_error" in report
        equal += bool(report.get("static") and (report.get("dynamic") or not varies))
        close += report.get("onnx", 1.0) <= 1e-4
    print(f"{equal} of {len(names)} equal" + f", {close} by ONNX Runtime" * given.onnx)
    return 0 if equal == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
