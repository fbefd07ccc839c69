"""Lightning under its two names: fit, validate, test, predict, checkpoints and resuming, with
callbacks, clipping, accumulation and mixed precision; and Fabric. Losses are compared with those
that the peer gave for the same seeds."""

import importlib
import json

import pytest
from recorded import Recorded

import torch
from torch.utils.data import DataLoader, TensorDataset

recorded = Recorded("lightning")


@pytest.fixture(params=["lightning.pytorch", "pytorch_lightning"], scope="module")
def pl(request):
    return importlib.import_module(request.param)


def rows(count=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 8, generator=generator)
    y = (x.sum(1) > 0).long()
    return TensorDataset(x, y)


def loader(count=64, seed=0, **options):
    return DataLoader(rows(count, seed), batch_size=8, **options)


def make(pl, seed=1, automatic=True):
    class Classifier(pl.LightningModule):
        def __init__(self, width=16, lr=0.05) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.net = torch.nn.Sequential(
                torch.nn.Linear(8, width, bias=False),
                torch.nn.BatchNorm1d(width),
                torch.nn.ReLU(),
                torch.nn.Dropout(0.1),
                torch.nn.Linear(width, 2),
            )
            self.losses = []
            self.automatic_optimization = automatic

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, index):
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self(x), y)
            self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
            self.losses.append(loss.item())
            if not automatic:
                optimizer = self.optimizers()
                optimizer.zero_grad()
                self.manual_backward(loss)
                self.clip_gradients(optimizer, 1.0, "norm")
                optimizer.step()
                self.lr_schedulers().step()
            return loss

        def validation_step(self, batch, index) -> None:
            x, y = batch
            logits = self(x)
            self.log("val_loss", torch.nn.functional.cross_entropy(logits, y))
            self.log("val_acc", (logits.argmax(1) == y).float().mean())

        def test_step(self, batch, index) -> None:
            self.validation_step(batch, index)

        def predict_step(self, batch, index):
            return self(batch[0]).argmax(1)

        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
            return {"optimizer": optimizer, "lr_scheduler": schedule}

    pl.seed_everything(seed, verbose=False)
    return Classifier()


def trainer_of(pl, folder, **options):
    settings = {
        "accelerator": "cpu",
        "devices": 1,
        "max_epochs": 3,
        "default_root_dir": folder,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "logger": False,
        "enable_checkpointing": False,
    }
    return pl.Trainer(**{**settings, **options})


def test_fit(pl, tmp_path) -> None:
    model = make(pl)
    trainer = trainer_of(pl, tmp_path)
    trainer.fit(model, loader(shuffle=True), loader(16, 5))
    assert trainer.global_step == 24
    recorded.check("fit", model.losses)
    metrics = trainer.validate(model, loader(16, 5), verbose=False)[0]
    recorded.check("validate", [metrics["val_loss"], metrics["val_acc"]])
    tested = trainer.test(model, loader(16, 6), verbose=False)[0]
    recorded.check("test", [tested["val_loss"], tested["val_acc"]])
    predicted = torch.cat(trainer.predict(model, loader(16, 6)))
    recorded.check("predict", predicted)


