"""What several tests need: no tests are in here."""
