"""The process, its threads and its memory."""
