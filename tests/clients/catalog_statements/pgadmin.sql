-- pgAdmin 4: connecting, browser tree, properties; from its source (web/pgadmin/browser/server_groups/servers).

-- statement: roles of the user
-- fails: a recursive query cannot look at "oid" of the query around it
-- differs id, rolcreaterole, rolcreatedb, can_signal_backend: rights of the one role there is
SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser,
    CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role,
    CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db,
    CASE WHEN 'pg_signal_backend'=ANY(ARRAY(WITH RECURSIVE cte AS (
    SELECT pg_roles.oid,pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid
    UNION ALL
    SELECT m.roleid, pgr.rolname FROM cte cte_1 JOIN pg_auth_members m ON m.member = cte_1.oid JOIN pg_roles pgr ON pgr.oid = m.roleid)
    SELECT rolname FROM cte)) THEN True ELSE False END as can_signal_backend
FROM pg_catalog.pg_roles as roles WHERE rolname = current_user;

-- statement: database
-- differs did, datlastsysoid, rows, dbname: numbers are its own
SELECT db.oid as did, db.datname, db.datallowconn, pg_catalog.pg_encoding_to_char(db.encoding) AS serverencoding,
    has_database_privilege(db.oid, 'CREATE') as cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database();

-- statement: databases
-- differs did, owner, acl, rows: one database
SELECT db.oid as did, db.datname as name, ta.spcname as spcname, db.datallowconn, db.datistemplate AS is_template,
    has_database_privilege(db.oid, 'CREATE') as cancreate, datdba as owner, descr.description
FROM pg_catalog.pg_database db
    LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
    LEFT OUTER JOIN pg_catalog.pg_shdescription descr ON (db.oid=descr.objoid AND descr.classoid='pg_database'::regclass)
WHERE db.oid > 0::OID OR db.datname IN ('postgres', 'edb')
ORDER BY datname;

-- statement: schemas
-- differs owner: owners are others
SELECT nsp.oid, nsp.nspname as name, pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') as can_create, pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') as has_usage
FROM pg_catalog.pg_namespace nsp
WHERE nspname NOT LIKE E'pg\\_%' AND
NOT (
(nsp.nspname = 'pg_catalog' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1)) OR
(nsp.nspname = 'information_schema' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables' AND relnamespace = nsp.oid LIMIT 1))
)
ORDER BY nspname;

-- statement: tables
-- fails: casting from Int64 to BinaryView not supported
SELECT rel.oid, rel.relname AS name,
    (SELECT count(*) FROM pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount,
    (SELECT count(*) FROM pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE AND tgenabled = 'O') AS has_enable_triggers,
    (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
    (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid=rel.oid LIMIT 1) as is_inherits,
    (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhparent=rel.oid LIMIT 1) as is_inherited
FROM pg_class rel
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = 2200::oid AND NOT rel.relispartition
ORDER BY rel.relname;

-- statement: columns
-- differs oid: of the storage, or of what there is one of
SELECT att.attname as name, att.attnum as OID, format_type(ty.oid,NULL) AS datatype, att.attnotnull as not_null,
    CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL THEN True ELSE False END as has_default_val, des.description, seq.seqtypid
FROM pg_catalog.pg_attribute att
    JOIN pg_catalog.pg_type ty ON ty.oid=atttypid
    JOIN pg_catalog.pg_namespace tn ON tn.oid=ty.typnamespace
    JOIN pg_catalog.pg_class cl ON cl.oid=att.attrelid
    JOIN pg_catalog.pg_namespace na ON na.oid=cl.relnamespace
    LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=ty.typelem
    LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid=att.attrelid AND adnum=att.attnum
    LEFT OUTER JOIN (pg_catalog.pg_depend JOIN pg_catalog.pg_class cs ON classid='pg_class'::regclass AND objid=cs.oid AND cs.relkind='S') ON refobjid=att.attrelid AND refobjsubid=att.attnum
    LEFT OUTER JOIN pg_catalog.pg_namespace ns ON ns.oid=cs.relnamespace
    LEFT OUTER JOIN pg_catalog.pg_index pi ON pi.indrelid=att.attrelid AND indisprimary
    LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=att.attrelid AND des.objsubid=att.attnum AND des.classoid='pg_class'::regclass)
    LEFT OUTER JOIN pg_catalog.pg_sequence seq ON cs.oid=seq.seqrelid
WHERE att.attrelid = {trades}::oid AND att.attnum > 0 AND att.attisdropped IS FALSE
ORDER BY att.attnum;

-- statement: primary keys
-- fails: column "tableoid" does not exist
SELECT cls.oid, cls.relname as idxname, indnatts as col_count,
    CASE contype WHEN 'p' THEN desp.description WHEN 'u' THEN desp.description WHEN 'x' THEN desp.description ELSE des.description END AS comment
FROM pg_catalog.pg_index idx
    JOIN pg_catalog.pg_class cls ON cls.oid=indexrelid
    LEFT JOIN pg_catalog.pg_depend dep ON (dep.classid = cls.tableoid AND dep.objid = cls.oid AND dep.refobjsubid = '0' AND dep.refclassid=(SELECT oid FROM pg_catalog.pg_class WHERE relname='pg_constraint') AND dep.deptype='i')
    LEFT OUTER JOIN pg_catalog.pg_constraint con ON (con.tableoid = dep.refclassid AND con.oid = dep.refobjid)
    LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=cls.oid AND des.classoid='pg_class'::regclass)
    LEFT OUTER JOIN pg_catalog.pg_description desp ON (desp.objoid=con.oid AND desp.objsubid = 0 AND desp.classoid='pg_constraint'::regclass)
WHERE indrelid = {keyed}::oid AND contype='p'
ORDER BY cls.relname;

-- statement: dashboard, sessions
-- fails: function pg_blocking_pids does not exist
-- differs rows, pid, datname, usename, application_name, client_addr, backend_start, state, query: what runs
SELECT pid, datname, usename, application_name, client_addr, pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start, state,
    wait_event_type || ': ' || wait_event AS wait_event, pg_catalog.pg_blocking_pids(pid) AS blocking_pids, query
FROM pg_catalog.pg_stat_activity WHERE datname = (SELECT datname FROM pg_catalog.pg_database WHERE datname = current_database()) ORDER BY pid;

-- statement: dashboard, locks
-- fails: function to_char(INT, VARCHAR) does not exist
-- differs rows: no locks
SELECT pid, locktype, (SELECT datname FROM pg_catalog.pg_database WHERE oid = database) AS datname, COALESCE(relation::text, pg_catalog.to_char(page, '')) AS what, mode, granted FROM pg_catalog.pg_locks l ORDER BY pid, locktype;

-- statement: statistics of tables
-- differs rows, seq_scan, seq_tup_read, n_live_tup, n_dead_tup: of the storage
SELECT st.relname AS "Table name", n_tup_ins AS "Tuples inserted", n_tup_upd AS "Tuples updated", n_tup_del AS "Tuples deleted", pg_size_pretty(pg_relation_size(st.relid) + COALESCE((SELECT SUM(pg_relation_size(indexrelid)) FROM pg_catalog.pg_index WHERE indrelid=st.relid)::int8, 0)) AS "Total Size"
FROM pg_catalog.pg_stat_all_tables st JOIN pg_catalog.pg_class cl on cl.oid=st.relid WHERE schemaname = 'public' ORDER BY st.relname;
