"""The reduce law: functions of groups, maintained."""
