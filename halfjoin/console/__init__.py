"""The console: a page that shows what an engine does, with /metrics and /healthz for other programs."""
