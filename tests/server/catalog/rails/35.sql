SELECT installed_version IS NOT NULL FROM pg_available_extensions WHERE name = 'plpgsql';
