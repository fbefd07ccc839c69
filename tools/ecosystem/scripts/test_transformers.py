"""Tiny models of transformers made from configurations, nothing downloaded: forward and backward,
generation, saving and loading, and the Trainer with checkpoints. Numbers are compared with those
that the peer gave for the same seeds."""

import pytest
import transformers
from recorded import Recorded

import torch

recorded = Recorded("transformers")
SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "vocab_size": 99,
}
SPECIAL = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4, **SPECIAL
    )
    return transformers.GPT2LMHeadModel(config)


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(**SMALL, pad_token_id=0))


def llama():
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, **SPECIAL)
    return transformers.LlamaForCausalLM(config)


def qwen2():
    config = transformers.Qwen2Config(**SMALL, num_key_value_heads=2, **SPECIAL)
    return transformers.Qwen2ForCausalLM(config)


def t5():
    config = transformers.T5Config(
        vocab_size=99,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=2,
    )
    return transformers.T5ForConditionalGeneration(config)


def vit():
    sizes = {key: SMALL[key] for key in list(SMALL)[:4]}
    config = transformers.ViTConfig(**sizes, image_size=16, patch_size=4, num_labels=3)
    return transformers.ViTForImageClassification(config)


def whisper():
    config = transformers.WhisperConfig(
        vocab_size=99,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        max_source_positions=30,
        max_target_positions=40,
        decoder_start_token_id=3,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        **SPECIAL,
    )
    return transformers.WhisperForConditionalGeneration(config)


MODELS = {m.__name__: m for m in (gpt2, bert, llama, qwen2, t5, vit, whisper)}
CAUSAL = ["gpt2", "llama", "qwen2"]
GENERATIVE = [*CAUSAL, "t5", "whisper"]


def build(name, seed=0):
    torch.manual_seed(seed)
    return MODELS[name]()


def inputs_of(name, seed=1):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 99, (2, 9), generator=generator)
    if name == "vit":
        pixels = torch.randn(2, 3, 16, 16, generator=generator)
        return {"pixel_values": pixels, "labels": torch.tensor([0, 2])}
    if name == "whisper":
        features = torch.randn(2, 16, 60, generator=generator)
        return {"input_features": features, "labels": ids}
    mask = torch.ones_like(ids)
    mask[1, -3:] = 0
    return {"input_ids": ids, "attention_mask": mask, "labels": ids}


