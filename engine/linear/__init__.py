"""The linear law: operators that make updates of one row."""
