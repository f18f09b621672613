select * from pg_catalog.pg_settings where name in ('standard_conforming_strings', 'server_version_num');
