-- Grafana's PostgreSQL data source: query builder and health check; from its source (postgresMetaQuery.ts).

-- statement: version
-- differs version: 14 here
SELECT current_setting('server_version_num')::int/100 as version;

-- statement: TimescaleDB
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';

-- statement: tables of the search path
-- differs rows: there is less here of what no table needs
SELECT
    CASE WHEN
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )
      THEN quote_ident(table_name)
      ELSE quote_ident(table_schema) || '.' || quote_ident(table_name)
    END AS "table"
    FROM information_schema.tables
    WHERE quote_ident(table_schema) NOT IN ('information_schema',
                             'pg_catalog',
                             '_timescaledb_cache',
                             '_timescaledb_catalog')
    ORDER BY 1;

-- statement: tables of a schema
-- differs rows: there is less here of what no table needs
SELECT quote_ident(table_name) AS "table"
      FROM information_schema.tables
      WHERE quote_ident(table_schema) = 'public'
      ORDER BY 1;

-- statement: schemas
SELECT schema_name AS "name"
    FROM information_schema.schemata
    WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast', '_timescaledb_cache')
    ORDER BY schema_name;

-- statement: columns of a table
-- differs rows: there is less here of what no table needs
SELECT quote_ident(column_name) AS "column", data_type AS "type"
    FROM information_schema.columns
    WHERE
      CASE WHEN array_length(parse_ident('trades'),1) = 2
        THEN quote_ident(table_schema) = (parse_ident('trades'))[1]
          AND quote_ident(table_name) = (parse_ident('trades'))[2]
        ELSE quote_ident(table_name) = 'trades'
          AND
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )
      END;

-- statement: time column in the older query builder
SELECT column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = 'trades'
  AND udt_name IN ('timestamp','timestamptz','int8','float8');
