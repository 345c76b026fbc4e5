-- ADBC PostgreSQL driver: types, GetObjects, GetTableSchema; recorded from a PostgreSQL log.

-- statement
-- differs rows: there is less here of what no table needs
SELECT
    attrelid,
    attname,
    atttypid
FROM
    pg_catalog.pg_attribute
ORDER BY
    attrelid, attnum;

-- statement
-- differs rows: there is less here of what no table needs
SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv';

-- statement
-- differs rows: there is less here of what no table needs
SELECT datname FROM pg_catalog.pg_database;

-- statement
SELECT nspname FROM pg_catalog.pg_namespace WHERE (nspname !~ '^pg_' OR oid = pg_my_temp_schema()) AND nspname <> 'information_schema';
