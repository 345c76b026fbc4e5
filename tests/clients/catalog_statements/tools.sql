-- What many tools send: drivers at their start, knex, Superset, Power BI, dbt, Prisma, Tableau.

-- statement: knex hasTable
-- differs table_catalog: the same
select * from information_schema.tables where table_name = 'trades' and table_schema = current_schema();

-- statement: knex hasColumn
select * from information_schema.columns where table_name = 'trades' and column_name = 'price' and table_schema = current_schema();

-- statement: knex columnInfo
-- differs ordinal_position: of the storage, or of what there is one of
select * from information_schema.columns where table_name = 'trades' and table_catalog = current_database() and table_schema = current_schema();

-- statement: postgres.js array types
-- differs rows: types that no column can have are left out
select b.oid, b.typarray from pg_catalog.pg_type a left join pg_catalog.pg_type b on b.oid = a.typelem where a.typcategory = 'A' group by b.oid, b.typarray order by b.oid;

-- statement: Power BI, tables
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog') order by TABLE_SCHEMA, TABLE_NAME;

-- statement: Power BI, columns
-- differs ordinal_position: of the storage, or of what there is one of
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE
from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'trades' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION;

-- statement: Power BI, keys
select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY
from INFORMATION_SCHEMA.table_constraints i
inner join INFORMATION_SCHEMA.key_column_usage ii on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME and i.TABLE_SCHEMA = ii.TABLE_SCHEMA and i.TABLE_NAME = ii.TABLE_NAME
where i.TABLE_SCHEMA = 'public' and i.TABLE_NAME = 'keyed' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE')
order by i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME, ii.TABLE_SCHEMA, ii.TABLE_NAME, ii.ORDINAL_POSITION;

-- statement: Power BI, foreign keys
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcol.TABLE_SCHEMA AS FK_TABLE_SCHEMA, fkcol.TABLE_NAME AS FK_TABLE_NAME, fkcol.COLUMN_NAME as FK_COLUMN_NAME, fkcol.ORDINAL_POSITION as ORDINAL, fkcon.CONSTRAINT_SCHEMA || '_' || fkcol.TABLE_NAME || '_' || 'trades' || '_' || fkcon.CONSTRAINT_NAME as FK_NAME
from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.referential_constraints) fkcon
inner join INFORMATION_SCHEMA.key_column_usage fkcol on fkcon.CONSTRAINT_SCHEMA = fkcol.CONSTRAINT_SCHEMA and fkcon.CONSTRAINT_NAME = fkcol.CONSTRAINT_NAME
inner join INFORMATION_SCHEMA.key_column_usage pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA and fkcon.UNIQUE_CONSTRAINT_NAME = pkcol.CONSTRAINT_NAME
where pkcol.TABLE_SCHEMA = 'public' and pkcol.TABLE_NAME = 'trades' and pkcol.ORDINAL_POSITION = fkcol.ORDINAL_POSITION
order by FK_NAME, fkcol.ORDINAL_POSITION;

-- statement: dbt catalog
-- differs column_index: of the storage, or of what there is one of
select sch.nspname as table_schema, tbl.relname as table_name, case tbl.relkind when 'v' then 'VIEW' else 'BASE TABLE' end as table_type,
    null::text as table_comment, col.attname as column_name, col.attnum as column_index,
    pg_catalog.format_type(col.atttypid, col.atttypmod) as column_type, null::text as column_comment
from pg_catalog.pg_namespace sch
join pg_catalog.pg_class tbl on tbl.relnamespace = sch.oid
join pg_catalog.pg_attribute col on col.attrelid = tbl.oid
where sch.nspname != 'information_schema' and sch.nspname not like 'pg_%' and not pg_is_other_temp_schema(sch.oid)
  and tbl.relpersistence = 'p' and tbl.relkind in ('r', 'v', 'f', 'p') and col.attnum > 0 and not col.attisdropped
order by sch.nspname, tbl.relname, col.attnum;

-- statement: Superset, table names
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind in ('r', 'p');

-- statement: Prisma, tables
-- fails: operator does not exist: BOOLEAN = VARCHAR
SELECT tbl.relname AS table_name, namespace.nspname AS namespace, (tbl.relhassubclass AND tbl.relkind = 'p') AS is_partition,
  (tbl.relhassubclass AND tbl.relkind = 'r') AS has_subclass, tbl.relrowsecurity AS has_row_level_security,
  reloptions, obj_description(tbl.oid, 'pg_class') AS description
FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
WHERE ((tbl.relkind = 'r' AND tbl.relispartition = 'f') OR tbl.relkind = 'p') AND namespace.nspname = ANY (ARRAY['public'])
ORDER BY namespace, table_name;

-- statement: lists of the catalog
SELECT attrelid::regclass::text, attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = 'public.trades'::regclass AND attnum > 0 ORDER BY attnum;

-- statement: numbers by name
-- only: the columns have other names
SELECT 'pg_class'::regclass::oid, 'int4'::regtype::oid, 'double precision'::regtype::text, 25::regtype::text, to_regclass('nosuch') IS NULL, to_regtype('bigint')::oid, 'pg_catalog'::regnamespace::oid;

-- statement: names of relations
-- only: the columns have other names
SELECT 'trades'::regclass::text, '"Mixed Case"'::regclass::text, {trades}::regclass::text, 0::regclass::text;

-- statement: functions
-- differs a: of the storage, or of what there is one of
SELECT quote_ident('public') a, quote_ident('Mixed') b, quote_ident('select') c, quote_literal('it''s') d, quote_nullable(NULL) e, parse_ident('a."B c"') f,
  format_type(1700, 1179655) g, format_type(1043, 24) h, format_type(23, NULL) i, format_type(1007, NULL) j, format_type(1114, 3) k,
  pg_size_pretty(123456789::bigint) l, array_lower(ARRAY[1,2,3], 1) m, array_upper(ARRAY[1,2,3], 1) n, array_length(ARRAY[1,2,3], 1) o, cardinality(ARRAY[1,2,3]) p, array_ndims(ARRAY[1,2]) q,
  pg_is_in_recovery() r, pg_encoding_to_char(6) s, has_table_privilege('trades', 'select') t, current_schemas(true) u, current_schemas(false) v, current_schema() w;

-- statement: types of values
-- differs a, g, i: of the storage, or of what there is one of
SELECT pg_typeof(1) a, pg_typeof(1::bigint) b, pg_typeof(1.5::float8) c, pg_typeof('x'::text) d, pg_typeof(true) e, pg_typeof(now()::timestamp) f, pg_typeof(ARRAY[1,2]) g, pg_typeof('1 day'::interval) h, pg_typeof('x'::varchar) i;

-- statement: numbers of rows
SELECT row_number() over (order by x) a, rank() over (order by x) b, dense_rank() over (order by x) c, ntile(2) over (order by x) d, percent_rank() over (order by x) e, cume_dist() over (order by x) f, count(*) over () g FROM empty_one;

-- statement: settings
SELECT current_setting('search_path') a, current_setting('client_encoding') b, current_setting('nosuch.setting', true) c, current_setting('DateStyle') d, current_setting('standard_conforming_strings') e;
