"""A dialect of SQLAlchemy, which imports it by the name of the address::

    engine = sqlalchemy.create_engine("tidalite://localhost:9000")    # a server; tidalites:// for TLS
    engine = sqlalchemy.create_engine("tidalite:///folder")           # the engine in this process; //// from the root

    pandas.read_sql(sqlalchemy.text("select * from trades where price > :least"), engine, params={"least": 100})
    frame.to_sql("trades", engine, index=False, if_exists="append")

The engine in this process has transactions and savepoints; over HTTP every statement commits by itself. Constraints, indexes and defaults of
columns are left out of CREATE TABLE: tables have none. A ``Table`` says its designated timestamp and partitions by
``tidalite_timestamp="ts"`` and ``tidalite_partition_by="DAY"``.
"""

from __future__ import annotations

import re
from typing import Any, Optional

from sqlalchemy import exc, pool, text, types
from sqlalchemy.engine import default, reflection
from sqlalchemy.schema import Table
from sqlalchemy.sql import compiler

#: SQL types as they are reflected, by their names without what is in brackets.
_TYPES = {
    "BOOLEAN": types.Boolean, "BYTE": types.SmallInteger, "SHORT": types.SmallInteger, "INT": types.Integer,
    "LONG": types.BigInteger, "FLOAT": types.Float, "DOUBLE": types.Double, "DATE": types.Date,
    "TIMESTAMP": types.DateTime, "TIMESTAMP_MS": types.DateTime, "TIMESTAMP_NS": types.DateTime,
    "VARCHAR": types.String, "SYMBOL": types.String, "JSON": types.Text, "JSONB": types.Text, "BINARY": types.LargeBinary,
    "UUID": types.Uuid, "IPV4": types.NullType,
}
_DECIMAL = re.compile(r"DECIMAL\((\d+), *(\d+)\)")


class TidaliteTypeCompiler(compiler.GenericTypeCompiler):
    """Names of types in CREATE TABLE and CAST."""

    def visit_SMALLINT(self, type_: Any, **kw: Any) -> str:
        return "SHORT"

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "INT"

    def visit_BIGINT(self, type_: Any, **kw: Any) -> str:
        return "LONG"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        # A FLOAT here has 24 bits, as pandas says for float32 only; that of others has 53.
        return "FLOAT" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"

    def visit_REAL(self, type_: Any, **kw: Any) -> str:
        return "FLOAT"

    visit_DOUBLE = visit_DOUBLE_PRECISION = lambda self, type_, **kw: "DOUBLE"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        return f"DECIMAL({type_.precision or 38}, {10 if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return "VARCHAR"

    visit_CHAR = visit_NVARCHAR = visit_NCHAR = visit_TEXT = visit_CLOB = visit_VARCHAR

    def visit_BLOB(self, type_: Any, **kw: Any) -> str:
        return "BINARY"

    visit_BINARY = visit_VARBINARY = visit_large_binary = visit_BLOB

    def visit_UUID(self, type_: Any, **kw: Any) -> str:
        return "UUID"


class TidaliteDDLCompiler(compiler.DDLCompiler):
    def get_column_specification(self, column: Any, **kw: Any) -> str:
        # Every column may be NULL, and none has a default.
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        return f"{self.preparer.format_column(column)} {kind}"

    def create_table_constraints(self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any) -> str:
        return ""

    def post_create_table(self, table: Any) -> str:
        options = table.dialect_options["tidalite"]
        if options["timestamp"] is None:
            return ""
        return (
            f" TIMESTAMP({self.preparer.quote(str(options['timestamp']))}) PARTITION BY {_interval(options['partition_by'])}"
        )

    def visit_create_index(self, create: Any, **kw: Any) -> str:
        # pandas.to_sql asks for one on the index of the frame.
        return "SELECT 1"

    visit_drop_index = visit_create_index


def _interval(name: Any) -> str:
    if str(name).upper() not in ("HOUR", "DAY", "WEEK", "MONTH", "YEAR", "NONE"):
        raise exc.CompileError(f"tidalite_partition_by {name!r} is not one of HOUR, DAY, WEEK, MONTH, YEAR, NONE")
    return str(name).upper()


