"""What stands on transformers: adapters (peft), diffusion models (diffusers), sentence embeddings
(sentence-transformers), and two model collections (x-transformers, open_clip). Everything is made
from configurations; numbers are compared with the peer's."""

import pytest
from recorded import Recorded

import torch

recorded = Recorded("language")


def llama():
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        vocab_size=99,
    )
    return transformers.LlamaForCausalLM(config)


IDS = torch.arange(3, 21).view(2, 9)

ADAPTERS = {
    "lora": lambda p: p.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]),
    "dora": lambda p: p.LoraConfig(r=4, target_modules=["q_proj"], use_dora=True),
    "rslora": lambda p: p.LoraConfig(r=4, target_modules="all-linear", use_rslora=True),
    "loha": lambda p: p.LoHaConfig(r=4, target_modules=["q_proj"]),
    "lokr": lambda p: p.LoKrConfig(r=4, target_modules=["q_proj"]),
    "ia3": lambda p: p.IA3Config(
        target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]
    ),
    "adalora": lambda p: p.AdaLoraConfig(target_modules=["q_proj"], total_step=20),
    "oft": lambda p: p.OFTConfig(target_modules=["q_proj"], oft_block_size=4),
    "boft": lambda p: p.BOFTConfig(target_modules=["q_proj"], boft_block_size=4),
    "vera": lambda p: p.VeraConfig(r=4, target_modules=["q_proj"]),
    "prompt": lambda p: p.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
    "prefix": lambda p: p.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
    "ptuning": lambda p: p.PromptEncoderConfig(
        task_type="CAUSAL_LM", num_virtual_tokens=4, encoder_hidden_size=16
    ),
    "ln": lambda p: p.LNTuningConfig(task_type="CAUSAL_LM"),
}


@pytest.mark.parametrize("kind", ADAPTERS)
def test_peft(kind, tmp_path) -> None:
    import peft

    base = llama()
    torch.manual_seed(1)
    model = peft.get_peft_model(base, ADAPTERS[kind](peft))
    trainable, total = model.get_nb_trainable_parameters()
    assert 0 < trainable < total
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(input_ids=IDS, labels=IDS).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    recorded.check(f"peft {kind}", [trainable, *losses], rel=2e-3)
    model.eval()
    model.save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(llama(), tmp_path).eval()
    torch.testing.assert_close(again(input_ids=IDS).logits, model(input_ids=IDS).logits)


@pytest.mark.parametrize("kind", ["lora", "dora", "rslora", "loha", "lokr", "ia3", "oft"])
def test_peft_merge(kind) -> None:
    import peft

    torch.manual_seed(1)
    model = peft.get_peft_model(llama(), ADAPTERS[kind](peft))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.02)
    model.eval()
    before = model(input_ids=IDS).logits
    after = model.merge_and_unload()(input_ids=IDS).logits
    torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-4)


def test_peft_switching() -> None:
    import peft

    model = peft.get_peft_model(llama(), ADAPTERS["lora"](peft), adapter_name="one")
    model.add_adapter("two", peft.LoraConfig(r=2, target_modules=["q_proj"]))
    model.set_adapter("two")
    assert model.active_adapter == "two"
    with model.disable_adapter():
        torch.testing.assert_close(model(input_ids=IDS).logits, llama()(input_ids=IDS).logits)
    model.delete_adapter("one")


# ---- diffusers


def unet():
    from diffusers import UNet2DModel

    torch.manual_seed(0)
    return UNet2DModel(
        sample_size=8,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )


def test_unet_trains(tmp_path) -> None:
    from diffusers import DDPMScheduler

    model, noise_scheduler = unet(), DDPMScheduler(num_train_timesteps=50)
    torch.manual_seed(1)
    images, noise = torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    times = torch.tensor([3, 40])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(4):
        noisy = noise_scheduler.add_noise(images, noise, times)
        loss = torch.nn.functional.mse_loss(model(noisy, times).sample, noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    recorded.check("unet", losses, rel=1e-3)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    torch.testing.assert_close(again(images, times).sample, model(images, times).sample)


SCHEDULERS = [
    "DDPMScheduler",
    "DDIMScheduler",
    "PNDMScheduler",
    "LMSDiscreteScheduler",
    "EulerDiscreteScheduler",
    "EulerAncestralDiscreteScheduler",
    "HeunDiscreteScheduler",
    "DPMSolverMultistepScheduler",
    "DPMSolverSinglestepScheduler",
    "UniPCMultistepScheduler",
    "DEISMultistepScheduler",
    "KDPM2DiscreteScheduler",
    "LCMScheduler",
    "FlowMatchEulerDiscreteScheduler",
]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_scheduler(name) -> None:
    import diffusers

    scheduler = getattr(diffusers, name)()
    scheduler.set_timesteps(5)
    generator = torch.Generator().manual_seed(0)
    sample = torch.randn(1, 3, 4, 4, generator=generator)
    if hasattr(scheduler, "init_noise_sigma"):
        sample = sample * scheduler.init_noise_sigma
    takes_generator = "generator" in scheduler.step.__code__.co_varnames
    for time in scheduler.timesteps:
        scaled = sample
        if hasattr(scheduler, "scale_model_input"):
            scaled = scheduler.scale_model_input(sample, time)
        options = {"generator": generator} if takes_generator else {}
        sample = scheduler.step(scaled * 0.1, time, sample, **options).prev_sample
    recorded.check(f"scheduler {name}", sample.flatten()[:6], rel=1e-3)


def test_ddpm_pipeline(tmp_path) -> None:
    from diffusers import DDIMScheduler, DDPMPipeline

    pipeline = DDPMPipeline(unet().eval(), DDIMScheduler(num_train_timesteps=50))
    pipeline.set_progress_bar_config(disable=True)
    generator = torch.Generator().manual_seed(0)
    images = pipeline(num_inference_steps=3, generator=generator, output_type="np").images
    assert images.shape == (1, 8, 8, 3)
    recorded.check("pipeline", float(images.mean()), rel=1e-3)
    pipeline.save_pretrained(tmp_path)
    DDPMPipeline.from_pretrained(tmp_path)


def test_conditional_unet_and_vae() -> None:
    from diffusers import AutoencoderKL, UNet2DConditionModel

    torch.manual_seed(0)
    model = UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
    )
    sample = model(torch.randn(2, 4, 8, 8), 3, torch.randn(2, 5, 16)).sample
    sample.square().mean().backward()
    recorded.check("conditional", sample.detach().flatten()[:5], rel=1e-3)
    vae = AutoencoderKL(
        in_channels=3,
        out_channels=3,
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=4,
        latent_channels=4,
    )
    posterior = vae.encode(torch.randn(1, 3, 16, 16)).latent_dist
    decoded = vae.decode(posterior.sample(torch.Generator().manual_seed(0))).sample
    assert decoded.shape == (1, 3, 16, 16)
    (decoded.mean() + posterior.kl().mean()).backward()


