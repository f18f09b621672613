SELECT datcollate FROM pg_database WHERE datname = current_database();
