"""What notebooks show of an object: small pieces of HTML, with a bounded number of rows."""
