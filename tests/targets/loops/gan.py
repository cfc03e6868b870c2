"""A generator and a discriminator with an optimizer each, both of which step on every batch."""

import torch
from result import tell
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 16), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(32, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    loader = DataLoader(TensorDataset(torch.randn(320, 16)), batch_size=8, shuffle=True, drop_last=True)  # trains
    fixed_noise = torch.randn(8, 8)
    for _ in range(3):
        for (real,) in loader:
            ones, zeros = torch.ones(real.size(0), 1), torch.zeros(real.size(0), 1)
            fake = generator(torch.randn(real.size(0), 8))
            optimizer_d.zero_grad()
            criterion(discriminator(real), ones).backward()
            criterion(discriminator(fake.detach()), zeros).backward()
            optimizer_d.step()
            optimizer_g.zero_grad()
            criterion(discriminator(fake), ones).backward()
            optimizer_g.step()
    with torch.no_grad():
        tell(nn.ModuleList([generator, discriminator]), fixed=round(generator(fixed_noise).sum().item(), 4))


if __name__ == "__main__":
    main()
