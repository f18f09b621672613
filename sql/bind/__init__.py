"""The binder: from syntax trees to typed, bound relations."""
