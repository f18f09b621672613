"""An independent evaluator and the random views, batches and programs that are held against it."""
