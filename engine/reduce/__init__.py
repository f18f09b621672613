"""The reduce law: functions of groups, kept up to date. What adds up is kept as sums, and never the rows."""
