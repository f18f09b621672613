import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;

/** What a program over JDBC does: metadata, values both ways, batches, transactions, cursors, arrays, errors. */
class Uses {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            metadata(connection);
            values(connection);
            batches(connection);
            cursors(connection);
            errors(connection);
        }
        System.out.println("done");
    }

    static void metadata(Connection connection) throws SQLException {
        DatabaseMetaData all = connection.getMetaData();
        System.out.println("product " + all.getDatabaseProductName());
        System.out.println("tables " + names(all.getTables(null, "public", "%", null), "TABLE_NAME", "TABLE_TYPE"));
        System.out.println("columns " + names(all.getColumns(null, "public", "ty", "%"), "COLUMN_NAME", "TYPE_NAME"));
        System.out.println("keys " + names(all.getPrimaryKeys(null, "public", "ty"), "COLUMN_NAME"));
        System.out.println("schemas " + names(all.getSchemas(null, "pub%"), "TABLE_SCHEM"));
        System.out.println("indexes " + names(all.getIndexInfo(null, "public", "ty", true, true), "COLUMN_NAME"));
        names(all.getTypeInfo(), "TYPE_NAME");
        names(all.getImportedKeys(null, "public", "ty"), "FKTABLE_NAME");
        names(all.getFunctions(null, "public", "%"), "FUNCTION_NAME");
    }

    static List<String> names(ResultSet rows, String... columns) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            List<String> cells = new ArrayList<>();
            for (String column : columns) cells.add(rows.getString(column));
            found.add(String.join(":", cells));
        }
        return found;
    }

    static void values(Connection connection) throws SQLException {
        OffsetDateTime moment = OffsetDateTime.of(2020, 1, 2, 3, 4, 5, 6000, ZoneOffset.UTC);
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO ty (i, b, d, n, t, y, da, ts, tz, bo, ia, u) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            insert.setInt(1, 1);
            insert.setLong(2, 1L << 40);
            insert.setDouble(3, 2.25);
            insert.setBigDecimal(4, new BigDecimal("-1234.500"));
            insert.setString(5, "é\n");
            insert.setBytes(6, new byte[] {0, -1});
            insert.setObject(7, LocalDate.of(1999, 1, 2));
            insert.setObject(8, moment.toLocalDateTime());
            insert.setObject(9, moment);
            insert.setBoolean(10, true);
            insert.setArray(11, connection.createArrayOf("int4", new Integer[] {1, null, 3}));
            insert.setObject(12, new UUID(0, 7));
            System.out.println("inserted " + insert.executeUpdate());
        }
        try (PreparedStatement select = connection.prepareStatement("SELECT * FROM ty WHERE i = ?")) {
            for (int again = 0; again < 8; again++) { // from the fifth time on it is prepared, and answers in binary
                select.setInt(1, 1);
                ResultSet row = select.executeQuery();
                row.next();
                System.out.println("row " + row.getLong("b") + " " + row.getDouble("d") + " " + row.getBigDecimal("n") + " "
                    + row.getString("t").length() + " " + Arrays.toString(row.getBytes("y")) + " "
                    + row.getObject("da", LocalDate.class) + " " + row.getObject("ts", LocalDateTime.class) + " "
                    + row.getObject("tz", OffsetDateTime.class).toInstant() + " " + row.getBoolean("bo") + " "
                    + Arrays.toString((Object[]) row.getArray("ia").getArray()) + " " + row.getObject("u"));
            }
        }
    }

    static void batches(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO ty (i, t) VALUES (?, ?)")) {
            for (int i = 100; i < 400; i++) {
                insert.setInt(1, i);
                insert.setString(2, "row " + i);
                insert.addBatch();
            }
            System.out.println("batch " + Arrays.stream(insert.executeBatch()).sum());
        }
        Savepoint point = connection.setSavepoint();
        connection.createStatement().executeUpdate("DELETE FROM ty WHERE i >= 100");
        connection.rollback(point);
        connection.commit();
        connection.createStatement().executeUpdate("DELETE FROM ty");
        connection.rollback();
        connection.setAutoCommit(true);
    }

    static void cursors(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement select = connection.createStatement()) {
            select.setFetchSize(50);
            ResultSet rows = select.executeQuery("SELECT i FROM ty ORDER BY i");
            int count = 0;
            while (rows.next()) count++;
            System.out.println("rows " + count);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    static void errors(Connection connection) throws SQLException {
        try {
            connection.createStatement().executeUpdate("INSERT INTO ty (i) VALUES (1)");
        } catch (SQLException error) {
            System.out.println("error " + error.getSQLState());
        }
        try {
            connection.createStatement().executeQuery("SELECT nope FROM ty");
        } catch (SQLException error) {
            System.out.println("error " + error.getSQLState());
        }
        try (Statement slow = connection.createStatement()) {
            slow.setQueryTimeout(60);
            ResultSet found = slow.executeQuery("SELECT count(*) FROM ty");
            found.next();
            System.out.println("count " + found.getInt(1));
        }
    }
}
