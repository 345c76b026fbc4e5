-- ActiveRecord 8 (Rails): connecting, schema cache, schema dump; from its source (postgresql/schema_statements.rb, postgresql_adapter.rb).

-- statement: types
-- differs rows: types that no column can have are left out
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid
WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool', 'timestamp', 'timestamptz', 'text', 'varchar', 'char', 'name', 'bpchar', 'json', 'jsonb', 'uuid', 'date', 'time', 'interval', 'bytea')
OR t.typtype IN ('r', 'e', 'd') OR t.typinput = 'array_in(cstring,oid,integer)'::regprocedure OR t.typelem != 0;

-- statement: additional types
SELECT t.oid, t.typname FROM pg_type as t WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool', 'timestamp', 'timestamptz');

-- statement: tables
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','p');

-- statement: views
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('v','m');

-- statement: columns
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname,
       col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
LEFT JOIN pg_type t ON a.atttypid = t.oid
LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
WHERE a.attrelid = '"trades"'::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;

-- statement: primary keys
SELECT a.attname FROM (
  SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"keyed"'::regclass AND indisprimary
) i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx]
ORDER BY i.idx;

-- statement: indexes
-- fails: operator does not exist: BOOLEAN = VARCHAR
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE i.relkind IN ('i', 'I') AND d.indisprimary = 'f' AND t.relname = 'keyed' AND n.nspname = ANY (current_schemas(false))
ORDER BY i.relname;

-- statement: sequence of the primary key
SELECT attr.attname, nsp.nspname, seq.relname
FROM pg_class seq, pg_attribute attr, pg_depend dep, pg_constraint cons, pg_namespace nsp
WHERE seq.oid = dep.objid AND seq.relkind = 'S' AND attr.attrelid = dep.refobjid AND attr.attnum = dep.refobjsubid
  AND attr.attrelid = cons.conrelid AND attr.attnum = cons.conkey[1] AND seq.relnamespace = nsp.oid
  AND cons.contype = 'p' AND dep.classid = 'pg_class'::regclass AND dep.refobjid = '"keyed"'::regclass;

-- statement: foreign keys
SELECT t2.oid::regclass::text AS to_table, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred, c.conrelid, c.confrelid
FROM pg_constraint c JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid JOIN pg_namespace n ON c.connamespace = n.oid
WHERE c.contype = 'f' AND t1.relname = 'trades' AND n.nspname = ANY (current_schemas(false))
ORDER BY c.conname;

-- statement: check constraints
SELECT conname, pg_get_constraintdef(c.oid, true) AS constraintdef, c.convalidated AS valid
FROM pg_constraint c JOIN pg_class t ON c.conrelid = t.oid JOIN pg_namespace n ON n.oid = c.connamespace
WHERE c.contype = 'c' AND t.relname = 'trades' AND n.nspname = ANY (current_schemas(false));

-- statement: comment of a table
SELECT pg_catalog.obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'trades' AND c.relkind IN ('r','p') AND n.nspname = ANY (current_schemas(false));

-- statement: extensions
-- differs rows: none here
SELECT extname FROM pg_extension;

-- statement: enums
SELECT type.typname AS name, type.OID AS oid, n.nspname AS schema, array_agg(enum.enumlabel ORDER BY enum.enumsortorder) AS value
FROM pg_enum AS enum JOIN pg_type AS type ON (type.oid = enum.enumtypid) JOIN pg_namespace n ON type.typnamespace = n.oid
WHERE n.nspname = ANY (current_schemas(false))
GROUP BY type.OID, n.nspname, type.typname;

-- statement: migrations
-- differs max_identifier_length: of the storage, or of what there is one of
SHOW max_identifier_length;
