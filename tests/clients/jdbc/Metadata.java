// Prints DatabaseMetaData of PostgreSQL's JDBC driver, and the descriptions of results and parameters, for a table.
// Each check prints a line; test_jdbc.py compares the lines with those of PostgreSQL.

import java.sql.*;
import java.util.ArrayList;
import java.util.List;

public class Metadata {
    public static void main(String[] arguments) throws Exception {
        Class.forName("org.postgresql.Driver");
        String table = arguments[1];
        try (Connection c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + arguments[0] + "/tidalite?user=postgres")) {
            try (Statement s = c.createStatement()) {
                s.execute("CREATE TABLE " + table + " (id bigint, b boolean, i2 smallint, i4 integer, f4 real, f8 double precision, "
                    + "n numeric(18,3), at timestamp, d date, t text, bin bytea, u uuid, j json, arr double precision[])");
                s.execute("CREATE VIEW " + table + "_v AS SELECT id, at FROM " + table);
            }
            tables(c.getMetaData(), table);
            columns(c.getMetaData(), table);
            nothing(c.getMetaData(), table);
            described(c, table);
            prepared(c, table);
        }
    }

    static void show(String name, ResultSet rows, String... columns) throws SQLException {
        int count = 0;
        while (rows.next()) {
            List<String> values = new ArrayList<>();
            for (String column : columns) {
                values.add(String.valueOf(rows.getObject(column)));
            }
            System.out.println(name + "|" + String.join("|", values));
            count++;
        }
        System.out.println(name + " rows " + count);
    }

    static void tables(DatabaseMetaData about, String table) throws SQLException {
        show("tables", about.getTables(null, "public", table + "%", new String[] {"TABLE", "VIEW"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS");
        show("only views", about.getTables(null, null, table + "%", new String[] {"VIEW"}), "TABLE_NAME", "TABLE_TYPE");
        System.out.println("supports " + about.supportsTransactions() + " " + about.supportsSavepoints() + " " + about.supportsBatchUpdates()
            + " " + about.getDefaultTransactionIsolation() + " " + about.getIdentifierQuoteString() + " " + about.getMaxColumnNameLength());
    }

    static void columns(DatabaseMetaData about, String table) throws SQLException {
        show("columns", about.getColumns(null, "public", table, "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NUM_PREC_RADIX",
            "NULLABLE", "IS_NULLABLE", "COLUMN_DEF", "CHAR_OCTET_LENGTH", "ORDINAL_POSITION", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN");
        show("some columns", about.getColumns(null, null, table + "_v", "a%"), "TABLE_NAME", "COLUMN_NAME", "TYPE_NAME");
    }

    static void nothing(DatabaseMetaData about, String table) throws SQLException {
        show("primary keys", about.getPrimaryKeys(null, "public", table), "COLUMN_NAME");
        show("indexes", about.getIndexInfo(null, "public", table, false, true), "INDEX_NAME");
        show("imported keys", about.getImportedKeys(null, "public", table), "FKCOLUMN_NAME");
        show("exported keys", about.getExportedKeys(null, "public", table), "FKCOLUMN_NAME");
        show("best row", about.getBestRowIdentifier(null, "public", table, DatabaseMetaData.bestRowSession, true), "COLUMN_NAME");
    }

    static void describe(String name, ResultSetMetaData about) throws SQLException {
        for (int n = 1; n <= about.getColumnCount(); n++) {
            System.out.println(name + "|" + String.join("|", about.getColumnLabel(n), about.getColumnTypeName(n), "" + about.getColumnType(n), about.getColumnClassName(n),
                "" + about.getPrecision(n), "" + about.getScale(n), "" + about.isNullable(n), "" + about.isSigned(n), "" + about.isAutoIncrement(n), about.getTableName(n), about.getSchemaName(n)));
        }
    }

    static void described(Connection c, String table) throws SQLException {
        try (Statement s = c.createStatement()) {
            describe("described", s.executeQuery("SELECT * FROM " + table).getMetaData());
            describe("computed", s.executeQuery("SELECT count(*) AS c, max(at) AS m, id + 1 AS p, t || 'x' AS x, at > '2024-01-01' AS g, NULL::int AS n FROM " + table + " GROUP BY id, t, at").getMetaData());
        }
    }

    static void prepared(Connection c, String table) throws SQLException {
        try (PreparedStatement p = c.prepareStatement("SELECT id FROM " + table + " WHERE b = ? AND i2 = ? AND i4 = ? AND f4 > ? AND f8 > ? AND at > ? AND d = ? AND t = ? AND bin = ? AND u = ? AND arr = ? AND id = ANY(?) LIMIT ?")) {
            ParameterMetaData about = p.getParameterMetaData();
            for (int n = 1; n <= about.getParameterCount(); n++) {
                System.out.println("parameter " + n + " " + about.getParameterTypeName(n) + " " + about.getParameterType(n) + " " + about.getParameterClassName(n));
            }
        }
    }
}
