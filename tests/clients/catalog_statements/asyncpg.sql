-- asyncpg: type introspection; recorded from a PostgreSQL log.

-- statement
-- differs cur: of the storage, or of what there is one of
SELECT
                        current_setting('jit') AS cur,
                        set_config('jit', 'off', false) AS new;
