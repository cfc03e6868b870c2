"""What all tests have in common, and the children that they start."""

import os
import signal

from hypothesis import settings

# Before anything imports torch: tests run two at a time, and a child of a few rows gains nothing by threads.
os.environ["OMP_NUM_THREADS"] = "1"

# A shell starts what it runs in the background with Ctrl-C ignored, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("no clock", deadline=None)
settings.load_profile("no clock")
