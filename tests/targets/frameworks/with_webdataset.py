"""Shards read by webdataset through its own loader, which batches in the workers (batch size None)."""

import sys

import torch
import webdataset as wds


def write_shards():
    for shard in range(4):
        with wds.TarWriter(f"rows-{shard}.tar") as writer:
            for row in range(80):
                index = 80 * shard + row
                generator = torch.Generator().manual_seed(index)
                tensor = torch.randn(16, generator=generator)
                writer.write({"__key__": f"{index:06d}", "x.pth": tensor, "cls": index % 4})


def main():
    write_shards()
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    shards = [f"rows-{shard}.tar" for shard in range(4)]
    data = wds.WebDataset(shards, shardshuffle=False).decode().to_tuple("x.pth", "cls").batched(8)
    loader = wds.WebLoader(data, batch_size=None, num_workers=int(sys.argv[1]))  # trains
    step = 0
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), torch.as_tensor(y)).backward()
            optimizer.step()
            step += 1
    total = sum(parameter.double().sum().item() for parameter in model.parameters())
    print("result", step, repr(total))


if __name__ == "__main__":
    main()
