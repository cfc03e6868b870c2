"""pindiag: measures why a PyTorch training script is slow, by experiment."""

__version__ = "0.1.0"
