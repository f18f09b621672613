"""An independent evaluator, and random views, batches and programs to compare with it."""
