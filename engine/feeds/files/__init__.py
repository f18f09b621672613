"""Sources FROM FILES: a folder whose files are applied once, each as one batch."""
