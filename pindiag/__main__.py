"""`python -m pindiag` is the same as `pindiag`."""

import sys

from pindiag.cli import main

sys.exit(main())
