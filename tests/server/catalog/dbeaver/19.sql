SELECT e.oid, a.rolname oname, e.* FROM pg_catalog.pg_event_trigger e JOIN pg_authid a ON a.oid = e.evtowner;
