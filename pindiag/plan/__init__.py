"""What to run next, from what is known: pure functions of run.json and the journal."""
