SELECT db.oid = 5 AS own, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
  has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = 'postgres' AND false;
SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE false;
SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output';
SELECT CASE WHEN usesuper AND pg_catalog.pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END AS paused
FROM pg_catalog.pg_user WHERE usename = current_user;
SELECT c.relname, COALESCE(pg_catalog.substring(pg_catalog.pg_get_triggerdef(t.oid, true), 'WHEN (.*) EXECUTE (PROCEDURE|FUNCTION)'),
  pg_catalog.substring(pg_catalog.pg_get_triggerdef(t.oid, true), 'WHEN (.*)')) AS whenclause
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid WHERE NOT tgisinternal;
SELECT c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid
WHERE c.relkind = 'v' AND c.relnamespace = 2200 AND pg_catalog.bpchar(r.ev_type) = '1'::bpchar AND r.rulename = '_RETURN'::name;
SELECT i.attnum, o.opcname, pg_catalog.pg_get_indexdef(i.indexrelid, i.attnum, true) AS attdef
FROM (SELECT indexrelid, i.indclass, pg_catalog.unnest(ARRAY(SELECT pg_catalog.generate_series(1, i.indnatts) AS n)) AS attnum
      FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class t ON t.oid = i.indrelid WHERE t.relname IN ('orders', 'customer')) i
LEFT JOIN pg_catalog.pg_opclass o ON o.oid = i.indclass[i.attnum - 1]
ORDER BY i.attnum;
SELECT att.attname, (SELECT dsd.refobjid::regclass::text FROM pg_catalog.pg_depend dsd
  WHERE dsd.classid = 'pg_catalog.pg_attrdef'::regclass AND dsd.objid = def.oid AND dsd.deptype = 'n' AND dsd.refobjsubid = 0 LIMIT 1) AS defseqrelid
FROM pg_catalog.pg_attribute att LEFT JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
WHERE att.attrelid IN ('orders'::regclass, 'customer'::regclass) AND att.attnum > 0;
