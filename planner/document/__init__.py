"""An answer as a value: title, verdict, facts, tables, notes and figures."""
