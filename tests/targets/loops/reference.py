"""A script as torchvision's references are: argparse, functions of an epoch, meters, checkpoints, evaluation."""

import argparse
import collections
import os
import time

import torch
from result import tell
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler, TensorDataset
from torch.utils.data.dataloader import default_collate


class SmoothedValue:
    def __init__(self, window_size=20):
        self.window = collections.deque(maxlen=window_size)
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.window.append(value)
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / max(1, self.count)


class MetricLogger:
    def __init__(self):
        self.meters = collections.defaultdict(SmoothedValue)

    def log_every(self, iterable, print_freq, header):
        end = time.time()
        for step, obj in enumerate(iterable):
            self.meters["data_time"].update(time.time() - end)
            yield obj
            self.meters["iter_time"].update(time.time() - end)
            if step % print_freq == 0:
                print(f"{header} [{step}/{len(iterable)}]")
            end = time.time()


def train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args):
    model.train()
    metric_logger = MetricLogger()
    for image, target in metric_logger.log_every(data_loader, args.print_freq, f"Epoch: [{epoch}]"):
        image, target = image.to(device), target.to(device)
        loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        if args.clip_grad_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad_norm)
        optimizer.step()
        metric_logger.meters["loss"].update(loss.item(), n=image.shape[0])


def evaluate(model, criterion, data_loader, device):
    model.eval()
    metric_logger = MetricLogger()
    with torch.inference_mode():
        for image, target in metric_logger.log_every(data_loader, 100, "Test:"):
            output = model(image.to(device, non_blocking=True))
            loss = criterion(output, target.to(device, non_blocking=True))
            metric_logger.meters["loss"].update(loss.item(), n=image.shape[0])
    return metric_logger.meters["loss"].average


def load_data():
    generator = torch.Generator().manual_seed(0)
    images, targets = torch.randn(200, 3, 8, 8, generator=generator), torch.randint(0, 10, (200,), generator=generator)
    dataset, dataset_test = TensorDataset(images[:160], targets[:160]), TensorDataset(images[160:], targets[160:])
    return dataset, dataset_test, RandomSampler(dataset), SequentialSampler(dataset_test)


def main(args):
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    dataset, dataset_test, train_sampler, test_sampler = load_data()
    data_loader = DataLoader(  # trains
        dataset,
        batch_size=args.batch_size,
        sampler=train_sampler,
        num_workers=args.workers,
        pin_memory=True,
        collate_fn=lambda batch: tuple(default_collate(batch)),
    )
    data_loader_test = DataLoader(dataset_test, batch_size=8, sampler=test_sampler, num_workers=args.workers)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10)).to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    loss = evaluate(model, criterion, data_loader_test, device)
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, optimizer, data_loader, device, epoch, args)
        scheduler.step()
        loss = evaluate(model, criterion, data_loader_test, device)
        if args.output_dir:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "args": args}
            torch.save(state, os.path.join(args.output_dir, "checkpoint.pth"))
    tell(model, loss=loss)


def get_args_parser():
    parser = argparse.ArgumentParser(description="Classification Training")
    parser.add_argument("--device", default="cpu", type=str)
    parser.add_argument("-b", "--batch-size", default=8, type=int)
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("-j", "--workers", default=1, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--print-freq", default=10, type=int)
    parser.add_argument("--output-dir", default=".", type=str)
    parser.add_argument("--clip-grad-norm", default=1.0, type=float)
    parser.add_argument("--seed", default=1, type=int)
    return parser


if __name__ == "__main__":
    main(get_args_parser().parse_args())
