-- The tables of the golden scripts, with so few rows that the views' rows can be checked by hand.
CREATE TABLE region (r_regionkey bigint PRIMARY KEY, r_name text);
CREATE TABLE nation (n_nationkey bigint PRIMARY KEY, n_name text, n_regionkey bigint);
CREATE TABLE supplier (s_suppkey bigint PRIMARY KEY, s_nationkey bigint);
CREATE TABLE customer (c_custkey bigint PRIMARY KEY, c_nationkey bigint, c_mktsegment text);
CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey bigint, o_orderdate date);
CREATE TABLE lineitem (l_orderkey bigint, l_linenumber integer, l_suppkey bigint, l_shipdate date,
    l_extendedprice numeric(15,2), l_discount numeric(15,2), PRIMARY KEY (l_orderkey, l_linenumber));
CREATE TABLE a (k integer PRIMARY KEY, x integer, s text, p numeric(6,2));
CREATE TABLE b (x integer, y bigint, s varchar(8), d date);
CREATE TABLE c (y integer, lo integer, hi bigint, ts timestamp, r integer[]);

INSERT INTO region VALUES (1, 'EUROPE'), (2, 'ASIA');
INSERT INTO nation VALUES (1, 'FRANCE', 1), (2, 'GERMANY', 1), (3, 'JAPAN', 2), (4, 'CHINA', 2);
INSERT INTO supplier VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO customer VALUES (1, 1, 'BUILDING'), (2, 2, 'BUILDING'), (3, 3, 'MACHINERY'), (4, 3, NULL);
INSERT INTO orders VALUES (1, 1, '1995-03-14'), (2, 2, '1995-03-15'), (3, 3, '1994-01-01'), (4, 4, '1994-12-31'),
    (5, NULL, '1994-06-01');
INSERT INTO lineitem VALUES
    (1, 1, 2, '1995-03-16', 100.00, 0.05), (1, 2, 1, '1995-03-15', 200.00, 0.00), (2, 1, 1, '1995-03-20', 10.50, 0.10),
    (3, 1, 3, '1994-02-01', 30.00, 0.50), (3, 2, 1, '1994-02-01', 7.00, 0.00), (4, 1, 3, '1995-01-05', 8.00, 0.00),
    (5, 1, 3, '1994-07-01', 9.00, 0.00);
INSERT INTO a VALUES (1, 2, 'a', 2.00), (2, 1, 'q', 7.50), (3, NULL, 'q', 3.00), (4, 2, 'b', NULL), (7, 3, 'b', 2.00);
INSERT INTO b VALUES (2, 3, 'b', '2020-01-01'), (2, 3, 'b', '2020-01-01'), (1, 2, 'a', '2020-02-29'), (3, 4, 'q', NULL),
    (6, 3, 'q', '2021-01-01'), (3, 3, 'b', '2021-01-01'), (NULL, 1, 'a', '1999-12-31');
INSERT INTO c VALUES (3, 0, 20, '2020-01-01 10:00', ARRAY[1, 2]), (2, 8, 12, '2021-01-01 00:00', NULL),
    (2, 1, 5, '2022-01-01 00:00', ARRAY[3]), (7, 10, NULL, NULL, NULL), (NULL, 2, 30, '2023-01-01 00:00', ARRAY[2]);