class TidaliteDialect(default.DefaultDialect):
    name = driver = "tidalite"
    default_paramstyle = "qmark"
    type_compiler_cls = TidaliteTypeCompiler
    ddl_compiler = TidaliteDDLCompiler
    construct_arguments = [(Table, {"timestamp": None, "partition_by": "DAY"})]

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_alter = False
    supports_default_values = supports_default_metavalue = supports_empty_insert = False
    supports_multivalues_insert = True
    # Rows of one INSERT are one commit; without this each would be.
    use_insertmanyvalues = use_insertmanyvalues_wo_returning = True
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    div_is_floordiv = True
    _is_tls = False

    @classmethod
    def import_dbapi(cls) -> Any:
        from tidalite import dbapi

        return dbapi

    @classmethod
    def get_pool_class(cls, url: Any) -> Any:
        return pool.QueuePool

    def create_connect_args(self, url: Any) -> Any:
        settings: dict[str, Any] = dict(url.query)
        for name in ("timeout", "request_timeout"):
            if name in settings:
                settings[name] = float(settings[name])
        if not url.host:
            if not url.database:
                raise exc.ArgumentError("neither a server nor a folder is said: tidalite://host:port or tidalite:///folder")
            return [url.database], settings
        if url.username is not None:
            settings["user"], settings["password"] = url.username, url.password
        scheme = "tidalites" if self._is_tls else "tidalite"
        host = f"[{url.host}]" if ":" in url.host else url.host
        return [f"{scheme}://{host}:{url.port}" if url.port else f"{scheme}://{host}"], settings

    def do_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.dbapi_connection.savepoint(name)

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.dbapi_connection.rollback_to(name)

    def do_release_savepoint(self, connection: Any, name: str) -> None:
        connection.connection.dbapi_connection.release(name)

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        # Connections to a server are made anew for a request where they have to be.
        return False

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[str]:
        levels = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] if dbapi_connection.has_transactions else []
        return ["AUTOCOMMIT", *levels]

    def get_default_isolation_level(self, dbapi_connection: Any) -> str:
        return self.get_isolation_level(dbapi_connection)

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        return "AUTOCOMMIT" if dbapi_connection.autocommit else str(dbapi_connection.isolation).upper()

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if level != "AUTOCOMMIT":
            dbapi_connection.isolation = level.lower()

    def _get_default_schema_name(self, connection: Any) -> Optional[str]:
        return None

    def _get_server_version_info(self, connection: Any) -> Any:
        return None

    def has_table(self, connection: Any, table_name: str, schema: Optional[str] = None, **kw: Any) -> bool:
        wanted = _qualified(table_name, schema).lower()
        return wanted in (name.lower() for name, _ in self._tables(connection))

    @reflection.cache
    def get_table_names(self, connection: Any, schema: Optional[str] = None, **kw: Any) -> list[str]:
        return _of_schema(self._tables(connection), schema, views=False)

    @reflection.cache
    def get_view_names(self, connection: Any, schema: Optional[str] = None, **kw: Any) -> list[str]:
        return _of_schema(self._tables(connection), schema, views=True)

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: Optional[str] = None, **kw: Any) -> list[Any]:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)
        query = text("SELECT \"column\", \"type\" FROM table_columns(:name)")
        rows = connection.execute(query, {"name": _qualified(table_name, schema)})
        return [
            {"name": name, "type": _reflected(kind), "nullable": True, "default": None, "autoincrement": False}
            for name, kind in rows
        ]

    def get_pk_constraint(self, connection: Any, table_name: str, schema: Optional[str] = None, **kw: Any) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, connection: Any, table_name: str, schema: Optional[str] = None, **kw: Any) -> Any:
        return []

    get_indexes = get_unique_constraints = get_check_constraints = get_foreign_keys

    def _tables(self, connection: Any) -> list[tuple[str, bool]]:
        """Names, and whether it is a view."""
        rows = connection.execute(text("SELECT table_name, table_type FROM tables() ORDER BY table_name"))
        return [(name, kind == "V") for name, kind in rows]


class TidaliteTlsDialect(TidaliteDialect):
    """``tidalites://``"""

    supports_statement_cache = True
    _is_tls = True


def _qualified(name: str, schema: Optional[str]) -> str:
    return f"{schema}.{name}" if schema else name


def _of_schema(tables: list[tuple[str, bool]], schema: Optional[str], views: bool) -> list[str]:
    if schema is None:
        return [name for name, is_view in tables if is_view == views]
    prefix = schema.lower() + "."
    return [name[len(prefix):] for name, is_view in tables if is_view == views and name.lower().startswith(prefix)]


def _reflected(kind: str) -> Any:
    decimal = _DECIMAL.match(kind)
    if decimal:
        return types.Numeric(int(decimal.group(1)), int(decimal.group(2)))
    return _TYPES.get(kind.partition("(")[0], types.NullType)()
