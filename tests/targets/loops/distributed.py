"""A process group of one: DDP, a DistributedSampler told of each epoch, batches of the sampler's (no batch size)."""

import torch
import torch.distributed as dist
from result import tell
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Rows(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, indices):
        rows = torch.tensor(indices, dtype=torch.float32)
        return rows[:, None].expand(-1, 16) / 320, rows.long() % 4


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = Rows()
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=None, sampler=BatchSampler(sampler, 8, drop_last=True))  # trains
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    tell(model, epoch=sampler.epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