def test_diffusion_transformer_and_ema() -> None:
    from diffusers import DiTTransformer2DModel
    from diffusers.training_utils import EMAModel

    torch.manual_seed(0)
    model = DiTTransformer2DModel(
        num_attention_heads=2,
        attention_head_dim=8,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=8,
        patch_size=2,
        norm_num_groups=4,
        num_embeds_ada_norm=10,
    )
    out = model(torch.randn(1, 4, 8, 8), torch.tensor([1]), torch.tensor([2])).sample
    assert out.shape == (1, 8, 8, 8)
    average = EMAModel(model.parameters(), decay=0.9)
    average.step(model.parameters())
    average.copy_to(model.parameters())


# ---- sentence-transformers


def sentence_model(folder):
    import transformers
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    except ImportError:
        from sentence_transformers.sentence_transformer.modules import (
            Dense,
            Normalize,
            Pooling,
            Transformer,
        )

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz"]
    words += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    words = Transformer(str(folder), max_seq_length=32)
    return SentenceTransformer(
        modules=[words, Pooling(32, "mean"), Dense(32, 16), Normalize()], device="cpu"
    )


def test_sentence_transformer(tmp_path) -> None:
    from sentence_transformers import util

    torch.manual_seed(0)
    model = sentence_model(tmp_path)
    found = model.encode(["a cat sat", "a dog ran", "the sky"], convert_to_tensor=True)
    assert found.shape == (3, 16)
    similarity = util.cos_sim(found, found)
    torch.testing.assert_close(similarity.diagonal(), torch.ones(3))
    hits = util.semantic_search(found[:1], found, top_k=2)
    assert hits[0][0]["corpus_id"] == 0
    model.save(str(tmp_path / "saved"))
    again = type(model)(str(tmp_path / "saved"), device="cpu")
    torch.testing.assert_close(again.encode(["a cat sat"], convert_to_tensor=True), found[:1])


@pytest.mark.parametrize("loss", ["CosineSimilarityLoss", "MultipleNegativesRankingLoss"])
def test_sentence_losses(loss, tmp_path) -> None:
    from sentence_transformers import losses

    torch.manual_seed(0)
    model = sentence_model(tmp_path)
    objective = getattr(losses, loss)(model)
    features = [model.tokenize(["a cat", "dog", "sky"]), model.tokenize(["cats", "a dog", "sun"])]
    value = objective(features, torch.tensor([0.9, 0.8, 0.2]))
    value.backward()
    assert torch.isfinite(value)


# ---- model collections


def test_x_transformers() -> None:
    from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

    torch.manual_seed(0)
    decoder = AutoregressiveWrapper(
        TransformerWrapper(
            num_tokens=50,
            max_seq_len=32,
            attn_layers=Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, attn_flash=True),
        )
    )
    ids = torch.randint(0, 50, (2, 16))
    loss = decoder(ids)
    loss.backward()
    recorded.check("x-transformers", loss.item())
    assert decoder.generate(ids[:, :4], 6).shape == (2, 6)
    encoder = TransformerWrapper(
        num_tokens=50,
        max_seq_len=32,
        attn_layers=Encoder(dim=32, depth=2, heads=4, ff_glu=True, use_rmsnorm=True),
    )
    assert encoder(ids, mask=torch.ones_like(ids).bool()).shape == (2, 16, 50)


def test_vector_quantize() -> None:
    from vector_quantize_pytorch import FSQ, LFQ, VectorQuantize

    torch.manual_seed(0)
    x = torch.randn(1, 32, 16, requires_grad=True)
    quantized, indices, loss = VectorQuantize(dim=16, codebook_size=24)(x)
    (quantized.sum() + loss.sum()).backward()
    assert indices.shape == (1, 32)
    FSQ([8, 5, 5, 5])(torch.randn(1, 16, 4))
    LFQ(codebook_size=64, dim=6)(torch.randn(1, 16, 6))
