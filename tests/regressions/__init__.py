"""What went wrong once: a test for each, by topic."""
