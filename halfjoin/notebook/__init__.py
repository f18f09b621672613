"""Notebooks: views that show themselves, live views, and the extension for IPython."""
