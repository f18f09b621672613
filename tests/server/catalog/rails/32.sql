SELECT datctype FROM pg_database WHERE datname = current_database();
