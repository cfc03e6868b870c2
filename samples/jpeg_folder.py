"""Trains a classifier on a folder of JPEG files, one subfolder a class.

The files are crops of the two photographs that scikit-learn ships; they are made on the first run and kept in the
user's cache folder.
"""

import argparse
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pindiag-samples"


def make_folder(root, count, side):
    """Cut `count` square crops out of the two photographs, once."""
    folder = root / f"crops-{count}-{side}"
    if folder.is_dir():
        return folder
    from sklearn.datasets import load_sample_images

    partial = root / f"{folder.name}.{os.getpid()}"
    chance = random.Random(0)
    photographs = load_sample_images()
    for name, pixels in zip(photographs.filenames, photographs.images):
        photograph = Image.fromarray(pixels)
        target = partial / Path(name).stem
        target.mkdir(parents=True)
        for number in range(count // 2):
            left = chance.randrange(photograph.width - side)
            top = chance.randrange(photograph.height - side)
            photograph.crop((left, top, left + side, top + side)).save(target / f"{number:05}.jpg", quality=90)
    try:
        partial.rename(folder)
    except OSError:  # another run was faster
        pass
    return folder


class ImageFolder(Dataset):
    def __init__(self, folder, size):
        classes = sorted(path.name for path in folder.iterdir())
        self.files = [(path, label) for label, name in enumerate(classes) for path in sorted((folder / name).iterdir())]
        self.size = size

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path, label = self.files[index]
        image = Image.open(path).convert("RGB").resize((self.size, self.size), Image.Resampling.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = np.asarray(image, dtype=np.float32) / 255
        return torch.from_numpy((pixels - 0.45) / 0.225).permute(2, 0, 1), label


def make_model(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, 2),
    )


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=4000 if has_gpu else 400)
    parser.add_argument("--side", type=int, default=400, help="pixels of a file's side")
    parser.add_argument("--size", type=int, default=224 if has_gpu else 96, help="pixels that the model sees")
    parser.add_argument("--width", type=int, default=64 if has_gpu else 8)
    parser.add_argument("--epochs", type=int, default=5 if has_gpu else 20)
    parser.add_argument("--cache", type=Path, default=CACHE)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    dataset = ImageFolder(make_folder(args.cache, args.files, args.side), args.size)
    loader = DataLoader(dataset, batch_size=64 if has_gpu else 16, shuffle=True)

    model = make_model(args.width).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        losses = []
        for images, labels in loader:
            images = images.to(device)
            labels = labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
