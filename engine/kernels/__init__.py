"""Native kernels: the inner loops of a batch in C, and what Python does where they are missing."""
