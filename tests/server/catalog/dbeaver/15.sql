select e.enumlabel from pg_catalog.pg_enum e where e.enumtypid={type mood} order by e.enumsortorder;
