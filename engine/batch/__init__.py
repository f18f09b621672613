"""The steps of a batch (stage, close, publish), and the protocols of the runner and the store."""
