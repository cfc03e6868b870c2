"""A LightningModule trained by a Trainer: sanity check, validation, checkpoints, batches moved for us."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Data(lightning.LightningDataModule):
    def __init__(self, workers):
        super().__init__()
        self.workers = workers

    def setup(self, stage):
        generator = torch.Generator().manual_seed(0)
        rows, classes = torch.randn(400, 16, generator=generator), torch.randint(0, 4, (400,), generator=generator)
        self.train, self.check = TensorDataset(rows[:320], classes[:320]), TensorDataset(rows[320:], classes[320:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=8, shuffle=True, num_workers=self.workers)  # trains

    def val_dataloader(self):
        return DataLoader(self.check, batch_size=8)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4))

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", torch.nn.functional.cross_entropy(self.model(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)]


def main():
    lightning.seed_everything(0, workers=True)
    module = Classifier()
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", devices=1, logger=False, gradient_clip_val=1.0, accumulate_grad_batches=2
    )
    trainer.fit(module, datamodule=Data(workers=1))
    total = sum(parameter.double().sum().item() for parameter in module.parameters())
    print("result", trainer.global_step, trainer.current_epoch, repr(total))


if __name__ == "__main__":
    main()