VARIANTS = {
    "clip_norm": {"gradient_clip_val": 0.1},
    "clip_value": {"gradient_clip_val": 0.01, "gradient_clip_algorithm": "value"},
    "accumulate": {"accumulate_grad_batches": 4},
    "bf16-mixed": {"precision": "bf16-mixed"},
    "bf16-true": {"precision": "bf16-true"},
    "64-true": {"precision": "64-true"},
    "anomaly": {"detect_anomaly": True},
    "steps": {"max_steps": 5, "max_epochs": -1},
    "limited": {"limit_train_batches": 3, "limit_val_batches": 1},
    "fast": {"fast_dev_run": True},
    "interval": {"val_check_interval": 2},
    "overfit": {"overfit_batches": 2},
    "deterministic": {"deterministic": True},
    "inference": {"inference_mode": False},
    "barebones": {"barebones": True},
    "simple profiler": {"profiler": "simple"},
    "advanced profiler": {"profiler": "advanced"},
    "pytorch profiler": {"profiler": "pytorch"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variant(pl, variant, tmp_path) -> None:
    model = make(pl)
    options = VARIANTS[variant]
    trainer = trainer_of(pl, tmp_path, **options)
    trainer.fit(model, loader(), loader(16, 5))
    loose = str(options.get("precision", "")).startswith("bf16")
    recorded.check(f"variant {variant}", model.losses[:8], rel=5e-2 if loose else 1e-3)


def test_manual_optimization(pl, tmp_path) -> None:
    model = make(pl, automatic=False)
    trainer_of(pl, tmp_path).fit(model, loader())
    recorded.check("manual", model.losses)


def test_checkpoint_and_resume(pl, tmp_path) -> None:
    whole = make(pl)
    keep = pl.callbacks.ModelCheckpoint(
        dirpath=tmp_path, filename="{epoch}", save_top_k=-1, monitor="val_loss", save_last=True
    )
    trainer = trainer_of(pl, tmp_path, callbacks=[keep], enable_checkpointing=True, max_epochs=4)
    trainer.fit(whole, loader(), loader(16, 5))
    assert len(list(tmp_path.glob("epoch=*.ckpt"))) == 4
    recorded.check("best", keep.best_model_score.item())

    resumed = make(pl, seed=9)
    again = trainer_of(pl, tmp_path, max_epochs=4)
    again.fit(resumed, loader(), loader(16, 5), ckpt_path=tmp_path / "epoch=1.ckpt")
    assert again.current_epoch == 4
    assert again.global_step == trainer.global_step
    assert len(resumed.losses) == 16

    loaded = type(whole).load_from_checkpoint(tmp_path / "last.ckpt", weights_only=False)
    assert loaded.hparams.lr == 0.05
    loaded.eval()
    whole.eval()
    x = rows()[:4][0]
    torch.testing.assert_close(loaded(x), whole(x))


def test_resume_without_dropout_is_exact(pl, tmp_path) -> None:
    def plain(seed):
        model = make(pl, seed)
        model.net[3] = torch.nn.Identity()
        return model

    whole = plain(1)
    keep = pl.callbacks.ModelCheckpoint(dirpath=tmp_path, filename="{epoch}", save_top_k=-1)
    trainer_of(pl, tmp_path, callbacks=[keep], enable_checkpointing=True, max_epochs=4).fit(
        whole, loader()
    )
    other = plain(2)
    trainer_of(pl, tmp_path, max_epochs=4).fit(other, loader(), ckpt_path=tmp_path / "epoch=1.ckpt")
    for left, right in zip(whole.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(left, right)


def test_early_stopping(pl, tmp_path) -> None:
    model = make(pl)
    model.hparams.lr = 0.0
    stop = pl.callbacks.EarlyStopping("val_loss", patience=2, min_delta=10.0)
    trainer = trainer_of(pl, tmp_path, callbacks=[stop], max_epochs=20)
    trainer.fit(model, loader(), loader(16, 5))
    assert trainer.current_epoch == 3


def callback_cases(pl):
    cb = pl.callbacks
    return {
        "swa": cb.StochasticWeightAveraging(swa_lrs=1e-2, swa_epoch_start=1),
        "lr": cb.LearningRateMonitor(),
        "accumulation": cb.GradientAccumulationScheduler({0: 2, 2: 4}),
        "timer": cb.Timer(duration="00:00:10:00"),
        "summary": cb.ModelSummary(max_depth=2),
        "rich": cb.RichModelSummary(),
        "pruning": cb.ModelPruning("l1_unstructured", amount=0.3),
        "ema": cb.EMAWeightAveraging(decay=0.9),
    }


@pytest.mark.parametrize(
    "kind", ["swa", "lr", "accumulation", "timer", "summary", "rich", "pruning", "ema"]
)
def test_callback(pl, kind, tmp_path) -> None:
    model = make(pl)
    logger = pl.loggers.CSVLogger(tmp_path)
    trainer = trainer_of(pl, tmp_path, callbacks=[callback_cases(pl)[kind]], logger=logger)
    trainer.fit(model, loader(), loader(16, 5))
    recorded.check(f"callback {kind}", model.losses, rel=1e-3)


def test_hooks_run_in_order(pl, tmp_path) -> None:
    seen = []

    class Watch(pl.Callback):
        def __getattribute__(self, name):
            if name.startswith("on_"):
                seen.append(name)
            return super().__getattribute__(name)

    trainer_of(pl, tmp_path, callbacks=[Watch()], max_epochs=1, limit_train_batches=1).fit(
        make(pl), loader(), loader(16, 5)
    )
    order = ["on_fit_start", "on_train_start", "on_train_batch_end", "on_train_end", "on_fit_end"]
    places = [seen.index(name) for name in order]
    assert places == sorted(places)
    assert {"on_before_backward", "on_after_backward", "on_before_optimizer_step"} <= set(seen)


@pytest.mark.parametrize("kind", ["CSVLogger", "TensorBoardLogger"])
def test_logger(pl, kind, tmp_path) -> None:
    logger = getattr(pl.loggers, kind)(tmp_path)
    trainer = trainer_of(pl, tmp_path, logger=logger, log_every_n_steps=1)
    trainer.fit(make(pl), loader(), loader(16, 5))
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert any(name == "metrics.csv" or name.startswith("events.") for name in files)


def test_datamodule_and_workers(pl, tmp_path) -> None:
    class Data(pl.LightningDataModule):
        def train_dataloader(self):
            return loader(num_workers=2, persistent_workers=True)

        def val_dataloader(self):
            return loader(16, 5)

    model = make(pl)
    trainer_of(pl, tmp_path).fit(model, datamodule=Data())
    recorded.check("datamodule", model.losses)


def test_tuner(pl, tmp_path) -> None:
    from importlib import import_module

    tuner = import_module(f"{pl.__name__}.tuner").Tuner(trainer_of(pl, tmp_path))
    found = tuner.lr_find(make(pl), loader(), num_training=20, max_lr=0.5)
    recorded.check("lr_find", found.results["loss"][:5])


def test_torchmetrics_inside(pl, tmp_path) -> None:
    import torchmetrics

    class WithMetric(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)
            self.accuracy = torchmetrics.Accuracy("multiclass", num_classes=2)

        def training_step(self, batch, index):
            x, y = batch
            logits = self.layer(x)
            self.accuracy(logits, y)
            self.log("acc", self.accuracy, on_epoch=True)
            return torch.nn.functional.cross_entropy(logits, y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    pl.seed_everything(0, verbose=False)
    trainer = trainer_of(pl, tmp_path)
    trainer.fit(WithMetric(), loader())
    recorded.check("metric", trainer.callback_metrics["acc_epoch"].item())


@pytest.mark.parametrize("name", ["lightning.fabric", "lightning_fabric"])
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "64-true"])
def test_fabric(name, precision, tmp_path) -> None:
    fabric_module = importlib.import_module(name)
    fabric = fabric_module.Fabric(accelerator="cpu", devices=1, precision=precision)
    fabric.launch()
    fabric.seed_everything(3, verbose=False)
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = fabric.setup(model, optimizer)
    data = fabric.setup_dataloaders(loader())
    losses = []
    for x, y in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
    recorded.check(f"fabric {precision}", losses, rel=5e-2 if "bf16" in precision else 1e-4)
    state = {"model": model, "optimizer": optimizer, "step": 8}
    fabric.save(tmp_path / "state.ckpt", state)
    before = json.dumps(model.weight.tolist())
    with torch.no_grad():
        model.weight.zero_()
    fabric.load(tmp_path / "state.ckpt", state)
    assert json.dumps(model.weight.tolist()) == before
