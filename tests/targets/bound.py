"""Workers that tell the CPUs that they may run on and the number of threads that libraries are told; bound to one."""

import os

import torch
from torch.utils.data import DataLoader, Dataset


class Told(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return torch.tensor([len(os.sched_getaffinity(0)), int(os.environ.get("OMP_NUM_THREADS", "0"))])


def bind(worker):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for _ in range(1000):
        for batch in DataLoader(Told(), batch_size=4, num_workers=1, worker_init_fn=bind):
            print(*batch[0].tolist(), torch.get_num_threads(), flush=True)
            model(batch.float()).mean().backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
