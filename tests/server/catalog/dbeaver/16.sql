SELECT * from pg_catalog.pg_sequences WHERE schemaname='public' AND sequencename='tickets';
