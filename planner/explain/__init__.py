"""Plans for people: text, mermaid, JSON and a page of HTML."""
