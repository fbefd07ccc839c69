"""Twenty models of transformers, timm and torchvision in small configurations, forward and a
training step, captured with backend="eager": how many graphs, whether one graph holds the whole
model, whether results and gradients are those of plain Python bit for bit, and the processor time
that capturing takes. Every model runs in a process of its own, ours and the peer's in turns.

    python benchmarks/dynamo_models.py [--peer <python with PyTorch>] [--only llama,vit]
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
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
T5 = {
    "vocab_size": 128,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
WHISPER = {
    "vocab_size": 128,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "num_mel_bins": 16,
    "max_source_positions": 32,
    "max_target_positions": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
VIT = {**SMALL, "image_size": 32, "patch_size": 8}
# name: (class, configuration, arguments of the configuration)
LANGUAGE = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2),
    "bert": ("BertForMaskedLM", "BertConfig", SMALL),
    "llama": ("LlamaForCausalLM", "LlamaConfig", SHARED),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", SHARED),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5),
    "vit": ("ViTForImageClassification", "ViTConfig", VIT),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", WHISPER),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**SHARED, "num_local_experts": 4}),
}
TIMM = [
    *("resnet18", "efficientnet_b0", "mobilenetv3_small_050", "vit_tiny_patch16_224"),
    *("convnext_atto", "deit_tiny_patch16_224", "mixer_s32_224", "regnetx_002", "densenet121"),
    "swin_tiny_patch4_window7_224",
]
VISION = ["resnet18", "mobilenet_v2"]
NAMES = [*LANGUAGE, *(f"timm.{name}" for name in TIMM), *(f"vision.{name}" for name in VISION)]


def language(name: str) -> tuple[object, dict[str, object]]:
    """A model of transformers and its arguments."""
    import torch

    model, config, settings = LANGUAGE[name]
    transformers = importlib.import_module("transformers")
    made = getattr(transformers, model)(getattr(transformers, config)(**settings))
    ids = torch.randint(3, 128, (2, 16))
    if name == "vit":
        return made, {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
    if name == "whisper":
        return made, {"input_features": torch.randn(2, 16, 64), "labels": ids}
    inputs = {"input_ids": ids, "labels": ids}
    return made, inputs if name == "bert" else {**inputs, "use_cache": False}


def pictures(name: str) -> tuple[object, dict[str, object]]:
    """A model of pictures and its arguments."""
    import torch

    package, name = name.split(".")
    if package == "timm":
        made = importlib.import_module("timm").create_model(name, num_classes=10)
    else:
        made = getattr(importlib.import_module("torchvision.models"), name)(num_classes=10)
    size = 224 if "224" in name else 64
    return made, {"x": torch.randn(2, 3, size, size)}


def one(name: str) -> dict[str, object]:
    """The figures of one model."""
    import torch

    # A build of torchvision for another torch has none of its operators, which no model here needs;
    # ours come with torch.
    if not hasattr(torch._C, "_register_vision_operators"):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs = language(name) if name in LANGUAGE else pictures(name)
    for part in model.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
    return {"name": name, **forward(model, inputs), **training(model, inputs)}


def first_of(out: object) -> object:
    """The tensor that matters in what a model returns."""
    return out.logits if hasattr(out, "logits") else out


def counted(model: object, **options: object) -> tuple[Callable, list[int]]:
    """The compiled model, and a list with the operators of each graph."""
    import torch

    graphs: list[int] = []

    def backend(gm: object, examples: object) -> Callable:
        graphs.append(len(gm.graph.nodes))
        return gm.forward

    torch._dynamo.reset()
    return torch.compile(model, backend=backend, **options), graphs


def forward(model: object, inputs: dict[str, object]) -> dict[str, object]:
    """Inference: graphs, whether one is enough, time, and whether bits agree."""
    import torch

    model.eval()
    with torch.no_grad():
        wanted = first_of(model(**inputs)).clone()
        start = time.process_time()
        first_of(model(**inputs))
        plain = time.process_time() - start
        compiled, graphs = counted(model)
        start = time.process_time()
        got = first_of(compiled(**inputs))
        spent = time.process_time() - start - plain
        again, _ = counted(model)
        start = time.process_time()
        again(**inputs)
        second = time.process_time() - start - plain
        try:
            counted(model, fullgraph=True)[0](**inputs)
            full = True
        except Exception:
            full = False
    return {
        "graphs": len(graphs),
        "fullgraph": full,
        "trace_ms": spent * 1e3,
        "trace_again_ms": second * 1e3,
        "equal": torch.equal(wanted, got),
    }


def training(model: object, inputs: dict[str, object]) -> dict[str, object]:
    """A training step: graphs, and whether loss and gradients agree bit for bit."""
    import torch

    model.train()
    state = {name: value.clone() for name, value in model.state_dict().items()}

    def step(run: Callable) -> list:
        model.load_state_dict(state)
        model.zero_grad(set_to_none=True)
        torch.manual_seed(1)
        out = run(**inputs)
        loss = out.loss if hasattr(out, "loss") else out.float().square().mean()
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        return [loss.detach().clone(), *(g.clone() for g in grads)]

    wanted, repeated = step(model), step(model)
    compiled, graphs = counted(model)
    got = step(compiled)

    def same(a: list, b: list) -> bool:
        return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))

    return {
        "train_graphs": len(graphs),
        "train_equal": same(wanted, got),
        "repeatable": same(wanted, repeated),
    }


def measured(python: str, name: str) -> dict[str, object]:
    """The figures of one model on one Python."""
    command = [python, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"name": name, "error": done.stderr.strip().splitlines()[-1:]}
    return json.loads(lines[-1])


def main() -> int:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer")
    parser.add_argument("--only", default="")
    parser.add_argument("--one")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.one:
        print(json.dumps(one(given.one)), flush=True)
        return 0
    wrong = 0
    for name in [n for n in NAMES if not given.only or n in given.only.split(",")]:
        ours = measured(sys.executable, name)
        print(f"ours {ours}", flush=True)
        wrong += not (ours.get("equal") and ours.get("train_equal"))
        if given.peer:
            peer = measured(given.peer, name)
            print(f"peer {peer}", flush=True)
            if "trace_ms" in ours and "trace_ms" in peer:
                print(f"     {name}: {peer['trace_ms'] / ours['trace_ms']:.1f}x", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
