"""Trains a small network on samples that a server delivers, each a few milliseconds after it was asked for."""

import argparse
import http.client
import http.server
import multiprocessing
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 256


class Store(http.server.BaseHTTPRequestHandler):
    """Answers like a store in another town: after a while, however many ask."""

    def do_GET(self):
        time.sleep(0.006)
        content = bytes(FEATURES)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Requests are many and all the same."""


def serve(ports):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        ports.put(server.server_port)
        server.serve_forever()


class Rows(Dataset):
    def __init__(self, port, samples):
        self.port, self.samples = port, samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        store = http.client.HTTPConnection("127.0.0.1", self.port)
        store.request("GET", f"/{index}")
        row = torch.frombuffer(bytearray(store.getresponse().read()), dtype=torch.uint8) / 255
        store.close()
        return row, torch.tensor([index % 7 / 7])


def main():
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=8000 if has_gpu else 1600)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if has_gpu else "cpu")
    ports = multiprocessing.Queue()
    multiprocessing.Process(target=serve, args=(ports,), daemon=True).start()
    loader = DataLoader(Rows(ports.get(), args.samples), args.batch_size, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(args.epochs):
        start = time.time()
        total = torch.zeros((), device=device)
        for row, target in loader:
            loss = criterion(model(row.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch + 1}: loss {total.item() / len(loader):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
