"""Sinks: plain Delta tables with a view's current contents, one commit per closed batch."""
