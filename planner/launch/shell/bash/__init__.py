"""bash, statement by statement over a parse tree; no program is started."""
