// What a Java program does with a database, over the JDBC driver of PostgreSQL. Each check prints a line of what it found;
// test_jdbc.py says what is right.

import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Arrays;
import java.util.UUID;

public class Check {
    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + arguments[0] + "/tidalite?user=u";
        Class.forName("org.postgresql.Driver");
        for (String mode : new String[] {"", "&prepareThreshold=-1", "&preferQueryMode=simple"}) {
            try (Connection c = DriverManager.getConnection(url + mode)) {
                types(c, mode.isEmpty() ? "extended" : mode.substring(mode.indexOf('=') + 1));
            }
        }
        try (Connection c = DriverManager.getConnection(url)) {
            batch(c);
            pages(c);
            metadata(c);
            errors(c);
            cancelled(c);
        }
    }

    static void types(Connection c, String mode) throws SQLException {
        String table = "types_" + mode.replaceAll("[^a-z]", "n");
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE " + table + " (ts TIMESTAMP, b BOOLEAN, i INT, l LONG, d DOUBLE, dec DECIMAL(18,3), "
                + "day DATE, sym SYMBOL, v VARCHAR, bin BINARY, u UUID, a DOUBLE[]) TIMESTAMP(ts) PARTITION BY DAY");
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO " + table + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            p.setObject(1, LocalDateTime.parse("2024-02-29T12:34:56.789012"));
            p.setBoolean(2, true);
            p.setInt(3, Integer.MIN_VALUE);
            p.setLong(4, Long.MAX_VALUE);
            p.setDouble(5, 0.1);
            p.setBigDecimal(6, new BigDecimal("-12.345"));
            p.setObject(7, LocalDate.parse("1969-12-31"));
            p.setString(8, "sym'; --");
            p.setString(9, "täxt");
            p.setBytes(10, new byte[] {0, -1});
            p.setObject(11, UUID.fromString("11111111-2222-3333-4444-555555555555"));
            // In the simple protocol an array is a text, which no column of arrays takes.
            p.setArray(12, mode.equals("simple") ? null : c.createArrayOf("float8", new Object[] {1.0, 2.5}));
            System.out.println(mode + " inserted " + p.executeUpdate());
            p.setObject(1, LocalDateTime.parse("2024-03-01T00:00:00"));
            for (int n = 2; n <= 12; n++) {
                p.setNull(n, Types.NULL);
            }
            System.out.println(mode + " inserted " + p.executeUpdate());
        }
        try (PreparedStatement p = c.prepareStatement("SELECT * FROM " + table + " WHERE l > ? OR l IS NULL")) {
            p.setLong(1, 5);
            for (int round = 0; round < 2; round++) {
                ResultSet r = p.executeQuery();
                while (r.next()) {
                    Array array = r.getArray("a");
                    byte[] bytes = r.getBytes("bin");
                    System.out.println(String.join("|", mode, "" + r.getObject("ts", LocalDateTime.class), "" + r.getObject("b"),
                        "" + r.getObject("i"), "" + r.getObject("l"), "" + r.getObject("d"), "" + r.getObject("dec"),
                        "" + r.getObject("day", LocalDate.class), r.getString("sym"), r.getString("v"),
                        bytes == null ? "null" : Arrays.toString(bytes), "" + r.getObject("u"),
                        array == null ? "null" : Arrays.toString((Object[]) array.getArray())));
                }
            }
        }
    }

    static void batch(Connection c) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute("CREATE TABLE many (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY");
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO many VALUES (?, ?, ?)")) {
            for (int n = 0; n < 1000; n++) {
                p.setTimestamp(1, Timestamp.valueOf("2024-01-01 00:00:00"));
                p.setString(2, "k" + n % 3);
                p.setInt(3, n);
                p.addBatch();
            }
            System.out.println("batch " + Arrays.stream(p.executeBatch()).sum());
        }
        try (Statement s = c.createStatement()) {
            ResultSet r = s.executeQuery("SELECT k, count(), sum(n) FROM many ORDER BY k");
            while (r.next()) {
                System.out.println("batch " + r.getString(1) + " " + r.getLong(2) + " " + r.getLong(3));
            }
            System.out.println("updated " + s.executeUpdate("UPDATE many SET n = -1 WHERE n >= 990"));
            System.out.println("deleted " + s.executeUpdate("DELETE FROM many WHERE n < 0"));
        }
    }

    static void pages(Connection c) throws SQLException {
        c.setAutoCommit(false);
        try (Statement s = c.createStatement()) {
            s.setFetchSize(100);
            ResultSet r = s.executeQuery("SELECT n FROM many ORDER BY n");
            long sum = 0, rows = 0;
            while (r.next()) {
                sum += r.getLong(1);
                rows++;
            }
            System.out.println("pages " + rows + " " + sum);
        }
        c.commit();
        c.setAutoCommit(true);
    }

    static void metadata(Connection c) throws SQLException {
        DatabaseMetaData about = c.getMetaData();
        System.out.println("product " + about.getDatabaseProductName());
        try (ResultSet r = about.getTables(null, "public", "many", new String[] {"TABLE"})) {
            while (r.next()) {
                System.out.println("table " + r.getString("TABLE_SCHEM") + "." + r.getString("TABLE_NAME"));
            }
        }
        try (ResultSet r = about.getColumns(null, "public", "many", "%")) {
            while (r.next()) {
                System.out.println("column " + r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME") + " " + r.getInt("DATA_TYPE"));
            }
        }
        try (PreparedStatement p = c.prepareStatement("SELECT ts, k, n FROM many WHERE k = ? AND n > ?")) {
            ResultSetMetaData m = p.getMetaData();
            ParameterMetaData of = p.getParameterMetaData();
            System.out.println("described " + m.getColumnName(1) + " " + m.getColumnTypeName(3) + " " + of.getParameterTypeName(1)
                + " " + of.getParameterTypeName(2));
        }
    }

    static void errors(Connection c) throws SQLException {
        for (String sql : new String[] {"SELECT nothing FROM many", "SELECT * FROM nowhere", "SELEC 1", "SELECT 1/0"}) {
            try (Statement s = c.createStatement()) {
                s.executeQuery(sql);
                System.out.println("no error");
            } catch (SQLException error) {
                System.out.println("error " + error.getSQLState());
            }
        }
        try (Statement s = c.createStatement()) {
            ResultSet r = s.executeQuery("SELECT 1");
            r.next();
            System.out.println("goes on " + r.getInt(1));
        }
    }

    static void cancelled(Connection c) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery("SELECT count() FROM long_sequence(100000000) a, long_sequence(1000000) b WHERE a.x + b.x = 1");
            System.out.println("no error");
        } catch (SQLException error) {
            System.out.println("cancelled " + error.getSQLState());
        }
    }
}
