"""A small model of transformers trained by its Trainer, with evaluation and checkpoints."""

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Sentences(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(0, 60, (12,), generator=generator)
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": int(ids[0] > 30)}


def main():
    set_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = BertForSequenceClassification(BertConfig(vocab_size=60, max_position_embeddings=16, **shape))
    arguments = TrainingArguments(
        output_dir="out",
        num_train_epochs=3,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_steps=10,
        report_to=[],
        use_cpu=True,
        dataloader_num_workers=1,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Sentences(160), eval_dataset=Sentences(32))
    trained = trainer.train()  # trains
    total = sum(parameter.double().sum().item() for parameter in model.parameters())
    print("result", trained.global_step, repr(trained.training_loss), repr(total))


if __name__ == "__main__":
    main()
