SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database();
