"""From what users give to checked updates."""