def prompt_of(name):
    inputs = inputs_of(name)
    if name == "whisper":
        return {"input_features": inputs["input_features"]}
    return {"input_ids": inputs["input_ids"][:, :5]}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_forward_backward(name, attention) -> None:
    model = build(name)
    model.set_attn_implementation(attention)
    model.eval()
    output = model(**inputs_of(name))
    output.loss.backward()
    squares = [p.grad.double().square().sum() for p in model.parameters() if p.grad is not None]
    norm = torch.stack(squares).sum().sqrt()
    values = [output.loss.item(), output.logits.double().abs().mean().item(), norm.item()]
    recorded.check(f"forward {name} {attention}", values)
    recorded.check(f"logits {name}", output.logits.detach().flatten()[:8], abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_dropout_in_training(name) -> None:
    """Dropout draws the peer's numbers, so that even the loss of a training step is equal."""
    model = build(name)
    model.set_attn_implementation("eager")
    model.train()
    torch.manual_seed(5)
    recorded.check(f"training {name}", model(**inputs_of(name)).loss.item())


@pytest.mark.parametrize("name", MODELS)
def test_training_steps(name) -> None:
    model = build(name)
    model.eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(**inputs_of(name)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    recorded.check(f"steps {name}", losses, rel=1e-3)


@pytest.mark.parametrize("name", MODELS)
def test_gradient_checkpointing(name) -> None:
    model = build(name)
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        elif isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.0
    model.set_attn_implementation("eager")
    model(**inputs_of(name)).loss.backward()
    plain = {key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    model(**inputs_of(name)).loss.backward()
    for key, parameter in model.named_parameters():
        if key in plain:
            torch.testing.assert_close(parameter.grad, plain[key], msg=key)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_half_precision(name, dtype) -> None:
    model = build(name).eval()
    inputs = inputs_of(name)
    exact = model(**inputs).logits
    halved = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs.items()}
    output = model.to(dtype)(**halved)
    assert output.logits.dtype == dtype
    torch.testing.assert_close(output.logits.float(), exact, rtol=0.1, atol=0.1)
    output.loss.backward()


@pytest.mark.parametrize("name", MODELS)
def test_autocast(name) -> None:
    model = build(name).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(**inputs_of(name))
    output.loss.backward()
    recorded.check(f"autocast {name}", output.loss.item(), rel=2e-2)


WAYS = {
    "greedy": {"do_sample": False},
    "sample": {"do_sample": True, "temperature": 1.3, "top_k": 20, "top_p": 0.9},
    "beam": {"num_beams": 3, "do_sample": False, "early_stopping": True},
    "beam_sample": {"num_beams": 3, "do_sample": True},
    "penalties": {"do_sample": False, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    "many": {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.5},
}


@pytest.mark.parametrize("name", GENERATIVE)
@pytest.mark.parametrize("way", WAYS)
def test_generate(name, way) -> None:
    model = build(name).eval()
    torch.manual_seed(7)
    tokens = model.generate(**prompt_of(name), max_new_tokens=10, min_new_tokens=4, **WAYS[way])
    recorded.check(f"generate {name} {way}", tokens.flatten().tolist())


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("cache", ["dynamic", "static", None])
def test_caches_agree(name, cache) -> None:
    model = build(name).eval()
    options = {"max_new_tokens": 8, "do_sample": False}
    plain = model.generate(**prompt_of(name), use_cache=False, **options)
    if cache is not None:
        options["cache_implementation"] = cache
    torch.testing.assert_close(model.generate(**prompt_of(name), **options), plain)


@pytest.mark.parametrize("name", CAUSAL)
def test_scores(name) -> None:
    model = build(name).eval()
    output = model.generate(
        **prompt_of(name),
        max_new_tokens=4,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
        output_hidden_states=True,
    )
    scores = model.compute_transition_scores(output.sequences, output.scores, normalize_logits=True)
    recorded.check(f"scores {name}", scores.flatten())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shards", ["5GB", "20KB"])
def test_safetensors(name, shards, tmp_path) -> None:
    model = build(name).eval()
    model.save_pretrained(tmp_path, max_shard_size=shards)
    assert list(tmp_path.glob("*.safetensors"))
    loaded = type(model).from_pretrained(tmp_path).eval()
    inputs = inputs_of(name)
    torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits)
    assert loaded.state_dict().keys() == model.state_dict().keys()


@pytest.mark.parametrize("name", MODELS)
def test_bin(name, tmp_path) -> None:
    model = build(name).eval()
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    loaded = type(model).from_pretrained(tmp_path).eval()
    inputs = inputs_of(name)
    torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits)


@pytest.mark.parametrize("name", MODELS)
def test_load_in_half(name, tmp_path) -> None:
    build(name).save_pretrained(tmp_path)
    loaded = type(build(name)).from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert {p.dtype for p in loaded.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("name", ["gpt2", "bert", "llama"])
def test_device_map(name, tmp_path) -> None:
    model = build(name).eval()
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, device_map="cpu").eval()
    inputs = inputs_of(name)
    torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits)


