"""Trains on sentences with a dictionary of word vectors in the dataset, which every spawned worker gets a copy of."""

import argparse
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DIMENSIONS = 50


class Sentences(Dataset):
    """Sentences of 20 words and what each word stands for, all of it plain Python."""

    def __init__(self, sentences, words):
        chance = random.Random(0)
        self.vectors = {f"word{number}": [chance.random() for _ in range(DIMENSIONS)] for number in range(words)}
        self.texts = [[f"word{chance.randrange(words)}" for _ in range(20)] for _ in range(sentences)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        vectors = torch.tensor([self.vectors[word] for word in self.texts[index]])
        return vectors, (vectors.mean() > 0.5).long()


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=4096)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    # Spawned, as guides recommend beside CUDA.
    loader = DataLoader(
        Sentences(args.sentences, args.words),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=2,
        pin_memory=has_gpu,
        multiprocessing_context="spawn",
    )
    width = 512
    encoder = nn.TransformerEncoderLayer(DIMENSIONS, 5, width, batch_first=True)
    model = nn.Sequential(encoder, nn.Flatten(), nn.Linear(20 * DIMENSIONS, 2)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for vectors, labels in loader:
            loss = criterion(model(vectors.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
