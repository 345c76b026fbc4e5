-- DBeaver and DataGrip: connecting, navigator, table editor; from DBeaver's source (ext.postgresql/model) and PostgreSQL logs of such sessions.

-- statement: connecting
-- differs current_schema, session_user: who asks
SELECT current_schema(), session_user;

-- statement: version
-- only: it names the server
select version();

-- statement: database
-- differs rows, oid, datdba: one database, whose numbers are its own
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname='tidalite';

-- statement: databases
-- differs rows: one database
SELECT db.oid,db.datname FROM pg_catalog.pg_database db WHERE 1=1 AND datallowconn AND NOT datistemplate ORDER BY db.datname;

-- statement: settings
-- differs rows: fewer settings
select * from pg_catalog.pg_settings where name='standard_conforming_strings';

-- statement: schemas
-- differs nspowner, nspacl, dbeaver_owner, rows: owners are others
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
ORDER BY nspname;

-- statement: types
-- differs rows: composite types of tables and types that no column can have are left out
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL
AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');

-- statement: tables
-- differs relowner, reltype, relfilenode, reltoastrelid, relpages, reltuples, relallvisible, relfrozenxid, relminmxid, relhasrules, relhasindex, relnatts, relreplident: of the storage
SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c
INNER JOIN pg_catalog.pg_namespace nso ON nso.oid = c.relnamespace AND nso.nspname='public'
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relkind not in ('i','I','c');

-- statement: columns
-- differs attnum, attoptions: of the storage, or of what there is one of
-- differs attstattarget, attcacheoff, attnotnull: of the storage; the key of a table but its timestamp may be NULL
SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND a.attnum > 0 AND c.oid={trades} ORDER BY a.attnum;

-- statement: constraints
SELECT c.oid,c.conname,c.contype,c.conkey,c.confkey,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description,
case when c.contype='c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE c.conrelid={keyed}
ORDER BY c.oid;

-- statement: indexes
-- differs index_rel_size: of the storage, or of what there is one of
-- differs rel_size: of the storage
SELECT i.indexrelid,i.indrelid,i.indnatts,i.indisunique,i.indisprimary,i.indisvalid,i.indkey,i.indclass,i.indoption as keys,c.relname,c.relnamespace,c.relam,tc.relname as tabrelname,dsc.description,
pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,
pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
WHERE i.indrelid={keyed} ORDER BY tc.relname, c.relname;

-- statement: sizes
-- differs total_rel_size, rel_size: of the storage
select c.oid,pg_catalog.pg_total_relation_size(c.oid) as total_rel_size,pg_catalog.pg_relation_size(c.oid) as rel_size
FROM pg_class c WHERE c.relnamespace=(select oid from pg_namespace where nspname = 'public') and c.relkind in ('r', 'v');

-- statement: privileges of the user
select n.nspname as object_schema, has_schema_privilege(n.oid, 'USAGE') from pg_catalog.pg_namespace n where n.nspname = 'public';

-- statement: extensions
-- differs rows: none here
SELECT e.oid,a.name,e.extversion FROM pg_catalog.pg_available_extensions a LEFT JOIN pg_catalog.pg_extension e ON e.extname = a.name;

-- statement: routines
SELECT DISTINCT p.oid,p.proname, p.pronamespace FROM pg_catalog.pg_proc p WHERE p.pronamespace = (select oid from pg_namespace where nspname = 'public');

-- statement: rules
SELECT r.oid, r.rulename, r.ev_class, r.ev_type, r.is_instead FROM pg_catalog.pg_rewrite r WHERE r.ev_class = {trades};

-- statement: sequences
SELECT c.oid, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'S' AND n.nspname = 'public';

-- statement: dependencies
-- differs rows: there is less here of what no table needs
SELECT dep.deptype, dep.classid, dep.objid, cl.relkind, cl.relname FROM pg_depend dep LEFT JOIN pg_class cl ON dep.objid = cl.oid WHERE dep.refobjid = {trades} AND cl.relname IS NOT NULL;

-- statement: DataGrip, objects of a schema
-- fails: column "xmin" does not exist
-- differs state_number, owner: transaction numbers
select T.relkind as table_kind, T.relname as table_name, T.oid as table_id, T.xmin as table_state_number, false as table_with_oids, T.reltablespace as tablespace_id,
  T.reloptions as options, T.relpersistence as persistence,
  (select pg_catalog.array_agg(inhparent::bigint order by inhseqno)::varchar from pg_catalog.pg_inherits where T.oid = inhrelid) as ancestors,
  T.relispartition as is_partition
from pg_catalog.pg_class T
where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'public') and relkind in ('r', 'm', 'v', 'f', 'p')
order by table_kind, table_id;

-- statement: DataGrip, start
-- differs description: of the storage, or of what there is one of
select N.oid::bigint as id, N.nspname as name, D.description as description
from pg_catalog.pg_namespace N left join pg_catalog.pg_description D on N.oid = D.objoid
where N.nspname = 'public'
order by case when nspname = pg_catalog.current_schema() then -1::bigint else N.oid::bigint end;
