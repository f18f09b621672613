"""Durable state: a lock, a journal that is the truth, and Delta tables that follow it."""
