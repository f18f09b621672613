SELECT typcategory FROM pg_type WHERE 1<>1 LIMIT 1;
