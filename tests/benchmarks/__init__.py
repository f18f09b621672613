"""What the figures in the README are printed by."""
