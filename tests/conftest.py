"""What all tests have in common, and the children that they start."""

import os

from hypothesis import settings

# Before anything imports torch: tests run two at a time, and a child of a few rows gains nothing by threads.
os.environ["OMP_NUM_THREADS"] = "1"

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")