class Rows(torch.utils.data.Dataset):
    """Random sentences, the same for each run."""

    def __init__(self, count=64) -> None:
        generator = torch.Generator().manual_seed(3)
        self.ids = torch.randint(3, 99, (count, 9), generator=generator)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def trainer_of(folder, steps=20, name="gpt2", **options):
    settings = {
        "output_dir": str(folder),
        "max_steps": steps,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-3,
        "logging_steps": 5,
        "save_steps": 10,
        "report_to": [],
        "seed": 11,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    arguments = transformers.TrainingArguments(**{**settings, **options})
    return transformers.Trainer(
        model=build(name), args=arguments, train_dataset=Rows(), eval_dataset=Rows(8)
    )


def losses_of(trainer):
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


@pytest.mark.parametrize("name", CAUSAL)
def test_trainer(name, tmp_path) -> None:
    trainer = trainer_of(tmp_path, name=name)
    result = trainer.train()
    assert result.global_step == 20
    assert (tmp_path / "checkpoint-20").is_dir()
    losses = losses_of(trainer)
    assert losses[-1] < losses[0]
    recorded.check(f"trainer {name}", losses, rel=5e-3)
    recorded.check(f"evaluate {name}", trainer.evaluate()["eval_loss"], rel=5e-3)
    assert trainer.predict(Rows(8)).predictions.shape == (8, 9, 99)


def test_trainer_resumes(tmp_path) -> None:
    whole = trainer_of(tmp_path / "whole")
    whole.train()
    first = trainer_of(tmp_path / "parts")
    first.train()
    second = trainer_of(tmp_path / "parts")
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-10"))
    for left, right in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(left, right)


VARIANTS = {
    "accumulate": {"gradient_accumulation_steps": 2},
    "bf16": {"bf16": True},
    "clip": {"max_grad_norm": 0.1},
    "cosine": {"lr_scheduler_type": "cosine", "warmup_steps": 4},
    "adafactor": {"optim": "adafactor"},
    "sgd": {"optim": "sgd"},
    "fused": {"optim": "adamw_torch_fused"},
    "smoothing": {"label_smoothing_factor": 0.1},
    "checkpointing": {"gradient_checkpointing": True},
    "workers": {"dataloader_num_workers": 2},
    "evaluation": {"eval_strategy": "steps", "eval_steps": 5, "load_best_model_at_end": True},
    "neftune": {"neftune_noise_alpha": 0.1},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_trainer_variant(variant, tmp_path) -> None:
    trainer = trainer_of(tmp_path, **VARIANTS[variant])
    trainer.train()
    tolerance = 2e-2 if variant in ("bf16", "neftune") else 5e-3
    recorded.check(f"variant {variant}", losses_of(trainer), rel=tolerance)


def test_accelerate_loop(tmp_path) -> None:
    from accelerate import Accelerator
    from accelerate.utils import set_seed

    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = build("gpt2")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=10)
    loader = torch.utils.data.DataLoader(Rows(), batch_size=4)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather_for_metrics(loss.detach()).mean().item())
    assert losses[-1] < losses[0]
    accelerator.save_state(tmp_path)
    weights = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    accelerator.load_state(tmp_path)
    for left, right in zip(model.parameters(), weights, strict=True):
        torch.testing.assert_close(left, right)


def test_empty_weights_and_dispatch(tmp_path) -> None:
    import accelerate

    model = build("llama").eval()
    model.save_pretrained(tmp_path)
    with accelerate.init_empty_weights():
        empty = transformers.LlamaForCausalLM(model.config)
    assert {p.device.type for p in empty.parameters()} == {"meta"}
    file = next(tmp_path.glob("*.safetensors"))
    loaded = accelerate.load_checkpoint_and_dispatch(empty, str(file), device_map={"": "cpu"})
    inputs = inputs_of("llama")
    torch.testing.assert_close(loaded.eval()(**inputs).logits, model(**inputs).logits)


def test_disk_offload(tmp_path) -> None:
    import accelerate

    model = build("gpt2").eval()
    inputs = inputs_of("gpt2")
    expected = model(**inputs).logits
    accelerate.disk_offload(model, str(tmp_path), execution_device="cpu")
    torch.testing.assert_close(model(**inputs).logits, expected)
