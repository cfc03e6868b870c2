"""Trains a sentiment-like classifier on texts of different lengths, padded by a collate function in Python."""

import argparse
import random
import re
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYLLABLES = ["ka", "lo", "mi", "re", "tu", "san", "vel", "dor", "pin", "gra"]
PAD, UNKNOWN = 0, 1


class Texts(Dataset):
    """Made-up reviews: each consists of words that come more often in its own class."""

    def __init__(self, texts, words, longest):
        chance = random.Random(0)
        self.vocabulary = ["".join(chance.choices(SYLLABLES, k=3)) + str(number) for number in range(words)]
        half = words // 2
        self.labels = [chance.randint(0, 1) for _ in range(texts)]
        self.texts = [
            ". ".join(chance.choices(self.vocabulary[label * half // 2 :][:half], k=chance.randint(20, longest)))
            for label in self.labels
        ]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        return self.texts[index], self.labels[index]


class Collate:
    """Tokenizes the texts of a batch and pads them to the longest."""

    def __init__(self, vocabulary):
        self.ids = {word: number for number, word in enumerate(vocabulary, start=2)}

    def __call__(self, batch):
        tokens = []
        labels = []
        for text, label in batch:
            words = re.findall(r"[a-z0-9]+", text.lower())
            tokens.append([self.ids.get(word, UNKNOWN) for word in words])
            labels.append(label)
        longest = max(len(row) for row in tokens)
        padded = [row + [PAD] * (longest - len(row)) for row in tokens]
        return torch.tensor(padded), torch.tensor(labels)


class Classifier(nn.Module):
    """The mean of the words' embeddings, then two layers."""

    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words + 2, width, padding_idx=PAD)
        self.head = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, 2))

    def forward(self, tokens):
        given = (tokens != PAD).unsqueeze(-1)
        mean = (self.embedding(tokens) * given).sum(dim=1) / given.sum(dim=1)
        return self.head(mean)


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=20_000 if has_gpu else 3000)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--longest", type=int, default=400 if has_gpu else 200)
    parser.add_argument("--width", type=int, default=256 if has_gpu else 64)
    parser.add_argument("--batch-size", type=int, default=128 if has_gpu else 32)
    parser.add_argument("--epochs", type=int, default=5 if has_gpu else 10)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    dataset = Texts(args.texts, args.words, args.longest)
    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        collate_fn=Collate(dataset.vocabulary),
        num_workers=1,
        pin_memory=has_gpu,
    )

    model = Classifier(args.words, args.width).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = 0.0
        for tokens, labels in loader:
            tokens = tokens.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = criterion(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
