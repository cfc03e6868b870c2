"""The parent: starts the target, talks to its probe, watches its processes, and cleans up after it."""
