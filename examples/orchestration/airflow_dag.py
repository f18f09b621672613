"""Airflow: a day's rows into halfjoin, then a check of the view, through the PostgreSQL provider.

It needs apache-airflow-providers-postgres and apache-airflow-providers-common-sql, and a connection `halfjoin` of the
type Postgres: host and port of `halfjoin serve`, the user and the database `halfjoin`. Put `statements.py` beside it.
"""

from __future__ import annotations

from datetime import datetime

from airflow import DAG
from airflow.providers.common.sql.operators.sql import SQLCheckOperator, SQLExecuteQueryOperator
from statements import CHECK, DEFINE, LOAD

with DAG("halfjoin_sales", start_date=datetime(2024, 1, 1), schedule="@daily", catchup=False) as dag:
    define = SQLExecuteQueryOperator(task_id="define", conn_id="halfjoin", sql=DEFINE)
    load = SQLExecuteQueryOperator(
        task_id="load",
        conn_id="halfjoin",
        sql=LOAD,
        parameters={"day": "{{ ds }}", "shop": "Bern", "amount": "12.50"},
    )
    check = SQLCheckOperator(task_id="check", conn_id="halfjoin", sql=CHECK)
    define >> load >> check
