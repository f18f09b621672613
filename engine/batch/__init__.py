"""A batch, step by step: stage, close, publish; and who carries it out."""
