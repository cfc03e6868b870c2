"""Training loops of many styles; the first argument names one."""

import itertools
import sys
import time

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler


class Rows(Dataset):
    def __init__(self, rows=160, work_s=0.0005):
        self.rows = rows
        self.work_s = work_s

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        time.sleep(self.work_s)
        if isinstance(index, list):
            return torch.full((len(index), 16), 1.0), torch.tensor([one % 4 for one in index])
        return torch.full((16,), float(index)), index % 4


class Lines(IterableDataset):
    def __iter__(self):
        for index in range(80):
            time.sleep(0.0005)
            yield torch.full((16,), float(index)), index % 4


class OwnBatches(Sampler):
    def __iter__(self):
        for start in range(0, 160, 10):
            yield list(range(start, start + 10))

    def __len__(self):
        return 16


class OwnLoader(DataLoader):
    def __init__(self, *args, greeting, **kwargs):
        super().__init__(*args, **kwargs)
        self.greeting = greeting

    def __iter__(self):
        for x, y in super().__iter__():
            yield self.greeting, x, y


class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Linear(16, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.schedule = None

    def step(self, x, y):
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()

    def epochs(self, loader, count=100):
        for _ in range(count):
            for x, y in loader:
                self.step(x, y)


def validate(model, loader):
    with torch.no_grad():
        for x, _ in loader:
            model(x)


def collate(samples):
    return {"x": torch.stack([x for x, _ in samples]), "y": torch.tensor([y for _, y in samples])}


def init_worker(worker):
    torch.manual_seed(worker)


def iterable(t):
    t.epochs(DataLoader(Lines(), batch_size=8))


def iterable_workers(t):
    t.epochs(DataLoader(Lines(), batch_size=8, num_workers=2))


def batch_sampler(t):
    t.epochs(DataLoader(Rows(), batch_sampler=BatchSampler(RandomSampler(range(160)), 8, False)))


def own_batch_sampler(t):
    t.epochs(DataLoader(Rows(), batch_sampler=OwnBatches()))


def no_batch_size(t):
    t.epochs(DataLoader(Rows(), batch_size=None, sampler=BatchSampler(RandomSampler(range(160)), 8, False)))


def custom_collate(t):
    for _ in range(100):
        for batch in DataLoader(Rows(), batch_size=8, collate_fn=collate):
            t.step(batch["x"], batch["y"])


def lambda_collate(t):
    t.epochs(DataLoader(Rows(), 8, True, num_workers=1, collate_fn=lambda samples: tuple(collate(samples).values())))


def worker_init(t):
    t.epochs(DataLoader(Rows(), batch_size=8, num_workers=2, worker_init_fn=init_worker, timeout=30))


def context(t):
    t.epochs(DataLoader(Rows(), batch_size=8, num_workers=2, timeout=30, multiprocessing_context="fork"))


def subclass(t):
    for _ in range(100):
        for greeting, x, y in OwnLoader(Rows(), batch_size=8, greeting="hello"):
            assert greeting == "hello"
            t.step(x, y)


def by_hand(t):
    loader = DataLoader(Rows(), batch_size=8, num_workers=1)
    iterator = iter(loader)
    while True:
        try:
            x, y = next(iterator)
        except StopIteration:
            iterator = iter(loader)
            continue
        t.step(x, y)


def rebuilt(t):
    for _ in range(100):
        for x, y in DataLoader(Rows(), batch_size=8):
            t.step(x, y)


def one_batch_each(t):
    loader = DataLoader(Rows(), batch_size=8)
    for _ in range(400):
        t.step(*next(iter(loader)))


def with_validation(t):
    train = DataLoader(Rows(), batch_size=8, shuffle=True)
    check = DataLoader(Rows(32, 0.001), batch_size=8)
    for _ in range(100):
        for x, y in train:
            t.step(x, y)
        validate(t.model, check)


def validation_first(t):
    train = DataLoader(Rows(), batch_size=8, shuffle=True)
    check = DataLoader(Rows(32), batch_size=8)
    validate(t.model, itertools.islice(check, 2))
    t.epochs(train)


def nested_validation(t):
    train = DataLoader(Rows(), batch_size=8, shuffle=True)
    check = DataLoader(Rows(32), batch_size=8)
    for _ in range(100):
        for step, (x, y) in enumerate(train):
            t.step(x, y)
            if step % 15 == 14:
                validate(t.model, check)


def by_count(t):
    train = DataLoader(Rows(), batch_size=8, num_workers=1)
    check = DataLoader(Rows(32, 0.002), batch_size=8)
    for _ in range(100):
        for x, y in itertools.islice(train, 20):
            t.step(x, y)
        validate(t.model, check)


def early_break(t):
    train = DataLoader(Rows(), batch_size=8)
    for _ in range(100):
        for step, (x, y) in enumerate(train):
            if step == 12:
                break
            t.step(x, y)


def zipped(t):
    fast, slow = DataLoader(Rows(160, 0), batch_size=8), DataLoader(Rows(160, 0.001), batch_size=8)
    for _ in range(100):
        for (x, y), _other in zip(slow, fast):
            t.step(x, y)


def hand_written_sgd(t):
    parameters = list(t.model.parameters())
    for _ in range(100):
        for x, y in DataLoader(Rows(), batch_size=8):
            loss = torch.nn.functional.cross_entropy(t.model(x), y)
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
                parameter.data -= 0.01 * gradient


def inference(t):
    del t.optimizer
    for _ in range(100):
        validate(t.model, DataLoader(Rows(), batch_size=8))


def accumulating(t):
    for _ in range(100):
        for step, (x, y) in enumerate(DataLoader(Rows(), batch_size=8)):
            torch.nn.functional.cross_entropy(t.model(x), y).backward()
            if step % 4 == 3:
                t.optimizer.step()
                t.optimizer.zero_grad()


def workers_set_later(t):
    loader = DataLoader(Rows(), batch_size=8)
    loader.num_workers, loader.prefetch_factor = 1, 3
    t.epochs(loader)


def one_cycle(t):
    loader = DataLoader(Rows(), batch_size=8)
    t.schedule = torch.optim.lr_scheduler.OneCycleLR(t.optimizer, 0.1, total_steps=len(loader))
    t.epochs(loader, 1)


def short(t):
    t.epochs(DataLoader(Rows(), batch_size=8), 1)


def swallows(t):
    loader = DataLoader(Rows(), batch_size=8)
    while True:
        try:
            for x, y in loader:
                t.step(x, y)
        except:  # noqa: E722
            pass


def generator(t):
    def batches():
        yield from DataLoader(Rows(), batch_size=8)

    for _ in range(100):
        for x, y in batches():
            t.step(x, y)


def slow_workers(t):
    loader = DataLoader(Rows(), batch_size=8, num_workers=2)
    for step, (x, y) in enumerate(loader):
        if step == 0:
            slow = iter(DataLoader(Rows(160, 8.0), batch_size=1, num_workers=2))
        t.step(x, y)
    del slow


if __name__ == "__main__":
    globals()[sys.argv[1]](Trainer())
    print("trained to the end")
