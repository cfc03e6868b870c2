"""Trains a small ResNet on images that are augmented on the CPU as they are read."""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class AugmentedImages(Dataset):
    """8-bit images in memory; each access draws another crop, flip, rotation, tint, blur and erased patch."""

    def __init__(self, samples, size, crop, classes):
        self.images = torch.randint(256, (samples, 3, size, size), dtype=torch.uint8)
        self.labels = torch.randint(classes, (samples,))
        self.crop = crop

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index].float() / 255
        image = self.rotate(image, degrees=15)
        image = self.random_crop(image)
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        image = self.jitter(image)
        if torch.rand(()) < 0.5:
            image = self.blur(image)
        image = (image - 0.45) / 0.225
        return self.erase(image), self.labels[index]

    def rotate(self, image, degrees):
        angle = math.radians((2 * torch.rand(()).item() - 1) * degrees)
        turn = torch.tensor([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]])
        grid = F.affine_grid(turn[None], [1, *image.shape], align_corners=False)
        return F.grid_sample(image[None], grid, padding_mode="reflection", align_corners=False)[0]

    def random_crop(self, image):
        top, left = torch.randint(image.shape[-1] - self.crop + 1, (2,)).tolist()
        return image[:, top : top + self.crop, left : left + self.crop]

    def jitter(self, image):
        brightness, contrast, saturation = (0.6 + 0.8 * torch.rand(3)).tolist()
        image = image * brightness
        image = (image - image.mean()) * contrast + image.mean()
        grey = image.mean(dim=0, keepdim=True)
        return (grey + (image - grey) * saturation).clamp(0, 1)

    def blur(self, image):
        sigma = 0.1 + 1.9 * torch.rand(()).item()
        x = torch.arange(-2.0, 3.0)
        kernel = torch.exp(-(x**2) / (2 * sigma**2))
        kernel = (kernel / kernel.sum()).expand(3, 1, 1, 5)
        image = F.conv2d(image[None], kernel, padding=(0, 2), groups=3)
        return F.conv2d(image, kernel.transpose(2, 3), padding=(2, 0), groups=3)[0]

    def erase(self, image):
        side = self.crop // 4
        top, left = torch.randint(self.crop - side, (2,)).tolist()
        image[:, top : top + side, left : left + side] = 0
        return image


class Block(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Conv2d(channels_in, channels, 1, stride, bias=False)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


def small_resnet(width, classes):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Block(width, width, 2),
        Block(width, 2 * width, 2),
        Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=8000 if has_gpu else 1600)
    parser.add_argument("--size", type=int, default=256 if has_gpu else 72)
    parser.add_argument("--crop", type=int, default=224 if has_gpu else 64)
    parser.add_argument("--width", type=int, default=64 if has_gpu else 8)
    parser.add_argument("--epochs", type=int, default=5 if has_gpu else 15)
    parser.add_argument("--batch-size", type=int, default=64 if has_gpu else 16)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    dataset = AugmentedImages(args.samples, args.size, args.crop, classes=100)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, num_workers=2, drop_last=True)

    model = small_resnet(args.width, classes=100).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

    for epoch in range(args.epochs):
        start = time.time()
        running = 0.0
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch + 1}: loss {running / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
